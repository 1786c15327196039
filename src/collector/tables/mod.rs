//! All tables of a session, and the effect of each event on them.

mod blocks;
mod log;
mod lookup;
mod mapped;
mod short_lived;

use std::sync::Arc;

use heapray_report::checkpoints::Checkpoints;
use heapray_report::model::{Mark, Moment, Tally};

use self::lookup::GROUP;
pub(super) use self::lookup::Lookup;
use super::call_tree::CallTree;
use super::clock::{Clock, CoarseClock};
use super::live::LiveTable;
use super::log::{Known, LogEntry, LogWriter, PendingLog};
use super::peak::Peak;
use super::ranges::Ranges;
use super::reallocs::Reallocs;
use super::runs::{Place, RunTable};
use super::samples::Samples;
use super::sites::Sites;
use super::sizes::Sizes;
use super::threads::Threads;
use super::timeline::Timeline;
use crate::capture::event::{Event, Kind};
use crate::capture::modules;
use crate::contexts;

/// Largest number of marks in a session: a service that sets marks all the time must not fill its memory with them.
const MARKS: usize = 1_000;

/// Sums that cost nothing to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Recorded allocations and frees, including unknown ones. A `realloc` is one of each; a failed one is neither.
    pub events: u64,
    /// Allocations.
    pub allocated: Tally,
    /// Frees of known blocks. For a range, the bytes of each `munmap`, and the block when its last byte is unmapped.
    pub freed: Tally,
    /// Live memory. Its bytes are the allocated bytes minus the freed bytes. The same holds for its blocks, plus one for
    /// each range that a `munmap` cut in two.
    pub live: Tally,
    /// Live memory at the high-water mark.
    pub high_water: Tally,
    /// Frees of blocks and ranges whose allocation the session did not record; 0 while sampling, where that is not known.
    pub unknown_frees: u64,
}

/// Tables of a session. Events come in the order of time; [`Kind`] says what each means.
#[derive(Debug)]
pub struct Tables {
    pub(super) counters: Counters,
    pub(super) clock: CoarseClock,
    pub(super) peak: Peak,
    pub(super) live: LiveTable,
    pub(super) ranges: Ranges,
    pub(super) sites: Sites,
    pub(super) sizes: Sizes,
    pub(super) threads: Threads,
    pub(super) runs: RunTable,
    reallocs: Reallocs,
    pub(super) call_tree: CallTree,
    pub(super) timeline: Timeline,
    pub(super) checkpoints: Checkpoints,
    pub(super) marks: Vec<Mark>,
    pub(super) log: Option<LogWriter>,
    /// Weights and the live table of samples, if events are samples.
    pub(super) samples: Option<Box<Samples>>,
}

