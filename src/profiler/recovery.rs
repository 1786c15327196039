//! What processes have left that were killed during a session: recovered into kept reports, and cleared away.
//!
//! This runs on a thread of its own after the start of each process and of each session, so it delays nothing. One process at
//! a time claims a log (by the lock of its file). The log is removed once its report is kept.

use std::io;
use std::path::Path;
use std::sync::Arc;

use heapray_report::error_chain;
use heapray_report::memray::{Version, write_aggregated};

use super::reports::{Lines, Reports};
use super::worker::Worker;
use crate::announce;
use crate::config::Config;
use crate::flight_recorder::{TriggerKind, memory_left};
use crate::os::{process, program_symbols, unique};
use crate::profiler::store::{
    Draft, Label, Leftover, Note, OutputKey, OutputKind, ReportId, Store, Triggered, is_too_long,
    leftovers,
};
use crate::session::recover::{Bounds, RecoverError, Recovered, recover_within};
use crate::symbolize::{self, ReportOptions};

/// A log up to this length becomes a report with each allocation; a longer one becomes a report with sums.
const WHOLE: u64 = 64 << 20;

/// Least and most memory that a recovery may take. In between, it may take a quarter of what there is.
const MEMORY: (u64, u64) = (16 << 20, 256 << 20);
/// Bytes that a call stack takes while its report is made.
const STACK: u64 = 300;

/// The outcome of recovering a log.
enum Outcome {
    Kept(ReportId),
    /// It is empty or not needed; the text says why.
    Removed(&'static str),
    /// It needs too much memory: it stays under another name.
    Aside,
    /// The process is ending: the next one recovers it.
    Later,
}

/// Recovers the logs of dead processes, on a thread of its own.
#[derive(Debug)]
pub(super) struct Recovery {
    work: Arc<Work>,
    thread: Worker,
}

#[derive(Debug)]
struct Work {
    store: Arc<Store>,
    reports: Arc<Reports>,
    /// How many reports of killed processes are kept.
    keep: u32,
}

impl Recovery {
    /// # Errors
    ///
    /// There can be no more threads.
    pub(super) fn new(
        store: Arc<Store>,
        reports: Arc<Reports>,
        config: &Config,
    ) -> io::Result<Recovery> {
        let keep = config.trigger_keep;
        Ok(Recovery {
            work: Arc::new(Work {
                store,
                reports,
                keep,
            }),
            thread: Worker::spawn("heapray-recover")?,
        })
    }

    /// Clears away what dead processes have left and recovers their logs. Returns at once.
    pub(super) fn sweep_and_recover(&self) {
        self.submit(|work| {
            // Else the collector would, at its first snapshot.
            program_symbols::look_for_all();
            if let Some(lack) = symbolize::symbols_that_lack() {
                announce::warn(lack);
            }
            work.store.directory.sweep();
            work.store.archive.recall_earlier_reports();
            work.recover_all();
        });
    }

    /// Recovers the logs that dead processes have left. Returns at once.
    pub(super) fn recover(&self) {
        self.submit(Work::recover_all);
    }

    fn submit(&self, job: fn(&Work)) {
        let work = Arc::downgrade(&self.work);
        self.thread.submit(move || {
            // It keeps nothing alive.
            if let Some(work) = work.upgrade() {
                job(&work);
            }
        });
    }
}

impl Work {
    fn recover_all(&self) {
        for path in leftovers(self.store.directory.path()) {
            if self.reports.is_ending() {
                return;
            }
            if let Some(leftover) = Leftover::claim(&path) {
                self.recover_one(leftover);
            }
        }
        self.store.archive.make_room(0, false);
    }

    fn recover_one(&self, mut leftover: Leftover) {
        let begun = leftover.begin_try();
        let outcome = begun
            .map_err(RecoverError::Io)
            .and_then(|()| self.recover(&leftover));
        let path = leftover.path().display().to_string();
        let done = match outcome {
            Ok(Outcome::Kept(id)) => {
                tracing::warn!(%id, log = %path, "recovered the report of a session that had ended without one");
                leftover.remove()
            }
            Ok(Outcome::Removed(why)) => {
                tracing::info!(log = %path, "an event log that was left is deleted: {why}");
                leftover.remove()
            }
            Ok(Outcome::Later) => leftover.put_back(),
            Ok(Outcome::Aside) => leftover.put_aside().map(|path| {
                let path = path.display();
                tracing::warn!(
                    %path,
                    "an event log that was left needs too much memory to be recovered here: use `heapray recover`"
                );
            }),
            Err(error @ (RecoverError::Empty | RecoverError::NoLog(_))) => {
                tracing::warn!(log = %path, error = %error_chain(&error), "an event log that was left is deleted");
                leftover.remove()
            }
            Err(error) => {
                tracing::warn!(log = %path, error = %error_chain(&error), "an event log that was left is not recovered yet");
                Ok(())
            }
        };
        if let Err(error) = done {
            tracing::warn!(log = %path, %error, "an event log that was left stays");
        }
    }

