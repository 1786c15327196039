//! Reports, flame graphs and statistics: found on disk or made, each once however many ask.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heapray_report::formats::Format;
use heapray_report::memray::MemoryLimit;
use heapray_report::model::Event;
use heapray_report::page::Page;
use heapray_report::views::{IntervalOptions, Intervals};
use heapray_report::{Report, error_chain, memray, stats, texts, views};

use super::Error;
use super::control::Core;
use super::handed_out::HandedOut;
use super::machine::View;
use super::queue::Queue;
use super::waiter::Waiter;
use super::while_wanted::{self, WhileWanted};
use crate::profiler::store::{
    Draft, Label, Output, OutputKey, OutputKind, ReportId, Shelf, is_too_long,
};
use crate::symbolize::{self, Apart, Resolved, Wanted};

/// What asking for an output gives.
pub(crate) type Made = Result<Output, Error>;

/// What was made, and what is being made.
#[derive(Debug)]
pub(crate) struct Outputs {
    shelf: Mutex<Shelf>,
    pub(super) queue: Arc<Queue>,
    /// Whether somebody wants what is being made.
    wanted: Wanted,
    handed_out: HandedOut,
    /// Which of the kept reports is which session's.
    kept_as: Mutex<Option<(u64, ReportId)>>,
}

/// What one making is for. Who asks after a new start must not get the former session's work, and who asks for a
/// finished session must not get a snapshot of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Trip {
    pub(super) origin: Origin,
    pub(super) key: OutputKey,
}

/// What an output is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    Session { number: u64, recording: bool },
    Kept(ReportId),
}

impl Outputs {
    pub(crate) fn new() -> Outputs {
        let queue = Arc::new(Queue::default());
        let asked = Arc::clone(&queue);
        Outputs {
            shelf: Mutex::default(),
            queue,
            wanted: Wanted::while_it(move || asked.is_wanted()),
            handed_out: HandedOut::default(),
            kept_as: Mutex::default(),
        }
    }

    pub(super) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The last session of which a report was kept, and the number under which it is.
    pub(super) fn kept_as(&self) -> Option<(u64, ReportId)> {
        *self.kept_as.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keep_as(&self, session: u64, id: ReportId) {
        *self.kept_as.lock().unwrap_or_else(PoisonError::into_inner) = Some((session, id));
    }

    pub(crate) fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // A panic in between leaves at worst a file that is not remembered.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The output of that key, if its bytes are still those that were written; else it is forgotten. Reads it all.
    fn verified(&self, key: OutputKey) -> Option<Output> {
        let (session, mut stored) = self.shelf().stored(key)?;
        let checked = stored.open_and_verify();
        let good = matches!(checked, Ok(Some(_)));
        if !good {
            let path = stored.path().display();
            tracing::warn!(%path, "an output is not what was written any more");
        }
        self.shelf().checked(session, key, good.then_some(stored));
        checked.ok().flatten()
    }
}

impl Core {
    /// Finds or makes an output and hands it to `waiter`, on one of the profiler's threads. Returns at once.
    pub(crate) fn request(self: &Arc<Core>, key: OutputKey, waiter: Waiter<Made>) {
        let core = Arc::clone(self);
        self.files.submit(move || {
            if !waiter.is_gone() {
                core.find_or_enqueue(key, waiter, false);
            }
        });
    }

    /// The report of the session that has just ended. It goes before whatever else is asked for. Control thread only.
    pub(super) fn report_at_once(self: &Arc<Core>, hold: Hold) -> Made {
        self.wait(|core, waiter| {
            core.find_or_enqueue(OutputKey::new(OutputKind::Report), waiter, true);
            // It goes first by itself.
            drop(hold);
        })
    }

    fn find_or_enqueue(self: &Arc<Core>, key: OutputKey, waiter: Waiter<Made>, is_urgent: bool) {
        // What is there is handed out at once, whatever is being made meanwhile.
        let (session, recording) = self.machine.session();
        let origin = Origin::Session {
            number: session,
            recording,
        };
        let trip = Trip { origin, key };
        if !recording {
            let stored = self.outputs.shelf().find(key);
            if let Some(output) = stored.or_else(|| self.lately.find(origin, key)) {
                self.outputs.handed_out.remember(trip, &output);
                return waiter.give(Ok(output));
            }
        }
        self.enqueue(trip, waiter, is_urgent);
    }

    pub(super) fn enqueue(self: &Arc<Core>, trip: Trip, waiter: Waiter<Made>, is_urgent: bool) {
        if self.outputs.queue.board(trip, waiter, is_urgent) {
            self.serve_queue();
        }
    }

    fn serve_queue(self: &Arc<Core>) {
        let core = Arc::clone(self);
        self.output.submit(move || core.make_next());
    }

    /// Keeps the output thread from all but the reports of sessions that end, until the guard is dropped.
    pub(super) fn hold(self: &Arc<Core>) -> Hold {
        self.outputs.queue.hold();
        Hold(Arc::clone(self))
    }

