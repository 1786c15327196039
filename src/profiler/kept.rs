//! The reports of earlier sessions: listed, turned into whatever the present session's can be turned into, deleted.

use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use heapray_report::Report;
use heapray_report::memray::{self, Format, MemoryLimit, ReadError};
use heapray_report::views::{self, Names, OwnSite};

use super::control::Core;
use super::outputs::{Made, Origin, Trip, render};
use super::waiter::Waiter;
use super::while_wanted::{self, WhileWanted};
use super::{Blocks, Error};
use crate::collector::snapshot::Snapshot;
use crate::flight_recorder::{Reason, TriggerKind, memory_of_process};
use crate::os::unique;
use crate::profiler::store::{
    Draft, Kept, Label, Leak, Note, Output, OutputKey, OutputKind, ReportId, Stored, Triggered,
};

/// A report that is kept: a finished session's, one that the flight recorder wrote while its session went on, or one that
/// was recovered from what a killed process had recorded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct KeptReport {
    /// Its number, digits: what its address ends in.
    pub id: String,
    /// Which session of its process, 1 for the first.
    pub session: u64,
    /// The process.
    pub pid: u32,
    /// When the session began.
    #[serde(serialize_with = "crate::os::calendar::serialize")]
    #[cfg_attr(feature = "http", schema(value_type = String, format = DateTime))]
    pub started: SystemTime,
    /// When it ended; of one that the flight recorder wrote, that moment.
    #[serde(serialize_with = "crate::os::calendar::serialize")]
    #[cfg_attr(feature = "http", schema(value_type = String, format = DateTime))]
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
    #[cfg_attr(feature = "http", schema(required))]
    pub leak: Option<CallSite>,
    /// Why it was written without being asked for; null if its session was simply stopped.
    #[cfg_attr(feature = "http", schema(required))]
    pub trigger: Option<TriggerCause>,
}

/// Why a report was written without being asked for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct TriggerCause {
    /// What it was.
    pub kind: TriggerKind,
    /// The same for people, with its figures.
    pub reason: String,
}

/// A line of code, and what of its allocations was not freed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema), schema(as = LeakLine))]
#[non_exhaustive]
pub struct CallSite {
    /// The function.
    pub function: String,
    /// The source file; where it is not known, the program or library.
    pub file: String,
    /// The line in it; 0 if it is not known.
    pub line: u32,
    /// What is live.
    pub live: Blocks,
}

impl CallSite {
    /// What is still live of `site`; `None` if nothing is, or its line is not known.
    pub(crate) fn of(report: &Report, site: &OwnSite) -> Option<CallSite> {
        leak_at(report, site).map(CallSite::from)
    }
}

impl From<Leak> for CallSite {
    fn from(leak: Leak) -> CallSite {
        CallSite {
            function: leak.function,
            file: leak.file,
            line: leak.line,
            live: Blocks::of(leak.live),
        }
    }
}

/// Answers that were made lately and have no name in the profiler's directory, by origin and making: a page that is asked for in pieces is made once.
#[derive(Debug, Default)]
pub(super) struct Lately {
    made: Mutex<VecDeque<(Origin, OutputKey, Output)>>,
    /// Reports whose bytes were compared with their checksum.
    verified: Mutex<VecDeque<(ReportId, Stored)>>,
}

/// Without a name they take disk all the same: this many, none longer than this.
const MADE: usize = 12;
const LONGEST: u64 = 32 << 20;
const VERIFIED: usize = 16;

/// Least and most memory that reading a kept report may take. One of 100,000 call sites takes 30 MiB.
const LEAST_MEMORY: u64 = 64 << 20;
const MOST_MEMORY: u64 = 512 << 20;

impl Lately {
    fn made(&self) -> MutexGuard<'_, VecDeque<(Origin, OutputKey, Output)>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn verified(&self) -> MutexGuard<'_, VecDeque<(ReportId, Stored)>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, origin: Origin, key: OutputKey) -> Option<Output> {
        let made = self.made();
        let found = made.iter().find(|(o, k, _)| (*o, *k) == (origin, key));
        found.map(|(_, _, output)| output.clone())
    }

    pub(super) fn remember(&self, origin: Origin, key: OutputKey, output: &Output) {
        if output.len() <= LONGEST {
            let mut made = self.made();
            made.truncate(MADE - 1);
            made.push_front((origin, key, output.clone()));
        }
    }

    /// Gives up what is only remembered: others need the room.
    pub(super) fn make_room(&self) {
        self.made().clear();
    }

    fn forget(&self, id: ReportId) {
        self.made().retain(|(other, ..)| *other != Origin::Kept(id));
        self.verified().retain(|(other, _)| *other != id);
    }
}

