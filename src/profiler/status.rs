//! The profiler's state, in the types that the endpoints send.

use std::time::SystemTime;

use heapray_report::model::{Sampling, Tally};

use super::Trigger;
use crate::collector::snapshot::Snapshot;
use crate::config::SymbolMode;
use crate::os::{command_line, process};
use crate::session::Counters;

/// The state of the profiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// The profiler is disabled in this process.
    Disabled,
    /// Nothing is recorded; a finished session's report may be there.
    Stopped,
    /// Samples are recorded without anybody having asked for a session, as `MEMRAY_PROFILER_CONTINUOUS` says. The report of
    /// a finished session may be there.
    Background,
    /// A session that somebody has asked for records allocations: every one, or samples of them.
    Recording,
    /// The session has ended and its report is being written.
    Stopping,
    /// This process was forked from a profiled one; nothing is recorded here.
    Forked,
}

/// A number of blocks and the bytes in them, as the service asked for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Blocks {
    /// Blocks.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Blocks {
    pub(crate) fn of(tally: Tally) -> Blocks {
        Blocks {
            count: tally.count,
            bytes: tally.bytes,
        }
    }
}

/// A moment of a session that somebody named.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Mark {
    /// Its name.
    pub name: String,
    /// Milliseconds since the start of the session.
    pub at_ms: u64,
    /// Live blocks at that moment.
    pub live: Blocks,
}

impl Mark {
    pub(crate) fn of(mark: heapray_report::model::Mark) -> Mark {
        Mark {
            name: mark.name,
            at_ms: mark.at_ms,
            live: Blocks::of(mark.live),
        }
    }
}

/// How a session samples, and how good its estimates are.
///
/// All sums of the status are estimates then. Each is right to within its margin with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct SamplingStatus {
    /// Bytes between two samples, on average; if that was changed, the largest in the session.
    pub mean_bytes: u64,
    /// The same since the last change.
    pub current_mean_bytes: u64,
    /// Allocations that were recorded.
    pub samples: u64,
    /// Bytes that were allocated in the session, counted exactly.
    pub asked: Blocks,
    /// How far `live` may be off.
    pub live_margin: Blocks,
    /// How far `high_water` may be off.
    pub high_water_margin: Blocks,
    /// How far `allocated` may be off.
    pub allocated_margin: Blocks,
}

impl SamplingStatus {
    pub(crate) fn of(sampling: &Sampling) -> SamplingStatus {
        SamplingStatus {
            mean_bytes: sampling.mean_bytes(),
            current_mean_bytes: sampling.current_mean_bytes(),
            samples: sampling.samples,
            asked: Blocks::of(sampling.asked),
            live_margin: Blocks::of(sampling.live),
            high_water_margin: Blocks::of(sampling.high_water),
            allocated_margin: Blocks::of(sampling.allocated),
        }
    }
}

/// The cost of the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct OverheadStatus {
    /// Bytes of memory that heapray holds for the session.
    pub memory_bytes: u64,
    /// CPU time of the collector's threads, in nanoseconds.
    pub collector_cpu_ns: u64,
    /// Bytes of event log on disk.
    pub log_bytes: u64,
}

/// Heapray's files in its directory, of all processes that use the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct DiskStatus {
    /// Bytes of kept reports, outputs, the event log, and files that killed processes have left.
    pub bytes: u64,
    /// Most bytes that they may have together: `MEMRAY_PROFILER_KEEP_BYTES`.
    pub bound_bytes: u64,
}

