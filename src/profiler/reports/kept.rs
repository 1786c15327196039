//! The reports of earlier sessions: listed, turned into any output that the present session's can be turned into, deleted.

use std::sync::Arc;
use std::time::SystemTime;

use heapray_report::memray::MemoryLimit;

use super::line::{CallSite, LeakCandidate, Lines};
use super::make::written_output;
use super::making::{Input, KeptInput, Making};
use super::{Made, Origin, OutputSpec, Reports, log_deleted};
use crate::collector::snapshot::Snapshot;
use crate::flight_recorder::{Reason, TriggerKind, memory_of_process};
use crate::os::{process, unique};
use crate::profiler::machine::View;
use crate::profiler::store::{
    Draft, Kept, Label, Note, Output, OutputKey, OutputKind, ReportId, Stored, Triggered,
};
use crate::profiler::waiter::Waiter;
use crate::profiler::{Blocks, Error};

/// A report that is kept: a finished session's, one that the flight recorder wrote while its session went on, or one that
/// was recovered from what a killed process had recorded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct KeptReport {
    /// Its number, digits: what its address ends in.
    pub id: String,
    /// Which session of its process, 1 for the first.
    pub session: u64,
    /// The process.
    pub pid: u32,
    /// The machine or container that it ran in; empty if that is not known, as of a process that was killed.
    pub host: String,
    /// When the session began.
    #[serde(serialize_with = "crate::os::calendar::serialize")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started: SystemTime,
    /// When it ended; of one that the flight recorder wrote, that moment.
    #[serde(serialize_with = "crate::os::calendar::serialize")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub ended: SystemTime,
    /// Whether it is what `report`, `flamegraph` and `stats` tell of, too.
    pub present: bool,
    /// Its length in bytes.
    pub report_bytes: u64,
    /// Allocations and frees seen.
    pub events: u64,
    /// Everything that was allocated.
    pub allocated: Blocks,
    /// Not freed at its end.
    pub live: Blocks,
    /// Live at the high-water mark.
    pub high_water: Blocks,
    /// Events that were lost because the collector could not keep up. Not 0: all sums are too low.
    pub lost_events: u64,
    /// The line of the service's own code with the most that was not freed; null if all was.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub largest: Option<CallSite>,
    /// The line that most probably leaks; null if none does, or if the session was too short to tell.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub leak: Option<LeakCandidate>,
    /// Why it was written without being asked for; null if its session was simply stopped.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub trigger: Option<TriggerCause>,
    /// The address of its copy in an object storage; null if there is none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub stored: Option<String>,
}

/// Why a report was written without being asked for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct TriggerCause {
    /// What it was.
    pub kind: TriggerKind,
    /// The same for people, with its figures.
    pub reason: String,
}

/// Least and most memory that reading a kept report may take. One of 100,000 call sites takes 30 MiB.
const LEAST_MEMORY: u64 = 64 << 20;
const MOST_MEMORY: u64 = 512 << 20;

impl Reports {
    /// Returns the kept reports, the latest first. Reads a few small files.
    pub(crate) fn kept(&self) -> Vec<KeptReport> {
        let present = self.present();
        let list = self.store.archive.list().into_iter();
        list.map(|kept| describe(kept, present)).collect()
    }

    /// Does what [`kept`](Self::kept) does, without blocking.
    ///
    /// # Errors
    ///
    /// A panic of the profiler's.
    #[cfg(feature = "http")]
    pub(crate) async fn list(self: &Arc<Reports>) -> Result<Vec<KeptReport>, Error> {
        let reports = Arc::clone(self);
        self.look_up(move || reports.kept()).await
    }

    /// Returns one of the kept reports, without blocking.
    ///
    /// # Errors
    ///
    /// [`Error::NotKept`].
    #[cfg(feature = "http")]
    pub(crate) async fn find(self: &Arc<Reports>, id: ReportId) -> Result<KeptReport, Error> {
        let reports = Arc::clone(self);
        self.look_up(move || {
            let kept = reports.store.archive.find(id).ok_or(Error::NotKept(id))?;
            Ok(describe(kept, reports.present()))
        })
        .await?
    }

