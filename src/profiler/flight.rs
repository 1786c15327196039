//! The reports that the flight recorder asks for: written at once on a thread of their own, and kept.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use heapray_report::error_chain;
use heapray_report::memray::{Version, write_aggregated};

use super::lock::{Lock, Rank};
use super::machine::Machine;
use super::reports::{Lines, Reports, note, or_panicked};
use super::reserve::{DiskReserve, RESERVE};
use super::worker::Worker;
use super::{Blocks, Error};
use crate::announce;
use crate::capture::{failure, memory};
use crate::config::Config;
use crate::flight_recorder::{Reason, TriggerKind};
use crate::os::process;
use crate::profiler::store::{Draft, Label, OutputKey, OutputKind, ReportId, Store};
use crate::symbolize::{self, Known, NameMode, ReportOptions};

/// What made the flight recorder write a report, and what became of that.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Trigger {
    /// What it was.
    pub kind: TriggerKind,
    /// The same for people, with its figures.
    pub reason: String,
    /// When.
    #[serde(serialize_with = "crate::os::calendar::serialize")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: SystemTime,
    /// What was live then.
    pub live: Blocks,
    /// The kept report's number; null if there is none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub report: Option<String>,
    /// Why there is none; null if there is one.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub trouble: Option<String>,
}

/// The service's own callback, which gets each [`Trigger`].
#[derive(Clone)]
pub(super) struct OnTrigger(pub(super) Arc<dyn Fn(&Trigger) + Send + Sync>);

impl fmt::Debug for OnTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnTrigger")
    }
}

/// With less free address space than this, symbols are not looked up: a failed allocation there would end the service.
const LEAST_ADDRESS_SPACE: usize = 32 << 20;

/// Address space is looked for so many times, so long apart: a thread that takes it all soon fails and waits, and the
/// memory that is reserved for the report is released then.
const LOOKS: u32 = 30;
const PAUSE: Duration = Duration::from_millis(10);

/// Longest wait for the copy of a report in an object storage before the process ends.
#[cfg(feature = "store")]
const COPY: Duration = Duration::from_secs(4);

/// The name of its thread.
const THREAD: &str = "heapray-flight";

/// Writes reports while a session goes on, on a thread of its own: such a report never waits for another one.
#[derive(Debug)]
pub(crate) struct FlightWriter {
    config: Arc<Config>,
    machine: Arc<Machine>,
    store: Arc<Store>,
    reports: Arc<Reports>,
    thread: Worker,
    on_trigger: Option<OnTrigger>,
    last: Lock<Option<Trigger>>,
    reserve: Lock<Option<DiskReserve>>,
    /// Names that were looked up when the end of memory came closer.
    symbols: Lock<Known>,
}

/// Asks a [`FlightWriter`] for reports without keeping it alive.
#[derive(Debug)]
pub(super) struct FlightRequests {
    writer: Weak<FlightWriter>,
    thread: Worker,
}

impl FlightRequests {
    /// Has a report written for `reason`. Returns at once.
    pub(super) fn write_report(&self, reason: Reason) {
        let writer = self.writer.clone();
        self.thread.submit(move || match writer.upgrade() {
            Some(writer) => writer.write_and_tell(&reason),
            None => failure::done(),
        });
    }

    /// Has names looked up: a report is due soon. Returns at once.
    pub(super) fn get_ready(&self) {
        let writer = self.writer.clone();
        self.thread.submit(move || {
            if let Some(writer) = writer.upgrade() {
                writer.look_up_names();
            }
        });
    }
}

impl FlightWriter {
    /// # Errors
    ///
    /// There can be no more threads.
    pub(super) fn new(
        config: Arc<Config>,
        machine: Arc<Machine>,
        store: Arc<Store>,
        reports: Arc<Reports>,
        on_trigger: Option<OnTrigger>,
    ) -> io::Result<FlightWriter> {
        Ok(FlightWriter {
            config,
            machine,
            store,
            reports,
            thread: Worker::spawn(THREAD)?,
            on_trigger,
            last: Lock::new(Rank::LastTrigger, None),
            reserve: Lock::new(Rank::DiskReserve, None),
            symbols: Lock::new(Rank::FlightSymbols, Known::default()),
        })
    }

    pub(super) fn requests(self: &Arc<FlightWriter>) -> FlightRequests {
        FlightRequests {
            writer: Arc::downgrade(self),
            thread: self.thread.clone(),
        }
    }

    /// Waits until nothing is being written, unless the callback itself calls this. Returns whether that is so by `deadline`.
    pub(super) fn wait_until(&self, deadline: Instant) -> bool {
        // A job that panicked was logged already.
        std::thread::current().name() == Some(THREAD)
            || self.thread.run_until(deadline, || ()).is_some()
    }

    pub(super) fn last(&self) -> Option<Trigger> {
        self.last.lock().clone()
    }