    /// Makes what comes next, lands it, and makes its cheap siblings while the resolved frames are at hand.
    fn make_next(self: &Arc<Core>) {
        let Some(trip) = self.outputs.queue.next() else {
            return;
        };
        let made = or_panicked(|| match trip.origin {
            Origin::Session { .. } => self.make(trip),
            Origin::Kept(id) => Ok((self.make_of_kept(id, trip.key)?, None)),
        });
        match made {
            Ok((output, leftover)) => {
                self.outputs.handed_out.remember(trip, &output);
                self.outputs.queue.land(&Ok(output));
                if let Some((view, resolved)) = leftover {
                    // Nobody waits for them.
                    let siblings = || self.make_siblings(trip.key, &view, &resolved);
                    let _ = catch_unwind(AssertUnwindSafe(siblings));
                }
            }
            Err(error) => {
                if self.outputs.queue.land(&Err(error.clone())) {
                    let output = trip.key.kind().file_name();
                    tracing::warn!(error = %error_chain(&error), %output, "no output");
                }
            }
        }
        self.serve_queue();
    }

    /// Sees to it that an output without a name may be made, or else finds one that will do.
    pub(super) fn room_for(&self, trip: Trip) -> Result<Option<Output>, Error> {
        let handed_out = &self.outputs.handed_out;
        if handed_out.has_room() {
            return Ok(None);
        }
        let latest = handed_out.latest(trip);
        self.lately.make_room();
        #[cfg(feature = "http")]
        self.readers.make_room();
        match latest {
            _ if handed_out.has_room() => Ok(None),
            Some(output) => Ok(Some(output)),
            None => Err(Error::OutputsHeld),
        }
    }

    /// The output, and what it was made from if that is of further use.
    #[allow(clippy::type_complexity)] // a pair that is taken apart at its only use
    fn make(&self, trip: Trip) -> Result<(Output, Option<(View, Resolved)>), Error> {
        let key = trip.key;
        if (trip.is_snapshot() || !key.kind().is_kept())
            && let Some(output) = self.room_for(trip)?
        {
            return Ok((output, None));
        }
        let view = self.machine.view()?;
        if !view.snapshot.still_recording
            && let Some(output) = self.outputs.verified(key)
        {
            return Ok((output, None));
        }
        self.directory()
            .prepare()
            .map_err(|error| self.not_written(error))?;
        let wanted = self.outputs.wanted();
        let resolved = symbolize::resolve_while(wanted, &view.snapshot, &key.options());
        while_wanted::check(wanted).map_err(|error| self.not_written(error))?;
        let output = self.write(key, &view, &resolved)?;
        let last = !view.snapshot.still_recording;
        if last && !key.kind().is_kept() {
            let origin = Origin::Session {
                number: view.session,
                recording: false,
            };
            self.lately.remember(origin, key, &output);
            return Ok((output, None));
        }
        if last && key == OutputKey::new(OutputKind::Report) {
            self.keep(view.session, &view.snapshot, &resolved.report, &output);
        }
        Ok((output, last.then_some((view, resolved))))
    }

    /// Resolving costs far more than a page or a text, and somebody who asks for one asks for the other.
    fn make_siblings(&self, key: OutputKey, view: &View, resolved: &Resolved) {
        for kind in [OutputKind::Stats, OutputKind::Flamegraph] {
            let sibling = key.sibling(kind);
            if !self.outputs.wanted().still() {
                return;
            }
            if kind == key.kind() || self.outputs.shelf().stored(sibling).is_some() {
                continue;
            }
            // Nobody waits for it. Whoever does ask gets it made again, and is told what is wrong.
            if let Err(error) = self.write(sibling, view, resolved) {
                tracing::debug!(error = %error_chain(&error), "no sibling output");
            }
        }
    }

    fn write(&self, key: OutputKey, view: &View, resolved: &Resolved) -> Result<Output, Error> {
        let mut written = self.write_once(key, view, resolved, true);
        if written.as_ref().is_err_and(is_too_long) && key.kind() == OutputKind::Report {
            tracing::warn!(
                bound = self.archive.bound(),
                "with every allocation the report would be larger than MEMRAY_PROFILER_KEEP_BYTES allows: it holds sums only"
            );
            written = self.write_once(key, view, resolved, false);
        }
        written.map_err(|error| self.not_written(error))
    }

    /// `whole`: with every allocation, where there is a log of them.
    fn write_once(
        &self,
        key: OutputKey,
        view: &View,
        resolved: &Resolved,
        whole: bool,
    ) -> io::Result<Output> {
        let snapshot = view.snapshot.still_recording;
        let label = Label {
            key,
            taken: view.snapshot.taken,
            snapshot,
        };
        let directory = self.directory().path();
        let wanted = self.outputs.wanted();
        Draft::new(directory).and_then(|mut draft| {
            if let Some(log) = &view.snapshot.log
                && whole
                && key.kind() == OutputKind::Report
            {
                if !snapshot {
                    // It is about as long as the log, which goes after it.
                    self.archive.make_way(log.bytes / 2 * 3);
                }
                draft = draft.at_most(self.archive.left());
            }
            let mut out = WhileWanted::new(&mut draft, wanted);
            if key.kind() == OutputKind::Report && whole {
                write_report(key, view, resolved, wanted, &mut out)?;
            } else {
                let events = resolved.events(&view.snapshot).filter(|_| whole);
                let events = events.map(|events| while_wanted::items(events, wanted));
                render(key, &resolved.report, events, &mut out)?;
            }
            if snapshot || !key.kind().is_kept() {
                return draft.detach(label);
            }
            draft.sync()?;
            self.outputs
                .shelf()
                .put(view.session, draft, label, directory)
        })
    }