    /// Returns the kept report that is the present session's, if that has ended.
    fn present(&self) -> Option<ReportId> {
        let (session, recording) = self.machine.session();
        let id = self.kept_id_of(session)?;
        (!recording).then_some(id)
    }

    /// Returns the number under which the report of `session` is kept, if it is the last one that was kept.
    pub(in crate::profiler) fn kept_id_of(&self, session: u64) -> Option<ReportId> {
        let (kept_session, id) = (*self.kept_as.lock())?;
        (session == kept_session).then_some(id)
    }

    /// Gives an output of a kept report to `waiter`, or enqueues it. Files thread only.
    pub(super) fn find_or_enqueue_kept(
        self: &Arc<Reports>,
        id: ReportId,
        key: OutputKey,
        waiter: Waiter<Made>,
    ) {
        if self.store.archive.find(id).is_none() {
            return waiter.give(Err(Error::NotKept(id)));
        }
        if self.present() == Some(id) && key.compared_with().is_none() {
            return self.find_or_enqueue(key, waiter, false);
        }
        let origin = Origin::Kept(id);
        if let Some(output) = self.recent.find(origin, key) {
            return waiter.give(Ok(output));
        }
        self.enqueue(OutputSpec { origin, key }, waiter, false);
    }

    pub(super) fn make_of_kept(&self, id: ReportId, key: OutputKey) -> Result<Output, Error> {
        let kept = self.store.archive.find(id).ok_or(Error::NotKept(id))?;
        let whole = self.open_kept(&kept)?;
        if !key.is_as_kept() {
            return Err(Error::UnsupportedForKept);
        }
        if key == OutputKey::new(OutputKind::Report) {
            return Ok(whole);
        }
        let origin = Origin::Kept(id);
        if let Some(output) = self.room_for(OutputSpec { origin, key })? {
            return Ok(output);
        }
        let label = Label {
            key,
            taken: kept.note.ended,
            snapshot: false,
        };
        let since = key
            .compared_with()
            .map(|since| self.open_earlier(since).map(Box::new))
            .transpose()?;
        let input = Input::Kept {
            report: KeptInput { id, file: whole },
            since,
            limit: memory_limit(),
        };
        let prepared = self.store.directory.prepare();
        prepared.map_err(|error| self.not_written(error))?;
        let new = || Draft::new(self.store.directory.path());
        let written = written_output(
            &mut Making::new(input, &self.wanted),
            key,
            key.is_whole(),
            new,
        );
        let written = written.and_then(|draft| Ok(draft.detach(label)?));
        let output = written.map_err(|failure| self.failed(failure))?;
        self.recent.remember(origin, key, &output);
        Ok(output)
    }

    /// Opens the earlier report with which a kept report is compared. Returns it with the time of its end.
    fn open_earlier(&self, id: ReportId) -> Result<(KeptInput, SystemTime), Error> {
        let kept = self.store.archive.find(id).ok_or(Error::NotKept(id))?;
        let file = self.open_kept(&kept)?;
        Ok((KeptInput { id, file }, kept.note.ended))
    }

    /// Opens the kept report's own file. Reads it all when it is opened for the first time.
    fn open_kept(&self, kept: &Kept) -> Result<Output, Error> {
        let same = |stored: &Stored| stored.checksum() == kept.note.hash;
        let known = self.verified.find(kept.id).filter(same);
        let mut stored = known.unwrap_or_else(|| self.store.archive.stored(kept));
        let opened = stored.open_and_verify().ok().flatten();
        let output = opened.ok_or(Error::Damaged(kept.id))?;
        self.verified.remember(kept.id, stored);
        Ok(output)
    }

    /// Deletes a kept report, blocking; if it is the present session's, all other outputs of that session as well.
    ///
    /// # Errors
    ///
    /// [`Error::NotKept`], or [`Error::Output`] if the file system refuses.
    pub(in crate::profiler) fn delete_blocking(
        self: &Arc<Reports>,
        id: ReportId,
    ) -> Result<(), Error> {
        let reports = Arc::clone(self);
        // On the thread that makes outputs: nothing is being made of it meanwhile.
        self.output.run(move || reports.delete_now(id))?
    }

