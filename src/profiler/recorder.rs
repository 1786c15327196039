//! The reports that the flight recorder asks for: written at once on a thread of their own, kept, and told.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use heapray_report::error_chain;
use heapray_report::memray::{Version, write_aggregated};

use super::control::Core;
use super::outputs::or_panicked;
use super::worker::Worker;
use super::{Blocks, Error};
use crate::capture::{failure, memory};
use crate::flight_recorder::{Reason, TriggerKind};
use crate::os::file::file_size_limit;
use crate::os::{file, process};
use crate::profiler::store::{Draft, Label, OutputKey, OutputKind, ReportId};
use crate::symbolize::{self, Known, NameMode, ReportOptions};

/// What made the flight recorder write a report, and what became of that.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Trigger {
    /// What it was.
    pub kind: TriggerKind,
    /// The same for people, with its figures.
    pub reason: String,
    /// When.
    #[serde(serialize_with = "crate::os::calendar::serialize")]
    #[cfg_attr(feature = "http", schema(value_type = String, format = DateTime))]
    pub at: SystemTime,
    /// What was live then.
    pub live: Blocks,
    /// The kept report's number; null if there is none.
    #[cfg_attr(feature = "http", schema(required))]
    pub report: Option<String>,
    /// Why there is none; null if there is one.
    #[cfg_attr(feature = "http", schema(required))]
    pub trouble: Option<String>,
}

/// Who is told of a [`Trigger`].
#[derive(Clone)]
pub(super) struct OnTrigger(pub(super) Arc<dyn Fn(&Trigger) + Send + Sync>);

impl fmt::Debug for OnTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnTrigger")
    }
}

/// What a profiler has for such reports.
#[derive(Debug)]
pub(super) struct Recorder {
    /// Its own, so that such a report never waits for another one.
    pub(super) worker: Worker,
    told: Option<OnTrigger>,
    last: Mutex<Option<Trigger>>,
    /// Why the session is being ended, if memory is why.
    cause: Mutex<Option<Reason>>,
    room: Mutex<Option<Room>>,
    /// Names that were looked up when memory's end came closer.
    known: Mutex<Known>,
}

/// Below this much address space that can be had, symbols are not looked up: who tries and fails takes the service with it.
const LEAST_ROOM: usize = 32 << 20;

/// Times that room is looked for, so long apart: a thread that takes it all fails soon and waits, and what is kept for the
/// report is given up then.
const LOOKS: u32 = 30;
const APART: Duration = Duration::from_millis(10);

/// The name of its thread.
const THREAD: &str = "heapray-flight";

/// Set aside on disk, where at least sixteen times as much may be taken: such a report has call sites, not allocations, and rarely needs more.
pub(super) const DISK: u64 = 4 << 20;

impl Recorder {
    pub(super) fn new(told: Option<OnTrigger>) -> std::io::Result<Recorder> {
        Ok(Recorder {
            worker: Worker::spawn(THREAD)?,
            told,
            last: Mutex::default(),
            cause: Mutex::default(),
            room: Mutex::default(),
            known: Mutex::default(),
        })
    }

    /// Waits until nothing is being written, unless the callback itself asks. Whether it is so by then.
    pub(super) fn wait_until(&self, deadline: Instant) -> bool {
        // A job that panicked was told of already.
        std::thread::current().name() == Some(THREAD)
            || self.worker.run_until(deadline, || ()).is_some()
    }

    pub(super) fn last(&self) -> Option<Trigger> {
        lock(&self.last).clone()
    }

    /// Sets disk aside in `dir`, if there is some, of `bound` bytes that may be taken there.
    pub(super) fn set_aside(&self, dir: &Path, bound: u64) {
        let mut room = lock(&self.room);
        if room.is_none() && bound / 16 >= DISK {
            *room = Room::take(dir);
        }
    }

    /// Gives it back.
    pub(super) fn give_up_room(&self) {
        lock(&self.room).take();
    }

    /// The session ends because of this.
    pub(super) fn set_cause(&self, reason: Option<Reason>) {
        *lock(&self.cause) = reason;
    }

    pub(super) fn cause(&self) -> Option<Reason> {
        lock(&self.cause).clone()
    }

