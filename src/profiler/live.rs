//! What somebody who watches sees: the state, the curve, and the lines that hold the most, once a second.
//!
//! ```text
//! watcher ── asks for the next glance ──▶ live thread ── a second after the last one ──▶ all who have asked
//! ```
//!
//! However many watch, a glance is made once a second at most; where nobody asks, nothing is done. Symbols are looked up
//! for the call sites with the most live bytes only, and remembered.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use heapray_report::{model, views};

use super::control::Core;
use super::kept::leak_at;
use super::waiter::Waiter;
use super::{Blocks, CallSite, KeptReport, Mark, Status};
use crate::collector::snapshot::Snapshot;
use crate::symbolize::{self, Known, ReportOptions};

/// From one glance to the next.
const EVERY: Duration = Duration::from_secs(1);
/// Call sites whose symbols are looked up.
const SITES: usize = 200;
/// Lines that are told.
const LINES: usize = 15;
/// Points of the curve: what a small screen can show.
const POINTS: usize = 400;

/// Everything at one moment.
#[derive(Debug)]
pub(crate) struct Glance {
    pub(crate) status: Status,
    /// Since the start of the running session, or of the one that ended last; oldest first.
    pub(crate) curve: Vec<model::Moment>,
    pub(crate) marks: Vec<Mark>,
    /// What the lines that hold the most hold, if a session is running.
    pub(crate) top: Option<Top>,
    pub(crate) kept: Vec<KeptReport>,
}

/// The lines of the service that hold the most.
#[derive(Debug, PartialEq, serde::Serialize)]
pub(crate) struct Top {
    /// The most first.
    pub(crate) lines: Vec<CallSite>,
    /// What is live in the call sites that were looked at; all other call sites hold less each.
    pub(crate) seen: Blocks,
}

type Glanced = Arc<Glance>;

/// Those who wait for the next glance, and what is remembered for it.
#[derive(Default)]
pub(crate) struct Live {
    waiting: Mutex<Vec<Waiter<Glanced>>>,
    /// Of the live thread alone; a lock because all threads share what it is in.
    own: Mutex<Own>,
}

#[derive(Default)]
struct Own {
    last: Option<Instant>,
    known: Known,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

impl Core {
    /// Hands the next glance to `waiter`, on a thread of the profiler's: at once if the last one was more than a second
    /// ago.
    pub(crate) fn glance(self: &Arc<Core>, waiter: Waiter<Glanced>) {
        let waiting = &self.live.waiting;
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(waiter);
        if waiting.len() == 1 {
            let core = Arc::clone(self);
            self.watch.submit(move || core.look());
        }
    }

    /// The heap over time, of the running session or the one that ended last, and when that began: at most so many rows.
    pub(crate) fn heap_curve(&self, rows: usize) -> Option<(SystemTime, Vec<model::Moment>)> {
        let running = self.machine.top(0).map(Arc::new);
        let snapshot = running.or_else(|| self.machine.last())?;
        Some((snapshot.started, thinned(&snapshot.timeline, rows)))
    }

    fn look(self: Arc<Core>) {
        let mut own = self.live.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = own.last {
            thread::sleep(EVERY.saturating_sub(last.elapsed()));
        }
        own.last = Some(Instant::now());
        // Before the work: who asks from now on gets the next glance, and should this panic, none waits for ever.
        let mut waiting = {
            let waiting = self.live.waiting.lock();
            std::mem::take(&mut *waiting.unwrap_or_else(PoisonError::into_inner))
        };
        waiting.retain(|waiter| !waiter.is_gone());
        if waiting.is_empty() {
            return;
        }
        let glance = Arc::new(self.at_a_glance(&mut own.known));
        for waiter in waiting {
            waiter.give(Arc::clone(&glance));
        }
    }

    fn at_a_glance(&self, known: &mut Known) -> Glance {
        let running = self.machine.top(SITES);
        let last = match &running {
            Some(_) => None,
            None => self.machine.last(),
        };
        let shown = running.as_ref().or(last.as_deref());
        let marks = shown.map_or(&[][..], |snapshot| &snapshot.marks);
        Glance {
            status: self.status(),
            curve: shown.map_or_else(Vec::new, |snapshot| thinned(&snapshot.timeline, POINTS)),
            marks: marks.iter().cloned().map(Mark::of).collect(),
            top: running.as_ref().map(|snapshot| top(snapshot, known)),
            kept: self.kept(),
        }
    }
}

fn top(snapshot: &Snapshot, known: &mut Known) -> Top {
    let report = symbolize::resolve_again(snapshot, &ReportOptions::default(), known).report;
    let sites = views::own_sites(&report, &views::Origins::of(&report));
    let lines = sites.iter().filter_map(|site| leak_at(&report, site));
    let mut seen = model::Tally::default();
    for site in &snapshot.sites {
        seen += site.live;
    }
    Top {
        lines: lines.take(LINES).map(CallSite::from).collect(),
        seen: Blocks::of(seen),
    }
}

/// No more than `limit` rows: neighbours as one, each column at its largest, so that no spike is lost.
fn thinned(rows: &[model::Moment], limit: usize) -> Vec<model::Moment> {
    let together = rows.len().div_ceil(limit).max(1);
    let one = |rows: &[model::Moment]| {
        rows.iter().copied().reduce(|one, two| model::Moment {
            at_ms: two.at_ms,
            rss: one.rss.max(two.rss),
            heap: one.heap.max(two.heap),
            own: one.own.max(two.own),
        })
    };
    rows.chunks(together).filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::{model::Moment, thinned};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_thinned_curve_is_short_ends_where_it_ended_and_keeps_its_peak(heaps in prop::collection::vec(0u64..1000, 0..900), limit in 1usize..50) {
            let rows: Vec<Moment> = heaps
                .iter()
                .zip(0u64..)
                .map(|(&heap, at_ms)| Moment { at_ms, heap, ..Moment::default() })
                .collect();
            let thin = thinned(&rows, limit);
            prop_assert!(thin.len() <= limit);
            prop_assert!(thin.is_sorted_by_key(|row| row.at_ms));
            prop_assert_eq!(thin.last().map(|row| row.at_ms), rows.last().map(|row| row.at_ms));
            prop_assert_eq!(thin.iter().map(|row| row.heap).max(), heaps.iter().copied().max());
        }
    }
}