    /// Does what [`delete_blocking`](Self::delete_blocking) does, without blocking.
    ///
    /// # Errors
    ///
    /// The same.
    #[cfg(feature = "http")]
    pub(crate) async fn delete(self: &Arc<Reports>, id: ReportId) -> Result<(), Error> {
        let reports = Arc::clone(self);
        self.output.call(move || reports.delete_now(id)).await?
    }

    fn delete_now(&self, id: ReportId) -> Result<(), Error> {
        let present = self.present() == Some(id);
        let removed = self.store.archive.remove(id);
        let removed = removed.map_err(|error| self.not_written(error))?;
        self.recent.forget(id);
        self.verified.forget(id);
        if !removed {
            return Err(Error::NotKept(id));
        }
        if present {
            let (session, _) = self.machine.session();
            if self.machine.forget(session) {
                let deleted = self.session_outputs().forget(session);
                log_deleted(&deleted);
            }
        }
        tracing::info!(%id, "a kept report was deleted");
        Ok(())
    }

    /// Keeps the report that a session has left. The session's report exists whether or not this succeeds.
    pub(super) fn keep(&self, view: &View, lines: Lines, output: &Output) {
        let path = self.store.directory.path();
        let path = path.join(OutputKey::new(OutputKind::Report).stored_name());
        let note = note(
            view.session,
            &view.snapshot,
            lines,
            output,
            view.cause.as_ref(),
        );
        match self.store.archive.keep(&path, output, &note) {
            Ok(Some(id)) => {
                self.recent.forget(id);
                self.verified.forget(id);
                *self.kept_as.lock() = Some((view.session, id));
            }
            Ok(None) => tracing::info!(
                "the report is not kept after the next start: it is larger than MEMRAY_PROFILER_KEEP_BYTES, or none are kept"
            ),
            Err(error) => {
                tracing::warn!(%error, "the report is not kept after the next start");
            }
        }
    }
}

/// Returns how much memory reading a kept report may take: a quarter of what the process can have.
fn memory_limit() -> MemoryLimit {
    let quarter = memory_of_process().map_or(u64::MAX, |memory| memory / 4);
    MemoryLimit(quarter.clamp(LEAST_MEMORY, MOST_MEMORY))
}

/// Returns the note that is stored beside a report. `why`: the flight recorder's reason, if it has one.
pub(in crate::profiler) fn note(
    session: u64,
    snapshot: &Snapshot,
    lines: Lines,
    output: &Output,
    why: Option<&Reason>,
) -> Note {
    let totals = &snapshot.totals;
    Note {
        session,
        pid: std::process::id(),
        life: unique::life(),
        host: process::host(),
        started: snapshot.started,
        ended: snapshot.taken,
        len: output.len(),
        hash: output.checksum(),
        events: totals.events,
        allocated: totals.allocated,
        live: totals.live,
        high_water: totals.high_water,
        lost_events: snapshot.lost_events,
        largest: lines.largest,
        leak: lines.leak,
        trigger: why.map(|why| Triggered {
            kind: why.kind,
            reason: why.text.clone(),
            at_end: !snapshot.still_recording,
        }),
        stored: None,
    }
}

/// Returns what a list shows of a report. `present`: the one that is the present session's.
pub(in crate::profiler) fn describe(kept: Kept, present: Option<ReportId>) -> KeptReport {
    let Kept { id, note } = kept;
    KeptReport {
        id: id.to_string(),
        session: note.session,
        pid: note.pid,
        host: note.host,
        started: note.started,
        ended: note.ended,
        present: present == Some(id),
        report_bytes: note.len,
        events: note.events,
        allocated: Blocks::of(note.allocated),
        live: Blocks::of(note.live),
        high_water: Blocks::of(note.high_water),
        lost_events: note.lost_events,
        largest: note.largest.map(CallSite::from),
        leak: note.leak.map(LeakCandidate::from),
        trigger: note.trigger.map(|trigger| TriggerCause {
            kind: trigger.kind,
            reason: trigger.reason,
        }),
        stored: note.stored,
    }
}
