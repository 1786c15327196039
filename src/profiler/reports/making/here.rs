//! Makes outputs in the process in which this runs.

use std::io::{self, BufReader, Read, Seek, Write};
use std::sync::Arc;

use heapray_report::memray::{self, Capture, Format, MemoryLimit, ReadError, SameNames};
use heapray_report::views;

use super::super::line::Lines;
use super::while_wanted::{self, WhileWanted};
use super::write::{built, render, write_report};
use super::{Failure, Input, KeptInput};
use crate::collector::snapshot::Snapshot;
use crate::os::calendar;
use crate::profiler::machine::View;
use crate::profiler::store::{Output, OutputKey, OutputKind, ReportId};
use crate::symbolize::{self, Resolved, Wanted};

/// What was read of an input.
#[derive(Debug)]
pub(super) enum Here {
    Session {
        snapshot: Arc<Snapshot>,
        resolved: Resolved,
    },
    Kept {
        file: Output,
        capture: Capture,
        limit: MemoryLimit,
    },
}

impl Here {
    pub(super) fn of(input: &Input, wanted: &Wanted) -> Result<Here, Failure> {
        match input {
            Input::Session { view, key } => {
                let snapshot = Arc::clone(&view.snapshot);
                let resolved = symbolize::report_while(wanted, &snapshot, &key.options());
                while_wanted::check(wanted)?;
                Ok(Here::Session { snapshot, resolved })
            }
            Input::Kept {
                report,
                since,
                limit,
            } => {
                let mut capture = read(report, wanted, *limit)?;
                if let Some((since, ended)) = since.as_deref() {
                    let before = read(since, wanted, *limit)?;
                    let mut grown = views::diff(&before.report, &capture.report).grown();
                    grown.conditions.notes.push(format!(
                        "compared with the kept report {}, which ended at {}",
                        since.id,
                        calendar::rfc3339(*ended)
                    ));
                    capture.report = grown;
                    // The growth has no events of its own.
                    capture.format = Format::Aggregated;
                }
                Ok(Here::Kept {
                    file: report.file.clone(),
                    capture,
                    limit: *limit,
                })
            }
        }
    }

    /// Reads a session without the names of its functions, because `signal` has ended the helper that looked them up.
    pub(super) fn without_names(view: &View, key: OutputKey, signal: i32) -> Here {
        let snapshot = Arc::clone(&view.snapshot);
        let resolved = symbolize::report_without_names(&snapshot, &key.options(), signal);
        Here::Session { snapshot, resolved }
    }

    /// Writes an output. `whole`: with every allocation, if there is a log of them.
    pub(super) fn output(
        &self,
        key: OutputKey,
        whole: bool,
        wanted: &Wanted,
        mut out: &mut dyn Write,
    ) -> Result<(), Failure> {
        match self {
            Here::Session { snapshot, resolved } => {
                if key.kind() == OutputKind::Report && whole {
                    write_report(key, snapshot, resolved, wanted, &mut out)?;
                } else {
                    let log = snapshot.log.as_ref().filter(|_| whole);
                    let events = log.map(|log| while_wanted::items(resolved.events(log), wanted));
                    render(key, &resolved.report, events, built(), &mut out)?;
                }
            }
            Here::Kept {
                file,
                capture,
                limit,
            } => {
                let has_events = whole
                    && matches!(
                        (key.kind(), capture.format),
                        (
                            OutputKind::Report | OutputKind::Flamegraph,
                            Format::AllAllocations
                        )
                    );
                let events = has_events.then(|| {
                    memray::events_of_file_as(input(file, wanted), *limit, SameNames::Apart)
                });
                let events = events.transpose().map_err(io::Error::other)?;
                let events =
                    events.map(|events| events.map(|event| event.map_err(io::Error::other)));
                let events = events.map(|events| while_wanted::items(events, wanted));
                render(key, &capture.report, events, built(), &mut out)?;
            }
        }
        Ok(())
    }

    pub(super) fn lines(&self) -> Lines {
        Lines::of(match self {
            Here::Session { resolved, .. } => &resolved.report,
            Here::Kept { capture, .. } => &capture.report,
        })
    }
}

fn input<'w>(file: &Output, wanted: &'w Wanted) -> impl Read + Seek + use<'w> {
    BufReader::with_capacity(256 << 10, WhileWanted::new(file.clone(), wanted))
}

/// Reads the sums of a kept report, with all of its addresses.
fn read(kept: &KeptInput, wanted: &Wanted, limit: MemoryLimit) -> Result<Capture, Failure> {
    memray::read_file_as(input(&kept.file, wanted), limit, SameNames::Apart)
        .map_err(|error| failed(&error, kept.id))
}

fn failed(error: &ReadError, id: ReportId) -> Failure {
    match error {
        ReadError::TooLarge(error) => Failure::TooLarge(error.to_string()),
        _ => Failure::Damaged(id),
    }
}
