//! Stand-in for the running capture.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use crate::collector::snapshot::Snapshot;
use heapray_report::model::Tally;

/// How a session is run.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Directory of the event log.
    pub spool_dir: PathBuf,
    /// Bytes of event log above which it is given up.
    pub log_limit: u64,
}

/// Why a session did not start.
#[derive(Debug)]
pub struct StartError;

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a session is already running in this process")
    }
}

impl std::error::Error for StartError {}

/// Why a session has no view to give.
#[derive(Debug)]
pub struct SessionError;

impl std::fmt::Display for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the session is broken")
    }
}

impl std::error::Error for SessionError {}

/// Cheap sums of a running session.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Counters {
    pub started: SystemTime,
    pub events: u64,
    pub allocated: Tally,
    pub live: Tally,
    pub high_water: Tally,
    pub lost_events: u64,
    pub own_bytes: u64,
    pub collector_cpu_ns: u64,
    pub log_bytes: u64,
    pub log_given_up: Option<String>,
    pub hooks: &'static str,
}

/// A running session.
#[derive(Debug)]
pub struct Session {
    started: SystemTime,
}

static RUNNING: AtomicBool = AtomicBool::new(false);

#[allow(missing_docs, clippy::missing_errors_doc)]
impl Session {
    pub fn start(_options: &SessionOptions) -> Result<Session, StartError> {
        if RUNNING.swap(true, Ordering::SeqCst) {
            return Err(StartError);
        }
        Ok(Session {
            started: SystemTime::now(),
        })
    }

    pub fn counters(&self) -> Counters {
        Counters {
            started: self.started,
            events: 0,
            allocated: Tally::default(),
            live: Tally::default(),
            high_water: Tally::default(),
            lost_events: 0,
            own_bytes: 0,
            collector_cpu_ns: 0,
            log_bytes: 0,
            log_given_up: None,
            hooks: "none",
        }
    }

    pub fn snapshot(&self) -> Result<Snapshot, SessionError> {
        Ok(self.view(true))
    }

    pub fn stop(self) -> Result<Snapshot, SessionError> {
        RUNNING.store(false, Ordering::SeqCst);
        Ok(self.view(false))
    }

    fn view(&self, still_recording: bool) -> Snapshot {
        Snapshot {
            started: self.started,
            taken: SystemTime::now(),
            still_recording,
            nodes: vec![],
            sites: vec![],
            threads: vec![],
            modules: Default::default(),
            timeline: vec![],
            totals: Default::default(),
            log: None,
            log_given_up: None,
            lost_events: 0,
            stacks_cut: 0,
            stacks_incomplete: 0,
            own_bytes: 0,
            collector_cpu_ns: 0,
            hooks: "none",
            notes: vec![],
        }
    }
}
