//! Runs: requests and futures in a context. What each of them allocates and frees is added up until it ends, and then counted
//! under its context.
//!
//! ```text
//!   Context event with a run ──▶ place of the run ──▶ in the slot of its thread, until the next Context event
//!   each event of the thread ──▶ the run's sums
//!   RunEnd ──▶ spreads of the run's context; the place is free again
//! ```
//!
//! A thread announces its run before its next event. So a slot may still have the place of a run that has ended, but no event
//! comes that would be counted there.

use heapray_report::model::{Runs, Tally};

use super::hash::Map;
use super::sites::add;
use super::traces::{TracedRun, Traces};
use crate::capture::event::{Event, RunEnd};
use crate::contexts;

/// Most runs that are under way at one time. Further ones are not added up.
const MOST: usize = 1 << 16;
/// Contexts that a run remembers to have been in.
const CONTEXTS: usize = 4;

/// Place of a run that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    /// No run.
    pub(super) const NONE: Place = Place(0);
}

/// Run that is under way.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    allocated: Tally,
    /// Bytes that it has allocated and not freed. Below 0 if it freed more of an earlier run than it allocated.
    held: i64,
    most: i64,
    freed_of_others: Tally,
    /// The contexts that it was in.
    contexts: [u32; CONTEXTS],
}

/// No context has this number.
const NO_CONTEXT: u32 = u32::MAX;

/// Runs of a session; see the module.
#[derive(Debug)]
pub(super) struct RunTable {
    /// The first place stands for no run.
    places: Vec<UnderWay>,
    free: Vec<Place>,
    by_number: Map<u64, Place>,
    by_context: Map<u32, Runs>,
    traces: Traces,
    left_out: u64,
}

impl Default for RunTable {
    fn default() -> RunTable {
        RunTable {
            places: vec![UnderWay::NEW],
            free: Vec::new(),
            by_number: Map::default(),
            by_context: Map::default(),
            traces: Traces::default(),
            left_out: 0,
        }
    }
}

impl RunTable {
    /// Returns the place of run `number`, a part of which happens in `context`. A new run gets one.
    pub(super) fn enter(&mut self, number: u64, context: u32) -> Place {
        if number == 0 {
            return Place::NONE;
        }
        let place = match self.by_number.get(&number) {
            Some(&place) => place,
            None => self.begin(number),
        };
        if place != Place::NONE {
            self.places[place.0 as usize].note_context(context);
        }
        place
    }

    fn begin(&mut self, number: u64) -> Place {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.places.len() <= MOST => {
                self.places.push(UnderWay::NEW);
                Place(self.places.len() as u32 - 1)
            }
            None => {
                self.left_out += 1;
                return Place::NONE;
            }
        };
        self.places[place.0 as usize] = UnderWay::NEW;
        self.by_number.insert(number, place);
        place
    }

    /// Counts blocks that a run allocates.
    #[inline(always)]
    pub(super) fn allocated(&mut self, place: Place, blocks: Tally) {
        if place != Place::NONE {
            self.places[place.0 as usize].allocate(blocks);
        }
    }

    /// Counts blocks that a run allocates and frees one after the other. `largest`: bytes of the largest.
    #[inline(always)]
    pub(super) fn short_lived(&mut self, place: Place, blocks: Tally, largest: u64) {
        if place != Place::NONE {
            let run = &mut self.places[place.0 as usize];
            add(&mut run.allocated, blocks);
            run.most = run.most.max(run.held.saturating_add_unsigned(largest));
        }
    }

    /// Counts blocks of `context` that a run frees.
    #[inline]
    pub(super) fn freed(&mut self, place: Place, blocks: Tally, context: u32) {
        if place != Place::NONE {
            self.places[place.0 as usize].free(blocks, context);
        }
    }

    /// Notes a part of the trace of the run whose end the thread tells next.
    #[cold]
    pub(super) fn note_trace(&mut self, event: &Event) {
        self.traces.note(event);
    }

    /// Ends a run. One whose thread has counted itself is not known here.
    #[cold]
    pub(super) fn end(&mut self, event: &Event) {
        let RunEnd {
            context,
            metered,
            is_traced,
        } = event.run_end();
        let number = metered.map_or(event.run(), |_| 0);
        let ended = match self.by_number.remove(&number) {
            Some(place) => {
                self.free.push(place);
                self.places[place.0 as usize]
            }
            None => UnderWay::NEW,
        };
        let context = match self.by_context.contains_key(&context) {
            true => context,
            false => contexts::counted_under(context),
        };
        let runs = self.by_context.entry(context).or_default();
        let allocated = match metered {
            Some(metered) => Tally {
                count: metered.count,
                bytes: metered.bytes,
            },
            None => {
                let bytes = |signed: i64| u64::try_from(signed).unwrap_or(0);
                runs.most_bytes.add(bytes(ended.most));
                runs.held_bytes.add(bytes(ended.held));
                runs.freed_of_others += ended.freed_of_others;
                ended.allocated
            }
        };
        runs.allocated_bytes.add(allocated.bytes);
        runs.allocated_blocks.add(allocated.count);
        if is_traced {
            self.traces.end(event.thread, context, allocated.bytes);
        }
    }

    /// Returns the last run with a trace of each context and size.
    pub(super) fn traced(&self) -> impl Iterator<Item = (u32, &TracedRun)> {
        self.traces.by_context()
    }

    /// Returns the runs of each context that have ended, by its number.
    pub(super) fn by_context(&self) -> impl Iterator<Item = (u32, &Runs)> {
        self.by_context
            .iter()
            .map(|(&context, runs)| (context, runs))
    }

    /// Counts the runs of some contexts under others: `retired` has both numbers.
    pub(super) fn retire(&mut self, retired: &Map<u32, u32>) {
        for (context, &other) in retired {
            if let Some(runs) = self.by_context.remove(context) {
                *self.by_context.entry(other).or_default() += &runs;
            }
        }
        self.traces.retire(retired);
    }

    /// Returns a sentence for the user, if runs were left out.
    pub(super) fn note(&self) -> Option<String> {
        (self.left_out > 0).then(|| {
            let left_out = self.left_out;
            format!(
                "more than {MOST} requests or futures in contexts at one time: the sums of {left_out} are not known"
            )
        })
    }

    /// Returns the bytes of memory of the runs.
    pub(super) fn memory_bytes(&self) -> u64 {
        let under_way = self.places.capacity() * size_of::<UnderWay>()
            + self.free.capacity() * size_of::<Place>()
            + self.by_number.capacity() * (size_of::<(u64, Place)>() + 1)
            + self.by_context.capacity() * (size_of::<(u32, Runs)>() + 1);
        let spreads = self.by_context.values().flat_map(Runs::spreads);
        under_way as u64
            + self.traces.memory_bytes()
            + spreads.map(|spread| spread.memory_bytes()).sum::<u64>()
    }
}