    /// Reserves disk space for a report, if there is enough.
    pub(super) fn reserve_disk(&self) {
        let mut reserve = self.reserve.lock();
        if reserve.is_none() && self.store.archive.bound() / 16 >= RESERVE {
            *reserve = DiskReserve::take(self.store.directory.path());
        }
    }

    /// Releases it.
    pub(super) fn release_disk(&self) {
        self.reserve.lock().take();
    }

    /// Writes a report for `reason`, keeps it, and calls the service's callback.
    fn write_and_tell(&self, reason: &Reason) {
        let at = SystemTime::now();
        // Memory is short: what clients have asked for comes after this.
        let hold = self.reports.hold();
        let made = or_panicked(|| self.write(reason));
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
            #[cfg(feature = "store")]
            self.store.archive.wait_for_copy(Instant::now() + COPY);
            process::exit_at_once(code);
        }
        *self.last.lock() = Some(trigger.clone());
        // Before anything that may need a lock of the service's: a thread that waits for this report may hold it.
        failure::done();
        if let Some(trouble) = &trigger.trouble {
            let reason = &trigger.reason;
            announce::error(format_args!(
                "a report was due ({reason}), but is not there: {trouble}"
            ));
        } else {
            let id = trigger.report.as_deref().unwrap_or_default();
            announce::warn(format_args!("report {id} was written: {}", trigger.reason));
        }
        if let Some(OnTrigger(tell)) = &self.on_trigger
            && catch_unwind(AssertUnwindSafe(|| tell(&trigger))).is_err()
        {
            tracing::error!("the service's own callback for such reports panicked");
        }
        // For the next one.
        if self.machine.running().is_some() {
            self.reserve_disk();
        }
    }

    /// Looks up the names of the call sites that there are now: when a report is due, there may be no time for it.
    fn look_up_names(&self) {
        let Some(view) = self.machine.running_view() else {
            return;
        };
        let mut known = Known::default();
        let stacks = &view.snapshot.stacks;
        let _names = symbolize::resolve_again(stacks, &ReportOptions::default(), &mut known);
        *self.symbols.lock() = known;
    }

    fn write(&self, reason: &Reason) -> Result<(ReportId, Blocks), Error> {
        if process::memory_is_limited() && !(0..LOOKS).any(|look| has_address_space(look > 0)) {
            return Err(Error::Internal(
                "too little address space is left to write a report in",
            ));
        }
        let running = self.machine.running_view();
        let view = running.map_or_else(|| self.machine.view(), Ok)?;
        if !view.snapshot.still_recording {
            // The session has ended meanwhile, and its report is there.
            let id = self.reports.kept_id_of(view.session);
            let live = Blocks::of(view.snapshot.totals.live);
            return id.map(|id| (id, live)).ok_or(Error::NotRecording);
        }
        let mut snapshot = Arc::unwrap_or_clone(view.snapshot);
        snapshot
            .notes
            .insert(0, format!("written because {}", reason.text));
        // memray shows this as its aggregated format, which has no events.
        snapshot.log = None;
        let store = &self.store;
        let not_written = |error| Error::not_written(store, error);
        store.directory.prepare().map_err(not_written)?;
        self.release_disk();
        let mut known = std::mem::take(&mut *self.symbols.lock());
        let options = ReportOptions {
            names: NameMode::Both,
            by_address: true,
            ..ReportOptions::default()
        };
        let report = symbolize::report_again(&snapshot, &options, &mut known).report;
        drop(known);
        let label = Label {
            key: OutputKey::new(OutputKind::Report),
            taken: snapshot.taken,
            snapshot: true,
        };
        let id = Draft::new(store.directory.path()).and_then(|mut draft| {
            write_aggregated(&report, Version::V13, &mut draft)?;
            let output = draft.written(label)?;
            let note = note(
                view.session,
                &snapshot,
                Lines::of(&report),
                &output,
                Some(reason),
            );
            let id = store.archive.keep(draft.path(), &output, &note)?;
            // It outlives the process from here on; this makes it outlive the machine.
            draft.sync()?;
            Ok(id)
        });
        let id = id.map_err(not_written)?;
        let id = id.ok_or(Error::Internal(
            "it is larger than what may be kept of such reports",
        ))?;
        Ok((id, Blocks::of(snapshot.totals.live)))
    }
}

impl Drop for FlightWriter {
    fn drop(&mut self) {
        // Before the directory, which goes if it is empty.
        self.release_disk();
    }
}

/// Returns whether there is address space for a report, after a pause if it is not the first look.
fn has_address_space(again: bool) -> bool {
    if again {
        std::thread::sleep(PAUSE);
    }
    memory::could_map(LEAST_ADDRESS_SPACE)
}

/// Returns whether the process may be about to fail for want of address space: whatever can wait should.
#[cfg(feature = "store")]
pub(super) fn is_short_of_address_space() -> bool {
    process::memory_is_limited() && !has_address_space(false)
}

/// Writes a last line to standard error, without any lock of the service's log.
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
