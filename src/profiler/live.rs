//! What the live page shows: the state, the curve, and the lines that hold the most, once a second.
//!
//! ```text
//! watcher ── asks for the next state ──▶ live thread ── a second after the last one ──▶ all who have asked
//! ```
//!
//! However many watch, a state is made at most once a second; while nobody asks, nothing is done. Symbols are looked up only
//! for the call sites with the most live bytes, and remembered. What probably leaks is found out less often, since that takes a
//! look at each live block.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use heapray_report::memray::{self, Version};
use heapray_report::{Report, model, views};
use tokio::sync::oneshot;

use super::lifecycle::Lifecycle;
use super::lock::{Lock, Rank};
use super::machine::Machine;
use super::reports::{Reports, plainly_named, probable_leak};
use super::routes::{RouteHolds, holding_most};
use super::waiter::Waiter;
use super::worker::Worker;
use super::{Blocks, CallSite, Error, KeptReport, LeakCandidate, Mark, Status};
use crate::collector::routes::SumsByRoute;
use crate::collector::snapshot::Snapshot;
use crate::contexts::{self, ROUTE};
use crate::hex;
use crate::symbolize::{self, Known, ReportOptions};

/// From one state to the next.
const EVERY: Duration = Duration::from_secs(1);
/// Call sites whose symbols are looked up, and those in which leaks are looked for.
const SITES: usize = 200;
const LEAK_SITES: usize = 512;
/// Shortest time from one search for leaks to the next, and the factor by which it is longer than the search took.
const LEAKS_EVERY: Duration = Duration::from_secs(5);
const LEAKS_SELDOM: u32 = 100;
/// Leaks that are shown.
const LEAKS: usize = 5;
/// Lines that are shown, and those that metrics can have.
const LINES: usize = 15;
pub(crate) const MOST_LINES: usize = 100;
/// Points of the curve: what a small screen can show.
const POINTS: usize = 400;

/// Everything that the live page shows at one moment.
#[derive(Debug)]
pub(crate) struct LiveState {
    pub(crate) status: Status,
    /// Since the start of the running session, or of the one that ended last; oldest first.
    pub(crate) curve: Vec<model::Moment>,
    pub(crate) marks: Vec<Mark>,
    /// What the lines that hold the most hold: in the running session, or at the end of the one that ended last.
    pub(crate) top: Option<Top>,
    /// The lines that probably leak, the likeliest first, as of the last search.
    pub(crate) leaks: Vec<LeakingLine>,
    /// What `top` and `leaks` were made of, if somebody asked for it.
    pub(crate) sites: LiveSites,
    /// The routes that hold the most. Empty if the service does not record by route.
    pub(crate) routes: Vec<RouteHolds>,
    pub(crate) kept: Vec<KeptReport>,
}

/// The lines of the service that hold the most.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Top {
    /// The most first. The live page shows the first of them.
    #[serde(serialize_with = "first_lines")]
    pub(crate) lines: Vec<CallSite>,
    /// What is live in the call sites that were looked at; all other call sites hold less each.
    pub(crate) seen: Blocks,
}

/// The call sites that the lines were made of: captures in hexadecimal digits, for those who look names up elsewhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LiveSites {
    pub(crate) top: Option<Arc<str>>,
    pub(crate) leaks: Option<Arc<str>>,
}

/// A line that probably leaks.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct LeakingLine {
    #[serde(flatten)]
    pub(crate) line: LeakCandidate,
    /// What speaks for it, and what against it: a sentence each.
    pub(crate) evidence: Vec<String>,
    pub(crate) against: Vec<String>,
}

/// Gives what the live page shows to all who watch, on a thread of its own.
pub(crate) struct LiveFeed {
    machine: Arc<Machine>,
    reports: Arc<Reports>,
    lifecycle: Arc<Lifecycle>,
    thread: Worker,
    waiters: Lock<Vec<Waiter<Arc<LiveState>>>>,
    /// Whether one of those who wait asks for the call sites.
    wants_sites: AtomicBool,
    /// The live thread's own; a lock because all threads share what it is in.
    cache: Lock<Cache>,
}

