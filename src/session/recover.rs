//! Recovery: makes a report from the event log of a process that was killed, crashed, or ran out of memory.
//!
//! The log contains everything except the names of functions. Those come from the files of the process's modules. The
//! command line calls this, and so does a service that recovers logs by itself. No session is needed.

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

/// The reason why an event log could not be recovered.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecoverError {
    /// The file cannot be read.
    Io(io::Error),
    /// The file is not a heapray event log, or it is damaged from its first byte on.
    NoLog(io::Error),
    /// The log ends before its first event.
    Empty,
    /// The recovery needs more memory than allowed. A service that recovers by itself has a limit; [`recover`] has none.
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
                    "the recovery of the event log needs more memory than a service may use for it"
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

/// A recovered report, with the event log for further formats.
#[derive(Debug)]
pub struct Recovered {
    started: SystemTime,
    ended: SystemTime,
    resolved: Resolved,
    threads: Vec<RawThread>,
    log: EventLog,
}

/// Recovers the event log (`heapray-….spool` in `MEMRAY_PROFILER_DIR`) of a process that ended without a report. The result
/// has all events up to the last complete block of the file. A block is written at least once a second.
///
/// # Errors
/// See [`RecoverError`]. A log with an incomplete or damaged end is not an error.
pub fn recover(spool: &Path, options: &ReportOptions) -> Result<Recovered, RecoverError> {
    let file = File::open(spool).map_err(RecoverError::Io)?;
    if !file.metadata().map_err(RecoverError::Io)?.is_file() {
        return Err(RecoverError::NoLog(io::Error::other("it is not a file")));
    }
    recover_within(Arc::new(file), options, &Bounds::NONE)
}

/// The limits of a recovery.
pub(crate) struct Bounds<'b> {
    /// The most different call stacks.
    pub(crate) stacks: usize,
    /// The most bytes for the live blocks and for sums.
    pub(crate) memory: u64,
    /// Returns whether the recovery should end without a result. It is called now and then.
    pub(crate) ends: &'b dyn Fn() -> bool,
}

impl Bounds<'_> {
    const NONE: Bounds<'static> = Bounds {
        stacks: usize::MAX,
        memory: u64::MAX,
        ends: &|| false,
    };
}

/// The number of events between two checks of the bounds.
const APART: u64 = 1 << 16;

/// Recovers an open file like [`recover`], within `bounds`. Fails with [`io::ErrorKind::Interrupted`] if [`Bounds::ends`]
/// returned `true`.
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
        contexts,
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
        contexts,
        modules,
        ..StackTable::default()
    };
    let mut options = options.by_address(true);
    if options.names == NameMode::Plain {
        // The reader of the capture chooses between the names.
        options.names = NameMode::Both;
    }
    let started = process.started;
    let mut resolved = resolve_elsewhere(&stacks, &options, started);
    let threads = stacks.threads;
    sum_up(&mut resolved, &threads, &log, bounds)?;
    resolved.name_memory_without_route();
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
        "this report was recovered from the event log of a process that ended without a report: up to a second before \
         its end is missing, and so is everything after the session stopped writing the log, if it did"
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

/// The most other allocations before the free of a temporary block, as in sessions and in memray by default.
const TEMPORARY: usize = 1;

/// Sums up all events of the log by call site.
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
        // The ledger uses the report's threads, and an entry may stand for several threads.
        let mut report = resolved.report.clone();
        report.threads.extend_from_slice(apart.threads());
        let events = apart.events(resolved, log);
        let counted = temporary(&report, events, TEMPORARY).map_err(RecoverError::Io)?;
        resolved.report.sites = counted.sites;
    }
    Ok(())
}

impl Recovered {
    /// Returns the report. For the command line; not part of the public interface.
    #[doc(hidden)]
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.resolved.report
    }

    /// Returns the time at which the session began.
    pub(crate) fn started(&self) -> SystemTime {
        self.started
    }

    /// Returns the last moment in the log.
    pub(crate) fn ended(&self) -> SystemTime {
        self.ended
    }

    /// Returns every event, in the order of time. For the command line; not part of the public interface.
    #[doc(hidden)]
    pub fn events(&self) -> impl Iterator<Item = io::Result<Event>> {
        self.resolved.events(&self.log)
    }

    /// Writes an all-allocations capture in memray's format.
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
