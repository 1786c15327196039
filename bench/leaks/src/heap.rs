//! Writes the steps of a program, and remembers what is due at a later time.

use crate::{Operation, Site, Step};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::rng::Rng;

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Request {
    /// Number of the request, counted from 0.
    pub(crate) number: u64,
    /// Share (0 to 1) of all the run's requests that came before.
    pub(crate) work: f64,
    pub(crate) thread: u8,
    /// Blocks to free when the request ends.
    pub(crate) blocks: Vec<u64>,
    /// Key of the pool's buffer that the request has borrowed.
    pub(crate) borrowed: Option<u64>,
    pub(crate) ends_ms: u64,
}

/// What happens at a later time.
#[derive(Debug)]
pub(crate) enum Due {
    Respond(Request),
    Finish(Request),
    Free { thread: u8, block: u64 },
}

/// The virtual heap: gives keys to blocks and writes down the steps of the present millisecond.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    pub(crate) now_ms: u64,
    /// Steps that the iterator has not returned yet.
    pub(crate) steps: VecDeque<Step>,
    next_block: u64,
    /// By time, then in the order of scheduling.
    due: BTreeMap<(u64, u64), Due>,
    scheduled: u64,
}

impl Heap {
    /// Allocates a block and returns its key.
    pub(crate) fn allocate(&mut self, thread: u8, site: Site, bytes: u64) -> u64 {
        let block = self.next_block;
        self.next_block += 1;
        self.write(thread, Operation::Allocate { block, site, bytes });
        block
    }

    /// Allocates a block of a random size and returns its key.
    pub(crate) fn allocate_some(
        &mut self,
        rng: &mut Rng,
        thread: u8,
        site: Site,
        bytes: &Range<u64>,
    ) -> u64 {
        self.allocate(thread, site, rng.within(bytes))
    }

    /// Gives a live block a new size, at `site`.
    pub(crate) fn resize(&mut self, thread: u8, block: u64, site: Site, bytes: u64) {
        self.write(thread, Operation::Resize { block, site, bytes });
    }

    /// Frees a live block.
    pub(crate) fn free(&mut self, thread: u8, block: u64) {
        self.write(thread, Operation::Free { block });
    }

    /// Schedules `due`, at the earliest for the next millisecond.
    pub(crate) fn schedule(&mut self, at_ms: u64, due: Due) {
        self.due
            .insert((at_ms.max(self.now_ms + 1), self.scheduled), due);
        self.scheduled += 1;
    }

    /// Removes and returns the next thing that is due by now.
    pub(crate) fn pop_due(&mut self) -> Option<Due> {
        let first = self.due.first_entry()?;
        (first.key().0 <= self.now_ms).then(|| first.remove())
    }

    fn write(&mut self, thread: u8, operation: Operation) {
        self.steps.push_back(Step {
            at_ms: self.now_ms,
            thread,
            operation,
        });
    }
}
