//! Makes outputs in a helper process: both sides of the conversation with it.
//!
//! ```text
//! service                                    helper
//! Start: the session, and its nodes; or the files' lengths ─▶ reads it
//! Ask::Output ──────────────────────────────▶ makes it
//!         ◀── length and bytes, length and bytes, 0; Done
//! Ask::Lines ───────────────────────────────▶
//!         ◀── the lines
//! ```

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::SystemTime;

use heapray_report::memray::MemoryLimit;
use serde::{Deserialize, Serialize};

use super::super::line::Lines;
use super::here::Here;
use super::{Failure, Input, KeptInput};
use crate::collector::snapshot::{EventLog, Snapshot, read_nodes, write_nodes};
use crate::os::command_line;
use crate::os::helper::{self, Helper, Job, Service};
use crate::profiler::machine::View;
use crate::profiler::store::{Output, OutputKey, ReportId};
use crate::symbolize::Wanted;
use crate::symbolize::about::{self, Said};

/// What outputs are made from, as the service says it. The files themselves are the helper's.
#[derive(Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // there is one at a time
enum Start<'a> {
    Session {
        snapshot: Cow<'a, Snapshot>,
        log: Option<Log<'a>>,
        key: OutputKey,
        pid: u32,
        command_line: String,
        said: Said,
    },
    Kept {
        id: ReportId,
        bytes: u64,
        since: Option<Since>,
        limit: u64,
    },
}

/// An event log: its complete bytes, its events, and its pairs.
type Log<'a> = (u64, u64, Cow<'a, [(u32, u32)]>);

/// The earlier report.
#[derive(Debug, Serialize, Deserialize)]
struct Since {
    id: ReportId,
    bytes: u64,
    ended: SystemTime,
}

#[derive(Debug, Serialize, Deserialize)]
enum Ask {
    Output { key: OutputKey, whole: bool },
    Lines,
}

/// How the making of an output ended.
#[derive(Debug, Serialize, Deserialize)]
enum Done {
    Well,
    Failed(String),
    Damaged(ReportId),
    TooLarge(String),
}

/// The service's side.
#[derive(Debug)]
pub(super) struct Helped {
    helper: Helper,
}

impl Helped {
    /// Starts a helper for `input`.
    ///
    /// # Errors
    ///
    /// There is no helper: the outputs must be made in this process.
    pub(super) fn start(input: &Input, wanted: &Wanted) -> io::Result<Helped> {
        let (start, files) = match input {
            Input::Session { view, key } => {
                let log = view.snapshot.log.as_ref();
                let start = Start::Session {
                    snapshot: Cow::Borrowed(&*view.snapshot),
                    log: log.map(|log| (log.bytes, log.events, Cow::Borrowed(&**log.pairs))),
                    key: *key,
                    pid: std::process::id(),
                    command_line: command_line::read(),
                    said: about::said(),
                };
                (start, [log.map(|log| &*log.file), None])
            }
            Input::Kept {
                report,
                since,
                limit,
            } => {
                let earlier = since.as_deref().map(|(since, ended)| Since {
                    id: since.id,
                    bytes: since.file.len(),
                    ended: *ended,
                });
                let start = Start::Kept {
                    id: report.id,
                    bytes: report.file.len(),
                    since: earlier,
                    limit: limit.0,
                };
                let since = since.as_deref().map(|(since, _)| since.file.file());
                (start, [Some(report.file.file()), since])
            }
        };
        let wanted = wanted.clone();
        let mut helper = Helper::start(Job::Outputs, files, move || wanted.still())?;
        // If the helper ends meanwhile, the first output fails and finds out why.
        let _ = tell(&mut helper, &start);
        Ok(Helped { helper })
    }

    /// Has an output made, and writes it to `out`.
    ///
    /// # Errors
    ///
    /// The error of `out`, or `None` if the conversation failed. The helper is then of no further use.
    #[allow(clippy::type_complexity)] // the outer error is taken apart at its only use
    pub(super) fn output(
        &mut self,
        key: OutputKey,
        whole: bool,
        out: &mut dyn Write,
    ) -> Result<Result<(), Failure>, Option<io::Error>> {
        let failed = |error: io::Error| {
            tracing::debug!(%error, "the helper process has failed");
            None
        };
        let helper = &mut self.helper;
        helper.say(&Ask::Output { key, whole }).map_err(failed)?;
        let mut written = Ok(());
        let read = helper::read_pieces(helper.hears(), |piece| {
            written = out.write_all(piece);
            // Any error ends the conversation.
            written
                .as_ref()
                .map_err(|error| error.kind().into())
                .copied()
        });
        written.map_err(Some)?;
        read.map_err(failed)?;
        Ok(match helper::read(helper.hears()).map_err(failed)? {
            Done::Well => Ok(()),
            Done::Failed(text) => Err(Failure::Io(io::Error::other(text))),
            Done::Damaged(id) => Err(Failure::Damaged(id)),
            Done::TooLarge(text) => Err(Failure::TooLarge(text)),
        })
    }