    fn recover(&self, leftover: &Leftover) -> Result<Outcome, RecoverError> {
        if self.keep == 0 {
            return Ok(Outcome::Removed("no such reports are kept"));
        }
        let left = memory_left(Path::new("/")).unwrap_or(u64::MAX);
        let memory = (left / 4).clamp(MEMORY.0, MEMORY.1);
        let ends = || self.reports.is_ending();
        let bounds = Bounds {
            stacks: (memory / 2 / STACK) as usize,
            memory: memory / 2,
            ends: &ends,
        };
        let file = Arc::clone(leftover.file());
        let recovered = match recover_within(file, &ReportOptions::default(), &bounds) {
            Ok(recovered) => recovered,
            Err(RecoverError::TooLarge) => return Ok(Outcome::Aside),
            Err(RecoverError::Io(error)) if error.kind() == io::ErrorKind::Interrupted => {
                return Ok(Outcome::Later);
            }
            Err(error) => return Err(error),
        };
        let (life, _) = leftover.session();
        if self.store.archive.has_session(life, recovered.started()) {
            return Ok(Outcome::Removed("its report is kept"));
        }
        let kept = self.keep_recovered(leftover, &recovered);
        kept.map_err(RecoverError::Io).map(|kept| {
            let outcome = kept.map(Outcome::Kept);
            outcome.unwrap_or(Outcome::Removed("there is no room for its report"))
        })
    }

    fn keep_recovered(
        &self,
        leftover: &Leftover,
        recovered: &Recovered,
    ) -> io::Result<Option<ReportId>> {
        let path = self.store.directory.path();
        let long = leftover.file().metadata()?.len() > WHOLE;
        let whole = || {
            let mut draft = Draft::new(path)?.at_most(self.store.archive.left());
            recovered.write(Version::V13, &mut draft)?;
            draft.sync()?;
            Ok(draft)
        };
        let sums = || {
            let mut draft = Draft::new(path)?;
            write_aggregated(recovered.report(), Version::V13, &mut draft)?;
            draft.sync()?;
            Ok(draft)
        };
        let mut draft = match if long { sums() } else { whole() } {
            Err(error) if is_too_long(&error) && !long => sums()?,
            draft => draft?,
        };
        let label = Label {
            key: OutputKey::new(OutputKind::Report),
            taken: recovered.ended(),
            snapshot: false,
        };
        let output = draft.written(label)?;
        let note = self.note_of(leftover, recovered, (output.len(), output.checksum()));
        self.store.archive.keep(draft.path(), &output, &note)
    }

    fn note_of(&self, leftover: &Leftover, recovered: &Recovered, (len, hash): (u64, u64)) -> Note {
        let report = recovered.report();
        let (life, session) = leftover.session();
        let totals = &report.totals;
        let pid = report.about.pid;
        let own = life == unique::life();
        let (kind, reason) = if own {
            let reason = "the report could not be written when the session ended".to_owned();
            (TriggerKind::Unwritten, reason)
        } else {
            let reason =
                format!("process {pid} ended while it recorded: it was killed, or crashed");
            (TriggerKind::Killed, reason)
        };
        let lines = Lines::of(report);
        Note {
            session,
            pid,
            life,
            // The log does not say where another process ran.
            host: if own { process::host() } else { String::new() },
            started: recovered.started(),
            ended: recovered.ended().max(recovered.started()),
            len,
            hash,
            events: report.about.events,
            allocated: totals.allocated,
            live: totals.live,
            high_water: totals.high_water,
            lost_events: report.conditions.lost_events,
            largest: lines.largest,
            leak: lines.leak,
            trigger: Some(Triggered {
                kind,
                reason,
                at_end: true,
            }),
            stored: None,
        }
    }
}