impl Tables {
    /// Makes empty tables of a session that begins now, by `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Tables {
        Tables {
            counters: Counters::default(),
            clock: CoarseClock::new(clock),
            peak: Peak::new(clock.start_stamp),
            live: LiveTable::default(),
            ranges: Ranges::default(),
            sites: Sites::default(),
            sizes: Sizes::default(),
            threads: Threads::default(),
            runs: RunTable::default(),
            reallocs: Reallocs::default(),
            call_tree: CallTree::default(),
            timeline: Timeline::default(),
            checkpoints: Checkpoints::default(),
            marks: Vec::new(),
            log: None,
            samples: None,
        }
    }

    /// Treats allocations, except ranges, as samples with a point every `mean` bytes. `seed` is a random number of the
    /// session's own. Call this before the first event.
    #[must_use]
    pub fn with_samples(mut self, mean: u64, seed: u64) -> Tables {
        self.samples = Some(Box::new(Samples::new(mean, seed)));
        self
    }

    /// Makes empty tables for a scope that begins at `stamp`, with the threads' present sampling rates.
    #[must_use]
    pub(super) fn begin_again(&self, stamp: u64) -> Tables {
        let mut tables = Tables::new(Clock {
            start_stamp: stamp,
            ticks_per_ms: self.clock.clock().ticks_per_ms,
        });
        let samples = self.samples.as_ref();
        tables.samples = samples.map(|samples| Box::new(samples.begin_again()));
        tables.threads = self.threads.begin_again();
        tables
    }

    /// Returns the number of live blocks, if a report of every event has a table of them.
    #[must_use]
    pub(super) fn logged_blocks(&self) -> u64 {
        if self.has_log() {
            self.counters.live.count
        } else {
            0
        }
    }

    /// Returns whether there is an event log that was not given up.
    #[must_use]
    pub(super) fn has_log(&self) -> bool {
        self.log().is_some_and(|log| log.given_up().is_none())
    }

    /// Writes every event to `log`, too. Call this before the first event.
    #[must_use]
    pub fn with_log(mut self, log: LogWriter) -> Tables {
        self.log = Some(log);
        self
    }

    /// Keeps threads in `threads`, which is empty. Call this before the first event.
    #[must_use]
    pub(super) fn with_threads(mut self, threads: Threads) -> Tables {
        self.threads = threads;
        self
    }

    /// Returns the call tree of the events' nodes.
    pub fn call_tree_mut(&mut self) -> &mut CallTree {
        &mut self.call_tree
    }

    /// Puts into the log's queue what was not put there yet, names before the events that need them.
    #[cold]
    pub fn flush_log(&mut self) {
        if let Some(log) = &mut self.log {
            let (threads, pairs) = self.threads.list_and_pairs();
            log.write_names(Known {
                modules: &modules::history(),
                nodes: self.call_tree.nodes(),
                threads,
                marks: &self.marks,
                pairs,
                contexts_from: contexts::labels_from,
            });
            log.flush();
        }
    }

    /// Returns a promise of the event log up to the last event, if it was not given up.
    pub fn pending_log(&mut self) -> Option<PendingLog> {
        self.flush_log();
        if !self.has_log() {
            return None;
        }
        let mut pending = self.log.as_mut()?.pending();
        pending.pairs = Arc::new(self.threads.pairs().to_vec());
        Some(pending)
    }

    /// Gives the event log up for a reason. Returns whether there was one.
    pub(super) fn give_up_log(&mut self, reason: impl FnOnce() -> String) -> bool {
        let has_log = self.has_log();
        if has_log && let Some(log) = &mut self.log {
            log.give_up(reason());
        }
        has_log
    }

    /// Returns the event log.
    #[must_use]
    pub fn log(&self) -> Option<&LogWriter> {
        self.log.as_ref()
    }

    /// Returns the reason why the event log was given up, if it was.
    #[must_use]
    pub fn log_given_up(&self) -> Option<String> {
        self.log()?.given_up().map(str::to_owned)
    }

    /// Returns the sums up to the last event.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            high_water: self.peak.mark(),
            ..self.counters
        }
    }

    /// Returns the average bytes between two samples; 0 if every allocation is recorded.
    #[must_use]
    pub(super) fn sample(&self) -> u64 {
        self.samples.as_ref().map_or(0, |samples| samples.mean())
    }

    /// Returns those live bytes that the service mapped with `mmap`.
    #[must_use]
    pub(super) fn ranges_bytes(&self) -> u64 {
        self.ranges.bytes()
    }

    /// Returns the milliseconds between two rows of the timeline. A more frequent [`reading`](Self::reading) adds nothing.
    #[must_use]
    pub fn reading_step_ms(&self) -> u64 {
        self.timeline.step_ms()
    }

    /// Adds a reading of the process's resident bytes and of heapray's own memory, taken at `stamp`.
    pub fn reading(&mut self, stamp: u64, rss: u64, own: u64) {
        let at_ms = self.clock.at_ms(stamp);
        let heap = self.counters.live.bytes;
        let new_row = self.timeline.push(Moment {
            at_ms,
            rss,
            heap,
            own,
        });
        // As rarely as rows: an idle service must not fill its log with readings.
        if new_row {
            self.log_entry(&LogEntry::Memory { at_ms, rss });
        }
        let allocated = self.counters.allocated;
        if self.checkpoints.is_due(at_ms, allocated) {
            self.checkpoints.add(at_ms, allocated, self.sites.bytes());
        }
    }

    /// Names the moment at `stamp`. Returns `None`, and names nothing, if 1,000 moments are named already.
    pub fn mark(&mut self, name: String, stamp: u64) -> Option<Mark> {
        if self.marks.len() >= MARKS {
            return None;
        }
        let mark = Mark {
            name,
            at_ms: self.clock.at_ms(stamp),
            live: self.counters.live,
        };
        self.marks.push(mark.clone());
        Some(mark)
    }

    /// Applies events, oldest first. This is faster than one by one.
    pub fn apply_batch(&mut self, events: &[Event]) {
        if self.samples.is_some() {
            // Samples are few, and each of them goes through the live table.
            for (at, event) in events.iter().enumerate() {
                self.take(events, at, Lookup::of(event, &self.live, &self.threads));
            }
            return;
        }
        // While one group is applied, the data for the next one is being loaded.
        let mut lookups = [[Lookup::default(); GROUP]; 2];
        let mut found = 0;
        let mut groups = events.chunks(GROUP).enumerate().peekable();
        if let Some((_, first)) = groups.peek() {
            found = self.look_up(first, &mut lookups[0]);
        }
        while let Some((number, group)) = groups.next() {
            let now = number % 2;
            let next = groups
                .peek()
                .map_or(0, |(_, next)| self.look_up(next, &mut lookups[1 - now]));
            let found = std::mem::replace(&mut found, next);
            self.prefetch_sites(group, &lookups[now][..found]);
            self.take_group(events, number * GROUP, &lookups[now][..found]);
        }
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        let events = std::slice::from_ref(event);
        self.take(events, 0, Lookup::of(event, &self.live, &self.threads));
    }

    /// Applies the event at `at`. The events after it are known to follow.
    #[inline(always)]
    fn take(&mut self, events: &[Event], at: usize, lookup: Lookup) {
        let event = &events[at];
        if !self.reallocs.is_empty() && self.settle(event) {
            return;
        }
        match event.kind {
            Kind::Free => self.free(event, lookup),
            Kind::Malloc
            | Kind::Realloc
            | Kind::Calloc
            | Kind::PosixMemalign
            | Kind::AlignedAlloc
            | Kind::Memalign
            | Kind::Valloc
            | Kind::Pvalloc => self.allocate(event, lookup),
            Kind::Mmap => self.map(event, lookup),
            Kind::Munmap => self.unmap(event),
            Kind::ReallocFree => {
                let known = match &self.samples {
                    None => self.live.contains(event.address),
                    Some(samples) => samples.contains(event.address),
                };
                if known || !event.is_untracked() {
                    self.reallocs.begin(event.thread, event.address, known);
                }
            }
            // The beginning was lost, so there is nothing to undo.
            Kind::ReallocFailed => {}
            // `settle` has finished the reallocation that this ends.
            Kind::ReallocDone => {}
            Kind::Sampling => self.note_mean(event),
            Kind::Context => self.change_context(event),
            Kind::RunEnd | Kind::MeteredRunEnd => self.runs.end(event),
            Kind::TraceId | Kind::SpanId => self.runs.note_trace(event),
            Kind::ThreadStart => self.threads.start(event, &events[at + 1..]),
            Kind::ThreadName => {
                self.threads.end(event);
                if let Some(samples) = &mut self.samples {
                    samples.forget_thread(event.thread);
                }
            }
        }
    }

    #[cold]
    fn change_context(&mut self, event: &Event) {
        let (runs, samples) = (&mut self.runs, &self.samples);
        let run = |context| match samples {
            None => runs.enter(event.run(), context),
            // Samples do not tell what a run does. Its threads count for themselves.
            Some(_) => Place::NONE,
        };
        self.threads
            .change_context(event.thread, event.context(), run);
    }

    /// Returns the bytes of memory of the tables.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.live.memory_bytes()
            + self.ranges.memory_bytes()
            + self.sites.memory_bytes()
            + self.sizes.memory_bytes()
            + self.threads.memory_bytes()
            + self.runs.memory_bytes()
            + self.call_tree.memory_bytes()
            + self.timeline.memory_bytes()
            + self.checkpoints.memory_bytes()
            + self
                .marks
                .iter()
                .map(|mark| (size_of::<Mark>() + mark.name.len()) as u64)
                .sum::<u64>()
            + self.log.as_ref().map_or(0, LogWriter::memory_bytes)
            + self
                .samples
                .as_ref()
                .map_or(0, |samples| samples.memory_bytes())
    }

    /// Returns those bytes that are pages of heapray's own, which [`memory::own_bytes`](crate::capture::memory::own_bytes)
    /// counts too.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.live.mapped_bytes() + self.call_tree.mapped_bytes()
    }
}