impl Core {
    /// The kept reports, the latest first. Reads a few small files.
    pub(crate) fn kept(&self) -> Vec<KeptReport> {
        let present = self.present();
        let list = self.archive.list().into_iter();
        list.map(|kept| describe(kept, present)).collect()
    }

    /// One of them.
    #[cfg(feature = "http")]
    pub(crate) fn kept_report(&self, id: ReportId) -> Result<KeptReport, Error> {
        let kept = self.archive.find(id).ok_or(Error::NotKept(id))?;
        Ok(describe(kept, self.present()))
    }

    /// The kept report that is the present session's, if that has ended.
    fn present(&self) -> Option<ReportId> {
        let (session, recording) = self.machine.session();
        let (kept_session, id) = self.outputs.kept_as()?;
        (session == kept_session && !recording).then_some(id)
    }

    /// Finds or makes an output of a kept report and hands it to `waiter`, on one of the profiler's threads.
    pub(crate) fn request_kept(
        self: &Arc<Core>,
        id: ReportId,
        key: OutputKey,
        waiter: Waiter<Made>,
    ) {
        let core = Arc::clone(self);
        self.files.submit(move || {
            if waiter.is_gone() {
                return;
            }
            if core.archive.find(id).is_none() {
                return waiter.give(Err(Error::NotKept(id)));
            }
            if core.present() == Some(id) {
                return core.request(key, waiter);
            }
            if let Some(output) = core.lately.find(Origin::Kept(id), key) {
                return waiter.give(Ok(output));
            }
            let trip = Trip {
                origin: Origin::Kept(id),
                key,
            };
            core.enqueue(trip, waiter, false);
        });
    }

    pub(super) fn make_of_kept(&self, id: ReportId, key: OutputKey) -> Result<Output, Error> {
        let kept = self.archive.find(id).ok_or(Error::NotKept(id))?;
        let whole = self.open_kept(&kept)?;
        if !key.is_as_kept() {
            return Err(Error::UnsupportedForKept);
        }
        if key == OutputKey::new(OutputKind::Report) {
            return Ok(whole);
        }
        let origin = Origin::Kept(id);
        if let Some(output) = self.room_for(Trip { origin, key })? {
            return Ok(output);
        }
        let label = Label {
            key,
            taken: kept.note.ended,
            snapshot: false,
        };
        let wanted = self.outputs.wanted();
        let input = || BufReader::with_capacity(256 << 10, WhileWanted::new(whole.clone(), wanted));
        let limit = memory_limit();
        let capture = memray::read_file_within(input(), limit).map_err(|error| match error {
            ReadError::TooLarge(error) => self.not_written(io::Error::other(format!(
                "{error}: download the report and read it with the heapray command"
            ))),
            _ => Error::Damaged(id),
        })?;
        let prepared = self.directory().prepare();
        prepared.map_err(|error| self.not_written(error))?;
        let written = Draft::new(self.directory().path()).and_then(|mut draft| {
            let events = matches!(
                (key.kind(), capture.format),
                (
                    OutputKind::Report | OutputKind::Flamegraph,
                    Format::AllAllocations
                )
            );
            let events = events.then(|| memray::events_of_file_within(input(), limit));
            let events = events.transpose();
            let events = events.map_err(io::Error::other)?;
            let events = events.map(|events| events.map(|event| event.map_err(io::Error::other)));
            let events = events.map(|events| while_wanted::items(events, wanted));
            render(
                key,
                &capture.report,
                events,
                &mut WhileWanted::new(&mut draft, wanted),
            )?;
            draft.detach(label)
        });
        let output = written.map_err(|error| self.not_written(error))?;
        self.lately.remember(origin, key, &output);
        Ok(output)
    }

    /// The kept report's own file. Reads it all when it is opened for the first time.
    fn open_kept(&self, kept: &Kept) -> Result<Output, Error> {
        let known = {
            let verified = self.lately.verified();
            let known = verified.iter().find(|(id, _)| *id == kept.id);
            known.map(|(_, stored)| stored.clone())
        };
        let same = |stored: &Stored| stored.checksum() == kept.note.hash;
        let known = known.filter(same);
        let mut stored = known.unwrap_or_else(|| self.archive.stored(kept));
        let opened = stored.open_and_verify().ok().flatten();
        let output = opened.ok_or(Error::Damaged(kept.id))?;
        let mut verified = self.lately.verified();
        verified.retain(|(id, _)| *id != kept.id);
        verified.truncate(VERIFIED - 1);
        verified.push_front((kept.id, stored));
        Ok(output)
    }