#[derive(Default)]
struct Cache {
    last: Option<Instant>,
    symbols: Known,
    found: Found,
}

/// What was found in a session, until the next one begins.
#[derive(Default)]
struct Found {
    /// The number of the session.
    session: u64,
    top: Option<Top>,
    leaks: Vec<LeakingLine>,
    sites: LiveSites,
    routes: Vec<RouteHolds>,
    /// When leaks are looked for again.
    leaks_due: Option<Instant>,
    /// Whether this is of the session's end.
    is_final: bool,
}

impl std::fmt::Debug for LiveFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveFeed").finish_non_exhaustive()
    }
}

impl LiveFeed {
    /// # Errors
    ///
    /// There can be no more threads.
    pub(super) fn new(
        machine: Arc<Machine>,
        reports: Arc<Reports>,
        lifecycle: Arc<Lifecycle>,
    ) -> io::Result<LiveFeed> {
        Ok(LiveFeed {
            machine,
            reports,
            lifecycle,
            thread: Worker::spawn("heapray-live")?,
            waiters: Lock::new(Rank::LiveWaiters, Vec::new()),
            wants_sites: AtomicBool::new(false),
            cache: Lock::new(Rank::LiveCache, Cache::default()),
        })
    }

    /// Has the next state sent: at once if the last one was made more than a second ago. `sites`: with what the lines are made
    /// of. The receiver fails if the profiler failed at it.
    pub(crate) fn next(self: &Arc<LiveFeed>, sites: bool) -> oneshot::Receiver<Arc<LiveState>> {
        let (answer, next) = oneshot::channel();
        let mut waiters = self.waiters.lock();
        self.wants_sites.fetch_or(sites, Ordering::Relaxed);
        waiters.push(Box::new(answer));
        if waiters.len() == 1 {
            let feed = Arc::clone(self);
            self.thread.submit(move || feed.send());
        }
        next
    }

    /// Returns the heap over time, of the running session or the one that ended last, and when that began: at most so many
    /// rows. Blocks.
    pub(crate) fn heap_curve(&self, rows: usize) -> Option<(SystemTime, Vec<model::Moment>)> {
        let running = self.machine.top(0, false).map(Arc::new);
        let snapshot = running.or_else(|| self.machine.last())?;
        Some((snapshot.started, thinned(&snapshot.timeline, rows)))
    }

    /// Returns what each route holds in the running session and has allocated in the process, without blocking. `None`: no
    /// session runs.
    ///
    /// # Errors
    ///
    /// A panic of the profiler's.
    pub(crate) async fn sums_by_route(&self) -> Result<Option<SumsByRoute>, Error> {
        let reports = Arc::clone(&self.reports);
        self.thread.read(move || reports.sums_by_route()).await
    }

    fn send(&self) {
        let mut cache = self.cache.lock();
        if let Some(last) = cache.last {
            thread::sleep(EVERY.saturating_sub(last.elapsed()));
        }
        cache.last = Some(Instant::now());
        // Before the work: those who ask from now on get the next state, and should this panic, none waits for ever.
        let (mut waiters, sites) = {
            let mut waiters = self.waiters.lock();
            let sites = self.wants_sites.swap(false, Ordering::Relaxed);
            (std::mem::take(&mut *waiters), sites)
        };
        waiters.retain(|waiter| !waiter.is_gone());
        if waiters.is_empty() {
            return;
        }
        let state = Arc::new(self.state(&mut cache, sites));
        for waiter in waiters {
            waiter.give(Arc::clone(&state));
        }
    }