    pub(super) fn not_written(&self, error: io::Error) -> Error {
        Error::Output {
            path: self.directory().path().to_owned(),
            source: Arc::new(error),
        }
    }
}

/// Keeps clients' outputs back as long as it lives.
#[derive(Debug)]
pub(super) struct Hold(Arc<Core>);

impl Drop for Hold {
    fn drop(&mut self) {
        if self.0.outputs.queue.release() {
            self.0.serve_queue();
        }
    }
}

/// What `make` makes. Those who wait for it must be told if it panics, too.
pub(super) fn or_panicked<T>(make: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(make)).unwrap_or(Err(Error::MAKING_PANICKED))
}

/// Blocks that may be live at a time, and allocations, for the page to be made with the event log: following a block
/// takes about 50 bytes, and an allocation 200 ns. Beyond that the page says how else to get one.
const MOST_BLOCKS: u64 = 250_000;
const MOST_ALLOCATIONS: u64 = 5_000_000;
/// Rows of the page's intervals: some hundred kilobytes of it.
const MOST_ROWS: usize = 200_000;
/// What both take at most; a file whose sums lie cannot take more.
const MOST_MEMORY: MemoryLimit = MemoryLimit(64 << 20);

fn write_page<E>(
    report: &Report,
    events: Option<E>,
    opens_at: &str,
    out: &mut impl Write,
) -> io::Result<()>
where
    E: Iterator<Item = io::Result<Event>>,
{
    let has_log = events.is_some();
    let sums = &report.totals;
    let few = sums.allocated.count <= MOST_ALLOCATIONS
        && sums.high_water.count.max(sums.live.count) <= MOST_BLOCKS;
    let options = IntervalOptions {
        rows: MOST_ROWS,
        memory: MOST_MEMORY,
        ..IntervalOptions::default()
    };
    let intervals = events
        .filter(|_| few)
        .map(|events| Intervals::of(report, events, options))
        .transpose()?;
    let page = Page {
        report,
        intervals: intervals.as_ref(),
        has_log,
    };
    page.write_opened_at(opens_at, out)
}

/// Writes the session's report, in which memray tells threads of one name apart where it has to.
fn write_report(
    key: OutputKey,
    view: &View,
    resolved: &Resolved,
    wanted: &Wanted,
    out: &mut impl Write,
) -> io::Result<()> {
    let apart = Apart::of(resolved, &view.snapshot, wanted)?;
    let renamed = key
        .names()
        .and_then(|names| views::named(&resolved.report, names));
    let report = renamed.as_ref().unwrap_or(&resolved.report);
    match apart.events(resolved, &view.snapshot) {
        Some(events) => {
            let events = while_wanted::items(events, wanted);
            let threads = apart.threads();
            memray::write_all_apart(report, threads, events, key.format(), out)
        }
        None => memray::write_aggregated(report, key.format(), out),
    }
}

/// Writes `report`, or what `key` makes of it. `events`: its event log, where there is one.
pub(super) fn render<E>(
    key: OutputKey,
    report: &Report,
    events: Option<E>,
    out: &mut impl Write,
) -> io::Result<()>
where
    E: Iterator<Item = io::Result<Event>>,
{
    let renamed = key.names().and_then(|names| views::named(report, names));
    let report = renamed.as_ref().unwrap_or(report);
    let inverted;
    // A picture is turned over by its writer, which says so in it.
    let is_picture = matches!(key.kind(), OutputKind::File(Format::Svg));
    let shown = if key.is_inverted() && !is_picture {
        inverted = views::inverted(report);
        &inverted
    } else {
        report
    };
    match key.kind() {
        OutputKind::Report => match events {
            Some(events) => memray::write_all(report, events, key.format(), out),
            None => memray::write_aggregated(report, key.format(), out),
        },
        OutputKind::Flamegraph => write_page(report, events, key.opens_at(), out),
        OutputKind::Stats => out.write_all(stats::text(report).as_bytes()),
        OutputKind::StatsJson => stats::json(report, &stats::JsonOptions::default(), out),
        OutputKind::Table => texts::table(shown, &key.text_choices(), out),
        OutputKind::Tree => texts::tree(shown, &key.text_choices(), out),
        OutputKind::Summary => texts::summary(shown, &key.text_choices(), out),
        OutputKind::File(format) => format.write(shown, &key.choices(), out),
    }
}
