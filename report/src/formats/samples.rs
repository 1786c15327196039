//! Call stacks with their weights: what every format that knows nothing of allocators is made from.

use crate::model::{FrameId, Report, StackId, Tally, ThreadId};
use crate::views::{Measure, Unit};

/// What one call stack, of one thread or of all, weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The first of its threads where all are added up.
    pub(crate) thread: ThreadId,
    pub(crate) stack: StackId,
    /// Never 0.
    pub(crate) weight: u64,
}

/// The samples of `report`, by thread if asked, then in the order of the call tree. 16 bytes for each call site.
pub(crate) fn samples(
    report: &Report,
    measure: Measure,
    unit: Unit,
    by_thread: bool,
) -> Vec<Sample> {
    let mut samples: Vec<Sample> = report
        .sites
        .iter()
        .map(|site| Sample {
            thread: site.thread,
            stack: site.stack,
            weight: unit.of(measure.of(site)),
        })
        .filter(|sample| sample.weight > 0)
        .collect();
    let key = |sample: &Sample| (by_thread.then_some(sample.thread), sample.stack);
    samples.sort_by_key(key);
    samples.dedup_by(|next, first| {
        let same = key(next) == key(first);
        if same {
            first.weight = first.weight.saturating_add(next.weight);
        }
        same
    });
    samples
}

/// As [`Sample`], with blocks and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weighed {
    pub(crate) thread: ThreadId,
    pub(crate) stack: StackId,
    /// Never 0 in the unit that was asked for.
    pub(crate) tally: Tally,
}

/// As [`samples`], with blocks and bytes of each. 24 bytes for each call site.
pub(crate) fn weighed(
    report: &Report,
    measure: Measure,
    unit: Unit,
    by_thread: bool,
) -> Vec<Weighed> {
    let mut weighed: Vec<Weighed> = report
        .sites
        .iter()
        .map(|site| Weighed {
            thread: site.thread,
            stack: site.stack,
            tally: measure.of(site),
        })
        .filter(|stack| unit.of(stack.tally) > 0)
        .collect();
    let key = |stack: &Weighed| (by_thread.then_some(stack.thread), stack.stack);
    weighed.sort_by_key(key);
    weighed.dedup_by(|next, first| {
        let same = key(next) == key(first);
        if same {
            first.tally += next.tally;
        }
        same
    });
    weighed
}

/// Their sum.
pub(super) fn total(samples: &[Sample]) -> u64 {
    let add = |sum: u64, sample: &Sample| sum.saturating_add(sample.weight);
    samples.iter().fold(0, add)
}

/// The frames of `stack` from the root, in a buffer that is used again and again.
pub(crate) fn root_to_leaf(report: &Report, stack: StackId, frames: &mut Vec<FrameId>) {
    frames.clear();
    frames.extend(report.stacks.leaf_to_root(stack));
    frames.reverse();
}