/// Profiles that are pushed to a profile store. Counts are of this process.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct PushStatus {
    /// The protocol and the address, as in `MEMRAY_PROFILER_PUSH`.
    pub target: String,
    /// Profiles that the server has taken.
    pub sent: u64,
    /// Profiles that the server has refused for what is in them.
    pub refused: u64,
    /// Profiles that were dropped because too many waited, or because their file was damaged.
    pub dropped: u64,
    /// Profiles that could not be made.
    pub not_made: u64,
    /// Tries that have failed. The profile waits for the next one.
    pub failures: u64,
    /// Profiles that wait.
    pub waiting: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// When the server has taken a profile last; null if it has taken none.
    #[serde(serialize_with = "crate::os::calendar::serialize_option")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub last_sent: Option<SystemTime>,
    /// Why the last try has failed; null if it has not.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub trouble: Option<String>,
}

#[cfg(feature = "push")]
impl PushStatus {
    pub(crate) fn of(target: String, counts: crate::push::PushCounts) -> PushStatus {
        PushStatus {
            target,
            sent: counts.sent,
            refused: counts.refused,
            dropped: counts.dropped,
            not_made: counts.not_made,
            failures: counts.failures,
            waiting: counts.waiting,
            waiting_bytes: counts.waiting_bytes,
            last_sent: counts.last_sent,
            trouble: counts.trouble,
        }
    }
}

/// Copies of kept reports in an object storage. Counts are of this process.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct StoreStatus {
    /// The storage and the folder in it, as in `MEMRAY_PROFILER_STORE`.
    pub target: String,
    /// Reports that were copied.
    pub stored: u64,
    /// Reports that were deleted before they were copied, or whose file was damaged.
    pub dropped: u64,
    /// Tries that have failed. The report waits for the next one.
    pub failures: u64,
    /// Reports that wait.
    pub waiting: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// When the storage has taken a report last; null if it has taken none.
    #[serde(serialize_with = "crate::os::calendar::serialize_option")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub last_stored: Option<SystemTime>,
    /// Why the last try has failed; null if it has not.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub trouble: Option<String>,
}

#[cfg(feature = "store")]
impl StoreStatus {
    pub(crate) fn of(target: String, counts: crate::bucket::StoreCounts) -> StoreStatus {
        StoreStatus {
            target,
            stored: counts.stored,
            dropped: counts.dropped,
            failures: counts.failures,
            waiting: counts.waiting,
            waiting_bytes: counts.waiting_bytes,
            last_stored: counts.last_stored,
            trouble: counts.trouble,
        }
    }
}

/// The finished session's report file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct ReportStatus {
    /// Its size on disk.
    pub bytes: u64,
    /// The end of its session.
    #[serde(serialize_with = "crate::os::calendar::serialize")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub taken: SystemTime,
}

/// The profiler's state, and the sums of the running session or else the last one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Status {
    /// The state of the profiler.
    pub state: State,
    /// When the running session began; null if none runs.
    #[serde(serialize_with = "crate::os::calendar::serialize_option")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub recording_since: Option<SystemTime>,
    /// Allocations and frees seen.
    pub events: u64,
    /// Everything that was allocated.
    pub allocated: Blocks,
    /// Blocks that were allocated in the session and not freed yet.
    pub live: Blocks,
    /// Live blocks at the high-water mark, the session's peak.
    pub high_water: Blocks,
    /// How the session samples; null if every allocation is recorded, so that all sums are exact.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub sampling: Option<SamplingStatus>,
    /// Events that were lost because the collector could not keep up. Not 0: all sums are too low.
    pub lost_events: u64,
    /// When the first of them was lost, in milliseconds since the start of the session; null if none was.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub lost_since_ms: Option<u64>,
    /// The cost of the capture.
    pub overhead: OverheadStatus,
    /// Why there is no event log any more, so that the report holds sums only; null while there is one.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub log_given_up: Option<String>,
    /// Why new call stacks are cut nearer to the root, or summed up: the bound on the profiler's own memory is reached. Null
    /// if they are not. All sums are exact either way.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub stacks_bounded: Option<String>,
    /// How allocations are seen: `got`, `global`, `got+global`; empty before the first session.
    pub hooks: String,
    /// How much of the names of its code the service looks up for reports: `off`, `functions` or `lines`.
    pub symbols: SymbolMode,
    /// Limits of what the session sees or has left behind, such as calls that could not be hooked; usually empty.
    pub notes: Vec<String>,
    /// The finished session's report; null if there is none on disk.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub report: Option<ReportStatus>,
    /// What is on disk in the profiler's directory.
    pub disk: DiskStatus,
    /// Profiles that are pushed to a profile store; null if none are.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub push: Option<PushStatus>,
    /// Copies of kept reports in an object storage; null if there is none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub store: Option<StoreStatus>,
    /// Why the last start or stop failed; null if it did not.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub trouble: Option<String>,
    /// What made the flight recorder write a report last, in this process; null if nothing did.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub trigger: Option<Trigger>,
    /// The configured name of the job; empty if there is none.
    pub job_name: String,
    /// Its configured version; empty if there is none.
    pub job_version: String,
    /// The name of the program; empty if the system does not say.
    pub program: String,
    /// The name of the machine or container that the process runs in; empty if the system does not say.
    pub host: String,
    /// The process that this is about.
    pub pid: u32,
}

