//! Makes room for new contexts: those that hold nothing, and did nothing lately, are counted together with others.
//!
//! ```text
//!   idle contexts ──▶ contexts::retire ──▶ sites, pairs, runs, traces, history of each: under `other`
//! ```
//!
//! The tables have no trace of a retired context then. If it is entered again, it begins anew.

use std::time::{Duration, Instant};

use heapray_report::model::Tally;

use super::hash::Map;
use super::recording::Recording;
use super::tables::Tables;
use crate::contexts;

/// The time between two looks, for each that a look takes.
const SELDOM: u32 = 100;
/// The shortest time between two looks, and while contexts are refused.
const EVERY: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_millis(100);

/// Looks for contexts that can retire; see the module.
#[derive(Debug)]
pub(super) struct Retirement {
    due: Instant,
    /// How often it looked.
    looks: u64,
    /// How often contexts had been refused at the last look.
    refusals: u64,
    seen: Map<u32, Seen>,
}

/// What was seen of a context.
#[derive(Debug, Clone, Copy)]
struct Seen {
    allocated: Tally,
    runs: u64,
    /// The look at which that was new.
    at: u64,
}

/// What a context is in use for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Use {
    allocated: Tally,
    runs: u64,
    /// Whether it holds memory, or a thread is in it.
    is_needed: bool,
}

impl Retirement {
    /// Begins now.
    pub(super) fn new() -> Retirement {
        Retirement {
            due: Instant::now(),
            looks: 0,
            refusals: contexts::refusals(),
            seen: Map::default(),
        }
    }

    /// Lets contexts retire if seven eighths of the room are taken, or some were refused. It looks at each call site once half of
    /// the room is taken, to know by then which contexts are idle, and for how long. A look happens seldom if it takes long.
    pub(super) fn look(&mut self, now: Instant, recording: &mut Recording) {
        let [active, most] = contexts::active();
        if active <= most / 2 {
            self.seen.clear();
        } else if now >= self.due {
            let idle = self.idle(recording).into_iter();
            let refusals = std::mem::replace(&mut self.refusals, contexts::refusals());
            let is_short = refusals != self.refusals;
            if is_short || active > most - most / 8 {
                let room = most.div_ceil(if is_short { 2 } else { 4 });
                let retired = contexts::retire(idle, most - room);
                recording.retire(&retired.into_iter().collect());
            }
            let pause = if is_short { SOON } else { EVERY };
            self.due = now + pause.max(now.elapsed() * SELDOM);
        }
    }

    /// Returns the contexts that are not needed and did nothing since the last look, those that have been idle for longest
    /// first.
    fn idle(&mut self, recording: &Recording) -> Vec<u32> {
        self.looks += 1;
        let uses = recording.uses();
        let before = std::mem::take(&mut self.seen);
        let mut idle = Vec::new();
        for context in contexts::can_retire() {
            let found = uses.get(&context).copied().unwrap_or_default();
            let seen = before.get(&context).filter(|seen| seen.is_like(&found));
            let seen = seen.copied().unwrap_or(Seen {
                allocated: found.allocated,
                runs: found.runs,
                at: self.looks,
            });
            self.seen.insert(context, seen);
            if seen.at < self.looks && !found.is_needed {
                idle.push((seen.at, context));
            }
        }
        idle.sort_unstable();
        idle.into_iter().map(|(_, context)| context).collect()
    }
}

impl Seen {
    fn is_like(&self, now: &Use) -> bool {
        (self.allocated, self.runs) == (now.allocated, now.runs)
    }
}

impl Tables {
    /// Adds what contexts are in use for to `uses`.
    pub(super) fn add_uses(&self, uses: &mut Map<u32, Use>) {
        for (_, key, tallies) in self.sites.iter(self.peak.epoch()) {
            let (_, context) = self.threads.thread_and_context(key.entry);
            let of = uses.entry(context).or_default();
            of.allocated += tallies.allocated;
            of.is_needed |= tallies.live != Tally::default();
        }
        for (context, runs) in self.runs.by_context() {
            uses.entry(context).or_default().runs += runs.count();
        }
        for context in self.threads.present_contexts() {
            uses.entry(context).or_default().is_needed = true;
        }
    }

    /// Counts what was done in some contexts, which hold nothing, under others: `retired` has both numbers.
    pub(super) fn retire(&mut self, retired: &Map<u32, u32>) {
        // The log goes on to say the old numbers.
        let pairs = self.threads.retire(retired, !self.has_log());
        if !pairs.is_empty() {
            let sites = self
                .sites
                .fold(self.peak.epoch(), |entry| pairs.get(&entry).copied());
            let sites: Map<u32, u32> = sites.into_iter().collect();
            self.checkpoints.fold(|site| sites.get(&site).copied());
        }
        self.runs.retire(retired);
    }
}
