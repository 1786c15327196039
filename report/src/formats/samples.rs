//! Call stacks with their weights, for all formats that do not have allocators.

use crate::model::{FrameId, Report, StackId, Tally, ThreadId};
use crate::views::{Measure, Unit};

/// Weight of one call stack, of one thread or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The thread; the first one if all are summed up.
    pub(crate) thread: ThreadId,
    pub(crate) stack: StackId,
    /// Never 0.
    pub(crate) weight: u64,
}

/// Returns the samples of `report`, by thread if requested, then in the order of the call tree. Needs 16 bytes per call
/// site.
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

/// [`Sample`] with blocks and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weighed {
    pub(crate) thread: ThreadId,
    pub(crate) stack: StackId,
    /// Never 0 in the requested unit.
    pub(crate) tally: Tally,
}

/// Does what [`samples`] does, with blocks and bytes of each. Needs 24 bytes per call site.
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

/// Returns the sum of the weights.
pub(super) fn total(samples: &[Sample]) -> u64 {
    let add = |sum: u64, sample: &Sample| sum.saturating_add(sample.weight);
    samples.iter().fold(0, add)
}

/// Writes the frames of `stack` from the root into a buffer that is reused.
pub(crate) fn root_to_leaf(report: &Report, stack: StackId, frames: &mut Vec<FrameId>) {
    frames.clear();
    frames.extend(report.stacks.leaf_to_root(stack));
    frames.reverse();
}
