//! A report from the event log of a process that did not live to make one: killed, crashed, or out of memory.
//!
//! The log says what its numbers stand for, so nothing of the process is needed but the files that it was loaded from,
//! for the names of functions. Called by the command line; nothing of a capture runs here.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use heapray_report::Report;
use heapray_report::memray::{Ledger, Version, in_one_line, write_all_apart};
use heapray_report::model::{About, Event};
use heapray_report::views::temporary;

use crate::collector::snapshot::{EventLog, RawThread, StackTable};
use crate::collector::{LogReader, Names, Process};
use crate::symbolize::{
    Apart, NameMode, ReportOptions, Resolved, Wanted, about, resolve_elsewhere,
};

/// Why an event log could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecoverError {
    /// The file cannot be read.
    Io(io::Error),
    /// It is not a heapray event log, or it is damaged from its first byte on.
    NoLog(io::Error),
    /// It ends before anything was written to it.
    Empty,
    /// It needs more memory than it may take. A service that recovers by itself bounds that; [`recover`] does not.
    TooLarge,
}

impl std::fmt::Display for RecoverError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RecoverError::Io(_) => write!(f, "the event log can't be read"),
            RecoverError::NoLog(_) => write!(f, "this is not a heapray event log"),
            RecoverError::Empty => write!(f, "the event log ends before its first event"),
            RecoverError::TooLarge => {
                write!(
                    f,
                    "the event log needs more memory than a service may take for it"
                )
            }
        }
    }
}

impl std::error::Error for RecoverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecoverError::Io(source) | RecoverError::NoLog(source) => Some(source),
            RecoverError::Empty | RecoverError::TooLarge => None,
        }
    }
}

/// What could be recovered.
#[derive(Debug)]
pub struct Recovered {
    started: SystemTime,
    ended: SystemTime,
    resolved: Resolved,
    threads: Vec<RawThread>,
    log: EventLog,
}

/// Reads the event log (`heapray-….spool` in `MEMRAY_PROFILER_DIR`) that a process left behind when it ended without
/// its report. Everything up to the last whole block is there; a block is written at least once a second.
///
/// # Errors
/// See [`RecoverError`]. A log whose end is torn or damaged is none.
pub fn recover(spool: &Path, options: &ReportOptions) -> Result<Recovered, RecoverError> {
    let file = File::open(spool).map_err(RecoverError::Io)?;
    if !file.metadata().map_err(RecoverError::Io)?.is_file() {
        return Err(RecoverError::NoLog(io::Error::other("it is not a file")));
    }
    recover_within(Arc::new(file), options, &Bounds::NONE)
}

/// What a recovery may take.
pub(crate) struct Bounds<'b> {
    /// Different call stacks.
    pub(crate) stacks: usize,
    /// Bytes for the blocks that are live at a time and the sums of them.
    pub(crate) memory: u64,
    /// Whether it is to end without a result. Asked now and then.
    pub(crate) ends: &'b dyn Fn() -> bool,
}

impl Bounds<'_> {
    const NONE: Bounds<'static> = Bounds {
        stacks: usize::MAX,
        memory: u64::MAX,
        ends: &|| false,
    };
}

/// Events between two looks at the bounds.
const APART: u64 = 1 << 16;