impl UnderWay {
    const NEW: UnderWay = UnderWay {
        allocated: Tally { count: 0, bytes: 0 },
        held: 0,
        most: 0,
        freed_of_others: Tally { count: 0, bytes: 0 },
        contexts: [NO_CONTEXT; CONTEXTS],
    };

    fn note_context(&mut self, context: u32) {
        if !self.contexts.contains(&context) {
            // Without room the last one goes: the first is most probably that of the request.
            let mut all = self.contexts.iter();
            let at = all.position(|&known| known == NO_CONTEXT);
            self.contexts[at.unwrap_or(CONTEXTS - 1)] = context;
        }
    }

    #[inline(always)]
    fn allocate(&mut self, blocks: Tally) {
        add(&mut self.allocated, blocks);
        self.held = self.held.saturating_add_unsigned(blocks.bytes);
        self.most = self.most.max(self.held);
    }

    #[inline]
    fn free(&mut self, blocks: Tally, context: u32) {
        if self.contexts.contains(&context) {
            self.held = self.held.saturating_sub_unsigned(blocks.bytes);
        } else {
            add(&mut self.freed_of_others, blocks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::metered::Metered;
    use crate::collector::traces::tests::event_of_end;

    fn one(bytes: u64) -> Tally {
        Tally { count: 1, bytes }
    }

    /// Returns the event of the end of run `number` of context 7.
    fn end(number: u64, metered: Option<Metered>) -> Event {
        let end = RunEnd {
            context: 7,
            metered,
            is_traced: false,
        };
        event_of_end(number, end)
    }

    #[test]
    fn a_run_is_counted_under_its_context_when_it_ends() {
        let mut table = RunTable::default();
        let first = table.enter(1, 7);
        let second = table.enter(2, 7);
        assert_ne!(first, second);
        table.allocated(first, one(100));
        assert_eq!(table.enter(1, 8), first);
        table.allocated(first, one(50));
        table.short_lived(first, one(1000), 1000);
        table.freed(first, one(100), 7);
        table.freed(first, one(3), 9);
        table.freed(second, one(100), 7);
        table.end(&end(1, None));
        table.end(&end(2, None));
        table.end(&end(3, None));
        let (context, runs) = table.by_context().next().unwrap();
        assert_eq!((context, runs.count()), (7, 3));
        assert_eq!(runs.allocated_bytes.sum(), 1150);
        assert_eq!(runs.allocated_blocks.sum(), 3);
        assert_eq!(runs.most_bytes.largest(), 1150);
        // The second freed what an earlier one had left.
        assert_eq!(runs.held_bytes.sum(), 50);
        assert_eq!(runs.freed_of_others, one(3));
        let third = table.enter(4, 7);
        assert!(third == first || third == second, "places are used again");
        table.end(&end(4, None));
        assert_eq!(
            table.by_context().next().unwrap().1.allocated_bytes.sum(),
            1150
        );
    }

    #[test]
    fn a_thread_s_own_counts_are_taken_as_they_are() {
        let mut table = RunTable::default();
        let metered = Some(Metered {
            count: 2,
            bytes: 30,
        });
        table.end(&end(0, metered));
        let (_, runs) = table.by_context().next().unwrap();
        assert_eq!((runs.count(), runs.allocated_bytes.sum()), (1, 30));
        assert_eq!(runs.held_bytes.count(), 0);
    }

    #[test]
    fn runs_that_never_end_take_a_bounded_amount_of_memory() {
        let mut table = RunTable::default();
        for number in 1..=MOST as u64 {
            assert_ne!(table.enter(number, 1), Place::NONE);
        }
        assert_eq!(table.note(), None);
        assert_eq!(table.enter(1 << 40, 1), Place::NONE);
        assert!(table.note().is_some());
        assert_ne!(table.enter(5, 1), Place::NONE);
    }
}
