//! Reports, flame graphs and statistics: found on disk or made, each once however many ask.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heapray_report::model::Event;
use heapray_report::page::Page;
use heapray_report::views::{IntervalOptions, Intervals};
use heapray_report::{Report, memray, stats, texts, views};

use super::Error;
use super::control::Core;
use super::flight::{Flight, Waiter};
use super::machine::View;
use crate::store::{Draft, Label, Output, OutputKey, OutputKind, ReportId, Shelf, is_too_long};
use crate::symbolize::{self, Resolved};

/// What was made, and what is being made.
#[derive(Debug)]
pub(crate) struct Outputs {
    shelf: Mutex<Shelf>,
    flight: Flight<Trip, Result<Output, Error>>,
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
        Outputs {
            shelf: Mutex::default(),
            flight: Flight::new(),
            kept_as: Mutex::default(),
        }
    }

    /// Adds a waiter; see [`Flight::board`].
    #[must_use]
    pub(super) fn board(&self, trip: Trip, waiter: Waiter<Result<Output, Error>>) -> bool {
        self.flight.board(trip, waiter)
    }

    /// Gives the result to all who wait.
    pub(super) fn land(&self, trip: &Trip, made: &Result<Output, Error>) {
        self.flight.land(trip, made);
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
    pub(crate) fn request(self: &Arc<Core>, key: OutputKey, waiter: Waiter<Result<Output, Error>>) {
        let core = Arc::clone(self);
        self.files.submit(move || {
            // What is there is handed out at once, whatever is being made meanwhile.
            let (session, recording) = core.machine.session();
            let origin = Origin::Session {
                number: session,
                recording,
            };
            if !recording {
                let stored = core.outputs.shelf().find(key);
                if let Some(output) = stored.or_else(|| core.lately.find(origin, key)) {
                    return waiter(Ok(output));
                }
            }
            let trip = Trip { origin, key };
            if core.outputs.board(trip, waiter) {
                let maker = Arc::clone(&core);
                core.output.submit(move || maker.fly(trip));
            }
        });
    }

    /// Makes what was boarded, lands it, and makes its cheap siblings while the resolved frames are at hand.
    fn fly(&self, trip: Trip) {
        let key = trip.key;
        match or_panicked(|| self.make(key)) {
            Ok((output, leftover)) => {
                self.outputs.land(&trip, &Ok(output));
                if let Some((view, resolved)) = leftover {
                    self.make_siblings(key, &view, &resolved);
                }
            }
            Err(error) => {
                tracing::warn!(%error, output = %key.kind().file_name(), "no output");
                self.outputs.land(&trip, &Err(error));
            }
        }
    }

    /// The output, and what it was made from if that is of further use.
    #[allow(clippy::type_complexity)] // a pair that is taken apart at its only use
    fn make(&self, key: OutputKey) -> Result<(Output, Option<(View, Resolved)>), Error> {
        let view = self.machine.view()?;
        if !view.snapshot.still_recording
            && let Some(output) = self.outputs.verified(key)
        {
            return Ok((output, None));
        }
        self.directory()
            .prepare()
            .map_err(|error| self.not_written(error))?;
        let resolved = symbolize::resolve(&view.snapshot, &key.options());
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
            if self.ending.load(Ordering::Relaxed) {
                return;
            }
            if kind == key.kind() || self.outputs.shelf().stored(sibling).is_some() {
                continue;
            }
            // Nobody waits for it. Whoever does ask gets it made again, and is told what is wrong.
            if let Err(error) = self.write(sibling, view, resolved) {
                tracing::debug!(%error, "no sibling output");
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
        Draft::new(directory).and_then(|mut draft| {
            let events = resolved.events(&view.snapshot).filter(|_| whole);
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
            render(key, &resolved.report, events, &mut draft)?;
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

fn write_page<E>(report: &Report, events: Option<E>, out: &mut Draft) -> io::Result<()>
where
    E: Iterator<Item = io::Result<Event>>,
{
    let has_log = events.is_some();
    let sums = &report.totals;
    let few = sums.allocated.count <= MOST_ALLOCATIONS
        && sums.high_water.count.max(sums.live.count) <= MOST_BLOCKS;
    let options = IntervalOptions {
        rows: MOST_ROWS,
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
    page.write(out)
}

/// Writes `report`, or what `key` makes of it. `events`: its event log, where there is one.
pub(super) fn render<E>(
    key: OutputKey,
    report: &Report,
    events: Option<E>,
    out: &mut Draft,
) -> io::Result<()>
where
    E: Iterator<Item = io::Result<Event>>,
{
    let inverted;
    let shown = if key.is_inverted() {
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
        OutputKind::Flamegraph => write_page(report, events, out),
        OutputKind::Stats => out.write_all(stats::text(report).as_bytes()),
        OutputKind::StatsJson => stats::json(report, &stats::JsonOptions::default(), out),
        OutputKind::Table => texts::table(shown, &key.text_choices(), out),
        OutputKind::Tree => texts::tree(shown, &key.text_choices(), out),
        OutputKind::Summary => texts::summary(shown, &key.text_choices(), out),
        OutputKind::File(format) => format.write(shown, &key.choices(), out),
    }
}