impl Status {
    /// Nothing but a state.
    pub(crate) fn bare(state: State) -> Status {
        Status {
            state,
            recording_since: None,
            events: 0,
            allocated: Blocks::default(),
            live: Blocks::default(),
            high_water: Blocks::default(),
            sampling: None,
            lost_events: 0,
            lost_since_ms: None,
            overhead: OverheadStatus::default(),
            log_given_up: None,
            stacks_bounded: None,
            hooks: String::new(),
            symbols: SymbolMode::default(),
            notes: Vec::new(),
            report: None,
            disk: DiskStatus::default(),
            push: None,
            store: None,
            trouble: None,
            trigger: None,
            job_name: String::new(),
            job_version: String::new(),
            program: command_line::program(),
            host: process::host(),
            pid: std::process::id(),
        }
    }

    /// Fills in what a running session has counted.
    pub(crate) fn count(&mut self, counters: Counters) {
        self.recording_since = Some(counters.started);
        self.events = counters.events;
        self.allocated = Blocks::of(counters.allocated);
        self.live = Blocks::of(counters.live);
        self.high_water = Blocks::of(counters.high_water);
        self.sampling = counters.sampling.as_ref().map(SamplingStatus::of);
        self.lost_events = counters.lost_events;
        self.lost_since_ms = counters.lost_since_ms;
        self.overhead = OverheadStatus {
            memory_bytes: counters.own_bytes,
            collector_cpu_ns: counters.collector_cpu_ns,
            log_bytes: counters.log_bytes,
        };
        self.log_given_up = counters.log_given_up;
        self.stacks_bounded = counters.stacks_bounded;
        let ended = counters.ended;
        self.trouble = ended.map(|reason| format!("recording ended: {reason}"));
        self.hooks = counters.hooks.to_string();
        self.notes = counters.notes;
    }

    /// Fills in what a finished session had counted.
    pub(crate) fn sum_up(&mut self, last: &Snapshot) {
        self.events = last.totals.events;
        self.allocated = Blocks::of(last.totals.allocated);
        self.live = Blocks::of(last.totals.live);
        self.high_water = Blocks::of(last.totals.high_water);
        self.sampling = last.sampling.as_ref().map(SamplingStatus::of);
        self.lost_events = last.lost_events;
        self.lost_since_ms = last.lost_since_ms;
        self.overhead = OverheadStatus {
            memory_bytes: last.own_bytes,
            collector_cpu_ns: last.collector_cpu_ns,
            log_bytes: last.log.as_ref().map_or(0, |log| log.bytes),
        };
        self.log_given_up = last.log_given_up.clone();
        self.stacks_bounded = last.stacks_bounded.clone();
        self.hooks = last.hooks.to_string();
        self.notes.clone_from(&last.notes);
    }
}
