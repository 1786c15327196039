//! Reading of captures: files, or a pipe.
//!
//! A file is opened once and read up to the length that it had then, so that a capture that is still being written is the
//! same when it is read a second time for its events. Captures of heapray have their sums at the end: in a file, only those
//! are read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use heapray::symbolize::NamedLater;
use heapray_report::Report;
use heapray_report::known::MOST_RULES;
use heapray_report::memray::{self, Events, Facts, Format, ReadError, SameNames, Version};
use heapray_report::model::Event;
use heapray_report::views::{self, Joined};
use indicatif::ProgressBarIter;

use crate::context::Context;
use crate::failure::Failure;
use crate::symbols;

/// Capture that was read, with its file, for reading its events.
#[derive(Debug)]
pub(crate) struct Capture {
    /// Name in messages.
    pub(crate) name: String,
    pub(crate) report: Report,
    pub(crate) format: Format,
    pub(crate) version: Version,
    pub(crate) facts: Facts,
    pub(crate) complete: bool,
    source: Source,
    /// What was changed in the report's call stacks after it was read.
    renamed: Rc<Renamed>,
}

/// Changes of a report's call stacks, for its events.
#[derive(Debug, Default)]
struct Renamed {
    named: Option<NamedLater>,
    joined: Option<Joined>,
}

impl Renamed {
    fn event(&self, event: Event) -> Event {
        let named = self.named.as_ref();
        let event = named.map_or(event, |named| named.event(event));
        let joined = self.joined.as_ref();
        joined.map_or(event, |joined| joined.event(event))
    }
}

/// Events of a capture.
#[derive(Debug)]
pub(crate) struct CaptureEvents {
    events: Events<Bytes>,
    renamed: Rc<Renamed>,
}

impl CaptureEvents {
    fn problem(&self) -> Option<&str> {
        self.events.problem()
    }
}

impl Iterator for CaptureEvents {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let event = self.events.next()?;
        Some(event.map(|event| self.renamed.event(event)))
    }
}

/// Source of a capture, which is read once or twice.
#[derive(Debug)]
enum Source {
    File { file: File, length: u64 },
    Stream(Option<File>),
}

/// Bytes of a capture, with a progress bar.
pub(crate) type Bytes = ProgressBarIter<Beginning>;

/// File up to the length that it had when it was opened.
#[derive(Debug)]
pub(crate) struct Beginning {
    file: File,
    at: u64,
    length: u64,
}

impl Read for Beginning {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = left.min(bytes.len());
        let read = self.file.read(&mut bytes[..most])?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Beginning {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
        };
        let before_the_start = || io::Error::from(io::ErrorKind::InvalidInput);
        self.at = self
            .file
            .seek(SeekFrom::Start(to.ok_or_else(before_the_start)?))?;
        Ok(self.at)
    }
}

/// Number of times that the capture is read. A pipe that is read twice, for the events, is kept on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passes {
    One,
    Two,
}

/// Returns whether the path stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the path that files are named after: `stdin` in the current directory for standard input.
pub(crate) fn named(path: &Path) -> PathBuf {
    if is_stdin(path) {
        "stdin".into()
    } else {
        path.to_path_buf()
    }
}

impl Capture {
    /// Reads the capture at `path`. If the capture ends early, returns the part that was read, and prints a note.
    pub(crate) fn read(
        path: &Path,
        passes: Passes,
        context: &mut Context,
    ) -> Result<Capture, Failure> {
        let mut capture = Capture::read_apart(path, passes, context)?;
        let named = symbols::look_up_by_itself(&mut capture.report, context);
        let mut joined = views::joined(&capture.report);
        if let Some(joined) = &mut joined {
            capture.report = std::mem::take(&mut joined.report);
        }
        capture.renamed = Rc::new(Renamed { named, joined });
        Ok(capture)
    }