    /// Returns the lines that the description of a report names, or `None` if the conversation failed.
    pub(super) fn lines(&mut self) -> Option<Lines> {
        self.helper.say(&Ask::Lines).ok()?;
        helper::read(self.helper.hears()).ok()
    }

    #[cfg(test)]
    pub(super) fn pid(&self) -> u32 {
        self.helper.pid()
    }

    /// Returns the signal that has ended the helper, after a conversation that failed.
    pub(super) fn killed_by(self) -> Option<i32> {
        self.helper.killed_by()
    }
}

/// Says what outputs are made from.
fn tell(helper: &mut Helper, start: &Start<'_>) -> io::Result<()> {
    helper.say(start)?;
    if let Start::Session { snapshot, .. } = start {
        let mut says = helper.says();
        let pieces = helper::Pieces(&mut says);
        let mut pieces = io::BufWriter::with_capacity(helper::PIECE, pieces);
        write_nodes(&snapshot.stacks.nodes, &mut pieces)?;
        pieces.flush()?;
        drop(pieces);
        helper::end_pieces(&mut says)?;
        says.flush()?;
    }
    Ok(())
}

/// Makes outputs as the service asks for them, until it closes the conversation. This runs in the helper.
pub(crate) fn serve(service: Service) -> io::Result<()> {
    let Service {
        mut says,
        mut hears,
        files,
        ..
    } = service;
    let mut start: Start<'static> = helper::read(&mut says)?;
    if let Start::Session { snapshot, .. } = &mut start {
        let nodes = read_nodes(&helper::read_bytes(&mut says)?);
        snapshot.to_mut().stacks.nodes = nodes;
    }
    let wanted = Wanted::default();
    let here = begin(start, files, &wanted);
    loop {
        match helper::read(&mut says)? {
            Ask::Output { key, whole } => {
                let pieces = helper::Pieces(&mut hears);
                let mut out = io::BufWriter::with_capacity(helper::PIECE, pieces);
                let done = match &here {
                    Ok(here) => {
                        let made = here.output(key, whole, &wanted, &mut out);
                        let made = made.and_then(|()| out.flush().map_err(Failure::Io));
                        made.map_or_else(|failure| said(&failure), |()| Done::Well)
                    }
                    Err(failure) => said(failure),
                };
                drop(out);
                helper::end_pieces(&mut hears)?;
                helper::write(&mut hears, &done)?;
            }
            Ask::Lines => {
                let lines = here.as_ref().map_or_else(|_| Lines::default(), Here::lines);
                helper::write(&mut hears, &lines)?;
            }
        }
        hears.flush()?;
    }
}

fn begin(start: Start<'static>, files: [File; 2], wanted: &Wanted) -> Result<Here, Failure> {
    let [first, second] = files.map(Arc::new);
    match start {
        Start::Session {
            snapshot,
            log,
            key,
            pid,
            command_line,
            said,
        } => {
            about::set_said(said);
            let mut snapshot = snapshot.into_owned();
            snapshot.log = log.map(|(bytes, events, pairs)| EventLog {
                file: first,
                bytes,
                events,
                pairs: Arc::new(pairs.into_owned()),
            });
            let view = View::of(snapshot);
            let mut here = Here::of(&Input::Session { view, key }, wanted)?;
            if let Here::Session { resolved, .. } = &mut here {
                resolved.report.about.pid = pid;
                resolved.report.about.command_line = command_line;
            }
            Ok(here)
        }
        Start::Kept {
            id,
            bytes,
            since,
            limit,
        } => {
            let input = |id, file, bytes| KeptInput {
                id,
                file: Output::opened(file, bytes),
            };
            let since =
                since.map(|since| Box::new((input(since.id, second, since.bytes), since.ended)));
            let input = Input::Kept {
                report: input(id, first, bytes),
                since,
                limit: MemoryLimit(limit),
            };
            Here::of(&input, wanted)
        }
    }
}

fn said(failure: &Failure) -> Done {
    match failure {
        Failure::Io(error) => Done::Failed(heapray_report::error_chain(error).to_string()),
        Failure::Damaged(id) => Done::Damaged(*id),
        Failure::TooLarge(text) => Done::TooLarge(text.clone()),
    }
}