/// As [`recover`], of an open file. [`io::ErrorKind::Interrupted`] if it was to end.
pub(crate) fn recover_within(
    file: Arc<File>,
    options: &ReportOptions,
    bounds: &Bounds<'_>,
) -> Result<Recovered, RecoverError> {
    let read = LogReader::recover_within(file, bounds.stacks);
    let (log, names) = read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => RecoverError::NoLog(error),
        io::ErrorKind::OutOfMemory => RecoverError::TooLarge,
        _ => RecoverError::Io(error),
    })?;
    let Names {
        process: Some(process),
        modules,
        nodes,
        threads,
        marks,
        ..
    } = names
    else {
        return Err(RecoverError::Empty);
    };
    if log.events == 0 {
        return Err(RecoverError::Empty);
    }
    let stacks = StackTable {
        nodes,
        threads,
        modules,
        ..StackTable::default()
    };
    let mut options = *options;
    if options.names == NameMode::Plain {
        // Whoever reads the capture chooses.
        options.names = NameMode::Both;
    }
    let started = process.started;
    let mut resolved = resolve_elsewhere(&stacks, &options, started);
    let threads = stacks.threads;
    sum_up(&mut resolved, &threads, &log, bounds)?;
    let report = &mut resolved.report;
    let ran_ms = report.timeline.last().map_or(0, |moment| moment.at_ms);
    let ended = started.checked_add(Duration::from_millis(ran_ms));
    let process = Process {
        command_line: in_one_line(&process.command_line).into_owned(),
        ..process
    };
    let about = about::process(std::mem::take(&mut report.about), process);
    report.about = About {
        end_ms: about.start_ms.saturating_add_unsigned(ran_ms),
        ..about
    };
    report.marks = marks.iter().map(about::mark).collect();
    report.conditions.overhead.log_bytes = log.bytes;
    report.conditions.notes.insert(
        0,
        "this report was recovered from the event log of a process that ended without one: up to a second before \
         its end is missing, and so is everything after the log was given up, if it was"
            .to_owned(),
    );
    Ok(Recovered {
        started,
        ended: ended.unwrap_or(started),
        resolved,
        threads,
        log,
    })
}

/// Allocations in between for a block to be a temporary one: as sessions count, and memray by default.
const TEMPORARY: usize = 1;

/// Books over all events of the log.
fn sum_up(
    resolved: &mut Resolved,
    threads: &[RawThread],
    log: &EventLog,
    bounds: &Bounds<'_>,
) -> Result<(), RecoverError> {
    let mut ledger = Ledger::default();
    for (number, event) in (1_u64..).zip(resolved.events(log)) {
        ledger.enter(&event.map_err(RecoverError::Io)?);
        if number % APART == 0 {
            if (bounds.ends)() {
                return Err(RecoverError::Io(io::ErrorKind::Interrupted.into()));
            }
            if ledger.memory() > bounds.memory {
                return Err(RecoverError::TooLarge);
            }
        }
    }
    ledger.close(&mut resolved.report);
    let apart = Apart::of(resolved, threads, log, &Wanted::default()).map_err(RecoverError::Io)?;
    if !apart.threads().is_empty() {
        // The ledger goes by the report's threads, of which one may stand for several.
        let mut report = resolved.report.clone();
        report.threads.extend_from_slice(apart.threads());
        let events = apart.events(resolved, log);
        let counted = temporary(&report, events, TEMPORARY).map_err(RecoverError::Io)?;
        resolved.report.sites = counted.sites;
    }
    Ok(())
}

impl Recovered {
    /// The report. For the command line; not part of the public interface.
    #[doc(hidden)]
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.resolved.report
    }

    /// When the session began.
    pub(crate) fn started(&self) -> SystemTime {
        self.started
    }

    /// The last moment that the log tells of.
    pub(crate) fn ended(&self) -> SystemTime {
        self.ended
    }

    /// Every event, in the order of time. For the command line; not part of the public interface.
    #[doc(hidden)]
    pub fn events(&self) -> impl Iterator<Item = io::Result<Event>> {
        self.resolved.events(&self.log)
    }

    /// Writes it as a capture of all allocations that memray opens.
    ///
    /// # Errors
    /// Those of `out`, and of reading the log.
    pub fn write(&self, version: Version, out: impl Write) -> io::Result<()> {
        let wanted = Wanted::default();
        let apart = Apart::of(&self.resolved, &self.threads, &self.log, &wanted)?;
        let events = apart.events(&self.resolved, &self.log);
        write_all_apart(self.report(), apart.threads(), events, version, out)
    }
}