    /// Reads the capture at `path` as it is: no names are looked up, and frames of the same names at different addresses are
    /// different frames.
    pub(crate) fn read_apart(
        path: &Path,
        passes: Passes,
        context: &mut Context,
    ) -> Result<Capture, Failure> {
        let name = if is_stdin(path) {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        let mut source = Source::open(path, &name, passes)?;
        let bytes = source.bytes("Reading", &name, context)?;
        let bar = bytes.progress.clone();
        let capture = if source.can_seek() {
            memray::read_file_as(bytes, context.memory_limit(), SameNames::Apart)
        } else {
            memray::read_as(bytes, context.memory_limit(), SameNames::Apart)
        };
        let capture = capture.map_err(|error| Failure::reading(&name, error));
        bar.finish_and_clear();
        let mut capture = capture?;
        add_rules(&mut capture.report, context)?;
        if !capture.complete {
            let problem = capture.report.conditions.notes.last();
            context.cut_short(&name, problem.map_or("it is not complete", String::as_str));
        }
        Ok(Capture {
            name,
            report: capture.report,
            format: capture.format,
            version: capture.version,
            facts: capture.facts,
            complete: capture.complete,
            source,
            renamed: Rc::default(),
        })
    }

    /// Returns the capture's events, or `None` for an aggregated capture, which has none.
    pub(crate) fn events(&mut self, context: &Context) -> Result<Option<CaptureEvents>, Failure> {
        if self.format == Format::Aggregated {
            return Ok(None);
        }
        let bytes = self.source.bytes("Following events", &self.name, context)?;
        // Only files are read twice.
        match memray::events_of_file_as(bytes, context.memory_limit(), SameNames::Apart) {
            Ok(events) => Ok(Some(CaptureEvents {
                events,
                renamed: Rc::clone(&self.renamed),
            })),
            Err(error) => Err(Failure::reading(&self.name, error)),
        }
    }

    /// Notes that `events` were followed to their end, and says so if that came too early.
    pub(crate) fn followed(&mut self, events: &CaptureEvents, context: &mut Context) {
        if let Some(problem) = events.problem()
            && self.complete
        {
            self.complete = false;
            context.cut_short(&self.name, problem);
            self.report.conditions.notes.push(problem.to_owned());
        }
    }

    /// Returns the failure of reading the events.
    pub(crate) fn failed(&self, error: ReadError) -> Failure {
        Failure::reading(&self.name, error)
    }
}

/// Adds the crates and rules of the command line to those of `report`.
pub(crate) fn add_rules(report: &mut Report, context: &mut Context) -> Result<(), Failure> {
    let about = &mut report.about;
    about.own_crates.extend_from_slice(context.own_crates());
    for rule in context.known()? {
        if about.known.len() < MOST_RULES && !about.known.contains(rule) {
            about.known.push(rule.clone());
        }
    }
    Ok(())
}

impl Source {
    fn open(path: &Path, name: &str, passes: Passes) -> Result<Source, Failure> {
        let failed = |error| Failure::io(format!("cannot read {name}"), error);
        let file = if is_stdin(path) {
            // As a file: standard input that is redirected from a file can be read twice.
            let stdin = io::stdin().as_fd().try_clone_to_owned();
            File::from(stdin.map_err(failed)?)
        } else {
            File::open(path).map_err(failed)?
        };
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        if metadata.is_file() {
            let length = metadata.len();
            return Ok(Source::File { file, length });
        }
        match passes {
            Passes::One => Ok(Source::Stream(Some(file))),
            Passes::Two => spool(file).map_err(failed),
        }
    }

    /// Returns all bytes, from the start.
    fn bytes(&mut self, doing: &str, name: &str, context: &Context) -> Result<Bytes, Failure> {
        let failed = |error| Failure::io(format!("cannot read {name}"), error);
        let (file, length) = match self {
            Source::File { file, length } => {
                let mut file = file.try_clone().map_err(failed)?;
                file.rewind().map_err(failed)?;
                (file, Some(*length))
            }
            Source::Stream(file) => {
                let gone = || failed(io::Error::other("it can be read only once"));
                (file.take().ok_or_else(gone)?, None)
            }
        };
        let bar = context.progress(&format!("{doing} {name}"), length);
        Ok(bar.wrap_read(Beginning {
            file,
            at: 0,
            length: length.unwrap_or(u64::MAX),
        }))
    }

    fn can_seek(&self) -> bool {
        matches!(self, Source::File { .. })
    }
}

/// Copies a pipe into a file without a name.
fn spool(mut stream: File) -> io::Result<Source> {
    let mut file = tempfile::tempfile()?;
    let length = io::copy(&mut stream, &mut file)?;
    Ok(Source::File { file, length })
}
