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
use heapray_report::memray::{Ledger, Version, write_all};
use heapray_report::model::{Event, Survivors};

use crate::collector::snapshot::{EventLog, RawTotals, Snapshot};
use crate::collector::{LogReader, Names, Process};
use crate::symbolize::{ReportOptions, Resolved, resolve_elsewhere};

/// Why an event log could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecoverError {
    /// The file cannot be read.
    Io(io::Error),
    /// It is no event log of heapray's, or damaged from its first byte on.
    NoLog(io::Error),
    /// It ends before anything was written to it.
    Empty,
}

impl std::fmt::Display for RecoverError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RecoverError::Io(_) => write!(f, "the event log can't be read"),
            RecoverError::NoLog(_) => write!(f, "this is no event log of heapray's"),
            RecoverError::Empty => write!(f, "the event log ends before its first event"),
        }
    }
}

impl std::error::Error for RecoverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecoverError::Io(source) | RecoverError::NoLog(source) => Some(source),
            RecoverError::Empty => None,
        }
    }
}

/// What could be recovered.
#[derive(Debug)]
pub struct Recovered {
    snapshot: Snapshot,
    resolved: Resolved,
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
    let (log, names) = LogReader::recover(Arc::new(file)).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => RecoverError::NoLog(error),
        _ => RecoverError::Io(error),
    })?;
    let Some(process) = names.process.clone().filter(|_| log.events > 0) else {
        return Err(RecoverError::Empty);
    };
    let mut snapshot = snapshot(names, log, &process);
    let mut resolved = resolve_elsewhere(&snapshot, options);
    sum_up(&mut resolved, &snapshot).map_err(RecoverError::Io)?;
    let report = &mut resolved.report;
    report.about.pid = process.pid;
    report.about.command_line = process.command_line;
    let ran_ms = report.timeline.last().map_or(0, |moment| moment.at_ms);
    snapshot.taken = process
        .started
        .checked_add(Duration::from_millis(ran_ms))
        .unwrap_or(process.started);
    report.about.end_ms = report.about.start_ms.saturating_add_unsigned(ran_ms);
    report.conditions.notes.insert(
        0,
        "this report was recovered from the event log of a process that ended without one: up to a second before \
         its end is missing, and so is everything after the log was given up, if it was"
            .to_owned(),
    );
    Ok(Recovered { snapshot, resolved })
}

/// Books over all events of the log.
fn sum_up(resolved: &mut Resolved, snapshot: &Snapshot) -> io::Result<()> {
    let mut ledger = Ledger::default();
    for event in resolved.events(snapshot).into_iter().flatten() {
        ledger.enter(&event?);
    }
    ledger.close(&mut resolved.report);
    Ok(())
}

/// A snapshot with everything but sums.
fn snapshot(names: Names, log: EventLog, process: &Process) -> Snapshot {
    Snapshot {
        started: process.started,
        taken: SystemTime::now().max(process.started),
        still_recording: false,
        nodes: names.nodes,
        sites: Vec::new(),
        survivors: Survivors::default(),
        threads: names.threads,
        modules: names.modules,
        timeline: Vec::new(),
        marks: names.marks,
        process_memory: None,
        totals: RawTotals::default(),
        log: Some(log),
        log_given_up: None,
        sampling: None,
        lost_events: 0,
        lost_since_ms: None,
        stacks_cut: 0,
        stacks_incomplete: 0,
        own_bytes: 0,
        collector_cpu_ns: 0,
        hooks: "",
        notes: Vec::new(),
    }
}

impl Recovered {
    /// The report.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.resolved.report
    }

    /// Every event, in the order of time.
    pub fn events(&self) -> impl Iterator<Item = io::Result<Event>> {
        self.resolved.events(&self.snapshot).into_iter().flatten()
    }

    /// Writes it as a capture of all allocations that memray opens.
    ///
    /// # Errors
    /// Those of `out`, and of reading the log.
    pub fn write(&self, version: Version, out: impl Write) -> io::Result<()> {
        write_all(self.report(), self.events(), version, out)
    }
}
