//! Divides the steps of a program into batches whose threads need not wait for each other.

use leak_programs::Step;
use std::ops::Range;

/// Virtual time of a batch, at most.
const SLOT_MS: u64 = 50;

/// Steps that all threads execute side by side: each its own, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Virtual time before which the batch does not begin.
    pub(crate) starts_ms: u64,
    /// Which of the program's steps.
    pub(crate) steps: Range<usize>,
}

/// Returns the batches of `steps`, of which `blocks` is the number of blocks.
///
/// A batch ends with its time slot, or before a step on a block that another thread used in the same batch: between
/// threads only the order of batches is kept.
pub(crate) fn batches(steps: &[Step], blocks: usize) -> Vec<Batch> {
    let mut batches = Vec::new();
    // For each block: the batch of its last step (counted from 1), and the thread.
    let mut last_use = vec![(0, 0); blocks];
    let mut first = 0;
    for (position, step) in steps.iter().enumerate() {
        let last_use = &mut last_use[step.operation.block() as usize];
        let is_other_slot = step.at_ms / SLOT_MS != steps[first].at_ms / SLOT_MS;
        let is_in_use = last_use.0 == batches.len() + 1 && last_use.1 != step.thread;
        if is_other_slot || is_in_use {
            batches.push(Batch {
                starts_ms: steps[first].at_ms,
                steps: first..position,
            });
            first = position;
        }
        *last_use = (batches.len() + 1, step.thread);
    }
    if first < steps.len() {
        batches.push(Batch {
            starts_ms: steps[first].at_ms,
            steps: first..steps.len(),
        });
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use leak_programs::{Operation, Program, Site};

    fn step(at_ms: u64, thread: u8, operation: Operation) -> Step {
        Step {
            at_ms,
            thread,
            operation,
        }
    }

    fn allocate(block: u64) -> Operation {
        Operation::Allocate {
            block,
            site: Site::Suspect,
            bytes: 1,
        }
    }

    #[test]
    fn a_batch_ends_with_its_slot_and_before_another_threads_step_on_the_same_block() {
        let steps = [
            step(0, 0, allocate(0)),
            step(1, 1, allocate(1)),
            step(2, 1, Operation::Free { block: 0 }),
            step(3, 1, Operation::Free { block: 1 }),
            step(SLOT_MS, 0, allocate(2)),
            step(SLOT_MS, 0, Operation::Free { block: 2 }),
        ];
        let ranges: Vec<_> = batches(&steps, 3)
            .into_iter()
            .map(|batch| (batch.starts_ms, batch.steps))
            .collect();
        assert_eq!(ranges, [(0, 0..2), (2, 2..4), (SLOT_MS, 4..6)]);
        assert!(batches(&[], 0).is_empty());
    }

    #[test]
    fn in_every_program_a_block_belongs_to_one_thread_for_the_time_of_a_batch() {
        for program in Program::all() {
            let steps: Vec<Step> = program.steps().collect();
            let blocks = steps.len();
            let mut next = 0;
            for batch in batches(&steps, blocks) {
                assert_eq!(batch.steps.start, next, "{}", program.name);
                next = batch.steps.end;
                let mut threads = std::collections::HashMap::new();
                for step in &steps[batch.steps] {
                    let thread = *threads.entry(step.operation.block()).or_insert(step.thread);
                    assert_eq!(thread, step.thread, "{}", program.name);
                }
            }
            assert_eq!(next, steps.len(), "{}", program.name);
        }
    }
}