    /// Deletes a kept report; if it is the present session's, all that is left of that, too. Output thread only, so that
    /// nothing is being made of it meanwhile.
    pub(crate) fn delete_kept(&self, id: ReportId) -> Result<(), Error> {
        let present = self.present() == Some(id);
        let removed = self.archive.remove(id);
        let removed = removed.map_err(|error| self.not_written(error))?;
        self.lately.forget(id);
        if !removed {
            return Err(Error::NotKept(id));
        }
        if present {
            let (session, _) = self.machine.session();
            if self.machine.forget(session) {
                self.outputs.shelf().forget(session);
            }
        }
        tracing::info!(%id, "a kept report was deleted");
        Ok(())
    }

    /// Keeps the report that a session has left. That there is one does not depend on it.
    pub(super) fn keep(&self, session: u64, snapshot: &Snapshot, report: &Report, output: &Output) {
        let path = self.directory().path();
        let path = path.join(OutputKey::new(OutputKind::Report).stored_name());
        let cause = self.recorder.cause();
        let note = note(session, snapshot, report, output, cause.as_ref());
        match self.archive.keep(&path, output, &note) {
            Ok(Some(id)) => {
                self.lately.forget(id);
                self.outputs.keep_as(session, id);
            }
            Ok(None) => tracing::info!("the report is larger than what is kept of old sessions"),
            Err(error) => {
                tracing::warn!(%error, "the report will not be kept after the next start")
            }
        }
    }
}

/// What reading a kept report may take: a quarter of the memory that the process can have.
fn memory_limit() -> MemoryLimit {
    let quarter = memory_of_process().map_or(u64::MAX, |memory| memory / 4);
    MemoryLimit(quarter.clamp(LEAST_MEMORY, MOST_MEMORY))
}

/// What is told of a report. `why`: the flight recorder's reason, if it has one.
pub(super) fn note(
    session: u64,
    snapshot: &Snapshot,
    report: &Report,
    output: &Output,
    why: Option<&Reason>,
) -> Note {
    let totals = &snapshot.totals;
    Note {
        session,
        pid: std::process::id(),
        life: unique::life(),
        started: snapshot.started,
        ended: snapshot.taken,
        len: output.len(),
        hash: output.checksum(),
        events: totals.events,
        allocated: totals.allocated,
        live: totals.live,
        high_water: totals.high_water,
        lost_events: snapshot.lost_events,
        leak: leak(report),
        trigger: why.map(|why| Triggered {
            kind: why.kind,
            reason: why.text.clone(),
            at_end: !snapshot.still_recording,
        }),
    }
}

/// The line with the most that is still live.
pub(super) fn leak(report: &Report) -> Option<Leak> {
    let plain = views::named(report, Names::Plain);
    let report = plain.as_ref().unwrap_or(report);
    let sites = views::own_sites(report, &views::Origins::of(report));
    leak_at(report, sites.first()?)
}

/// What is still live of `site`; `None` if nothing is, or its line is not known.
pub(super) fn leak_at(report: &Report, site: &OwnSite) -> Option<Leak> {
    if site.sums.live.bytes == 0 {
        return None;
    }
    let frame = report.frames.get(site.frame?.0 as usize)?;
    Some(Leak {
        function: report.strings.get(frame.function).to_owned(),
        file: report.strings.get(frame.file).to_owned(),
        line: frame.line,
        live: site.sums.live,
    })
}

fn describe(kept: Kept, present: Option<ReportId>) -> KeptReport {
    let Kept { id, note } = kept;
    KeptReport {
        id: id.to_string(),
        session: note.session,
        pid: note.pid,
        started: note.started,
        ended: note.ended,
        present: present == Some(id),
        report_bytes: note.len,
        events: note.events,
        allocated: Blocks::of(note.allocated),
        live: Blocks::of(note.live),
        high_water: Blocks::of(note.high_water),
        lost_events: note.lost_events,
        leak: note.leak.map(CallSite::from),
        trigger: note.trigger.map(|trigger| TriggerCause {
            kind: trigger.kind,
            reason: trigger.reason,
        }),
    }
}