    fn set_last(&self, trigger: Trigger) {
        *lock(&self.last) = Some(trigger);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that takes the room which a report may need. A former process's is removed with its drafts.
#[derive(Debug)]
struct Room {
    path: PathBuf,
    /// Open, so that other processes know that this one lives.
    _file: File,
    pid: u32,
}

impl Room {
    fn take(dir: &Path) -> Option<Room> {
        if file_size_limit() < DISK {
            return None;
        }
        let (path, file) = crate::profiler::store::room(dir).ok()?;
        let pid = std::process::id();
        let descriptor = file.as_raw_fd();
        let room = Room {
            path,
            _file: file,
            pid,
        };
        // Where it is not to be had, it is removed.
        file::set_aside(descriptor, DISK).then_some(room)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            // Somebody else may have removed it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Core {
    /// Writes a report for `reason`, keeps it, and tells of it. On the recorder's thread.
    pub(super) fn record_flight(self: &Arc<Core>, reason: &Reason) {
        let at = SystemTime::now();
        // Memory is short: what clients have asked for comes after this.
        let hold = self.hold();
        let made = or_panicked(|| self.write_flight(reason));
        drop(hold);
        let (report, live, trouble) = match &made {
            Ok((id, live)) => (Some(id.to_string()), *live, None),
            Err(error) => (
                None,
                Blocks::default(),
                Some(error_chain(error).to_string()),
            ),
        };
        let trigger = Trigger {
            kind: reason.kind,
            reason: reason.text.clone(),
            at,
            live,
            report,
            trouble,
        };
        if reason.kind.is_out_of_memory()
            && let Some(code) = self.config.oom_exit_code
        {
            say(&trigger, code);
            process::exit_at_once(code);
        }
        self.recorder.set_last(trigger.clone());
        // Before anything that may need a lock of the service's: who waits here may hold it.
        failure::done();
        if let Some(trouble) = &trigger.trouble {
            tracing::error!(reason = %trigger.reason, %trouble, "a report was due, but is not there");
        } else {
            let id = trigger.report.as_deref().unwrap_or_default();
            tracing::warn!(reason = %trigger.reason, report = id, "a report was written");
        }
        if let Some(OnTrigger(tell)) = &self.recorder.told
            && catch_unwind(AssertUnwindSafe(|| tell(&trigger))).is_err()
        {
            tracing::error!("the service's own callback for such reports panicked");
        }
        // For the next one.
        if self.machine.session().1 {
            self.recorder
                .set_aside(self.directory().path(), self.archive.bound());
        }
    }

    /// Looks up the names of what is there now: when a report is due, there may be no time for it.
    pub(super) fn get_ready_for_flight(&self) {
        let Ok(view) = self.machine.view() else {
            return;
        };
        if view.snapshot.still_recording {
            let mut known = Known::default();
            let _names =
                symbolize::resolve_again(&view.snapshot, &ReportOptions::default(), &mut known);
            *lock(&self.recorder.known) = known;
        }
    }

    fn write_flight(&self, reason: &Reason) -> Result<(ReportId, Blocks), Error> {
        if process::memory_is_limited() && !(0..LOOKS).any(|look| has_room(look > 0)) {
            return Err(Error::Internal(
                "too little address space is left to write a report in",
            ));
        }
        let view = self.machine.view()?;
        if !view.snapshot.still_recording {
            // Its end has come first, and with it its report.
            let kept = self
                .outputs
                .kept_as()
                .filter(|(session, _)| *session == view.session);
            let live = Blocks::of(view.snapshot.totals.live);
            return kept.map(|(_, id)| (id, live)).ok_or(Error::NotRecording);
        }
        let mut snapshot = Arc::unwrap_or_clone(view.snapshot);
        snapshot
            .notes
            .insert(0, format!("written because {}", reason.text));
        // memray shows this as its aggregated format, which has no events.
        snapshot.log = None;
        self.directory()
            .prepare()
            .map_err(|error| self.not_written(error))?;
        self.recorder.give_up_room();
        let mut known = std::mem::take(&mut *lock(&self.recorder.known));
        let options = ReportOptions {
            names: NameMode::Both,
            ..ReportOptions::default()
        };
        let report = symbolize::resolve_again(&snapshot, &options, &mut known).report;
        drop(known);
        let label = Label {
            key: OutputKey::new(OutputKind::Report),
            taken: snapshot.taken,
            snapshot: true,
        };
        let id = Draft::new(self.directory().path()).and_then(|mut draft| {
            write_aggregated(&report, Version::V13, &mut draft)?;
            let output = draft.written(label)?;
            let note = super::kept::note(view.session, &snapshot, &report, &output, Some(reason));
            let id = self.archive.keep(draft.path(), &output, &note)?;
            // It outlives the process from here on; this is for the machine.
            draft.sync()?;
            Ok(id)
        });
        let id = id.map_err(|error| self.not_written(error))?;
        let id = id.ok_or(Error::Internal(
            "it is larger than what may be kept of such reports",
        ))?;
        Ok((id, Blocks::of(snapshot.totals.live)))
    }
}

/// Whether there is address space for a report, after a while if it is not the first look.
fn has_room(again: bool) -> bool {
    if again {
        std::thread::sleep(APART);
    }
    memory::could_map(LEAST_ROOM)
}

/// A last word, past every lock of the service's log.
fn say(trigger: &Trigger, code: i32) {
    let outcome = match (&trigger.report, &trigger.trouble) {
        (Some(id), _) => format!("report {id} is written"),
        (None, trouble) => format!("there is no report: {}", trouble.as_deref().unwrap_or("?")),
    };
    let line = format!("heapray: {}; {outcome}; exit code {code}\n", trigger.reason);
    let stderr = File::options().append(true).open("/proc/self/fd/2");
    // Where standard error is closed, nobody reads it.
    let _ = stderr.and_then(|mut stderr| stderr.write_all(line.as_bytes()));
}