    fn state(&self, cache: &mut Cache, sites: bool) -> LiveState {
        let (last, _) = self.machine.session();
        let session = self.machine.running().unwrap_or(last);
        let Cache { symbols, found, .. } = cache;
        if found.session != session {
            *found = Found {
                session,
                ..Found::default()
            };
        }
        let began = Instant::now();
        let lacks_sites = sites && found.sites.leaks.is_none();
        let search = lacks_sites || found.leaks_due.is_none_or(|due| began >= due);
        let most = if search { LEAK_SITES } else { SITES };
        let running = self.machine.top(most, search);
        let last = match &running {
            Some(_) => None,
            None => self.machine.last(),
        };
        if let Some(snapshot) = &running {
            found.look(snapshot, search, sites, symbols);
            // The sums take a look at each call site.
            if contexts::has_key(ROUTE)
                && let Some((_, sums)) = self.machine.sums_by_route()
            {
                found.routes = holding_most(sums);
            }
            if search {
                let pause = began.elapsed() * LEAKS_SELDOM;
                found.leaks_due = Some(Instant::now() + pause.max(LEAKS_EVERY));
            }
        } else if let Some(last) = last.as_ref().filter(|_| !found.is_final || lacks_sites) {
            found.look(&last.top(LEAK_SITES), true, sites, symbols);
            found.is_final = true;
        }
        let shown = running.as_ref().or(last.as_deref());
        let marks = shown.map_or(&[][..], |snapshot| &snapshot.marks);
        LiveState {
            status: self.lifecycle.status_blocking(),
            curve: shown.map_or_else(Vec::new, |snapshot| thinned(&snapshot.timeline, POINTS)),
            marks: marks.iter().cloned().map(Mark::of).collect(),
            top: found.top.clone(),
            leaks: found.leaks.clone(),
            sites: found.sites.clone(),
            routes: found.routes.clone(),
            kept: self.reports.kept(),
        }
    }
}

impl Found {
    /// Looks at the call sites of `snapshot`, and with `search` for leaks among them. `sites`: keeps them for those who look names
    /// up elsewhere.
    fn look(&mut self, snapshot: &Snapshot, search: bool, sites: bool, symbols: &mut Known) {
        let options = ReportOptions::new().by_address(true);
        let report = if search || sites {
            symbolize::report_again(snapshot, &options, symbols).report
        } else {
            symbolize::resolve_again(&snapshot.stacks, &options, symbols).report
        };
        if sites {
            let capture = in_digits(&report);
            if search {
                self.sites.leaks.clone_from(&capture);
            }
            self.sites.top = capture;
        }
        let named = plainly_named(&report);
        self.top = Some(top(&named));
        if search {
            self.leaks = leaking(&named);
        }
    }
}

/// Returns `report` as a capture in hexadecimal digits.
fn in_digits(report: &Report) -> Option<Arc<str>> {
    let mut capture = Vec::new();
    // A vector takes everything; what could not be written is not shown.
    memray::write_aggregated(report, Version::V13, &mut capture).ok()?;
    Some(hex::digits(&capture).into())
}

/// Returns the lines of the service's own code that hold the most. `report`: [plainly named](plainly_named).
fn top(report: &Report) -> Top {
    let sites = views::own_sites(report, &views::Origins::of(report));
    let lines = sites.iter().filter_map(|site| CallSite::of(report, site));
    let mut seen = model::Tally::default();
    for site in &report.sites {
        seen += site.live;
    }
    Top {
        lines: lines.take(MOST_LINES).collect(),
        seen: Blocks::of(seen),
    }
}

fn first_lines<S: serde::Serializer>(lines: &[CallSite], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(&lines[..lines.len().min(LINES)])
}

/// Returns the lines that probably leak, the likeliest first. `report`: [plainly named](plainly_named).
fn leaking(report: &Report) -> Vec<LeakingLine> {
    let leaks = views::leaks(report);
    let lines = leaks.list().iter().take(LEAKS);
    let line = |leak: &views::Leak| {
        Some(LeakingLine {
            line: probable_leak(report, leak)?.into(),
            evidence: leak.evidence.clone(),
            against: leak.against.clone(),
        })
    };
    lines.filter_map(line).collect()
}

/// Returns what the live page shows of the call sites of `report`, whose names were looked up elsewhere: those that hold the most.
pub(crate) fn top_elsewhere(report: &Report) -> Top {
    top(&plainly_named(report))
}

/// Returns what the live page shows of the leaks in `report`, whose names were looked up elsewhere.
pub(crate) fn leaking_elsewhere(report: &Report) -> Vec<LeakingLine> {
    leaking(&plainly_named(report))
}

/// Returns at most `limit` rows: neighbours as one, each column at its largest, so that no spike is lost.
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
