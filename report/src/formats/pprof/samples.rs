//! The samples of a profile: call sites, summed up by call stack and labels.
//!
//! Of each call site only its number is held, so a profile without a limit needs 8 bytes per call site besides its code.

use super::Labels;
use crate::model::{Allocator, ContextId, Report, Site, StackId, Tally, ThreadId};
use crate::views::Measure;

/// Sums of one sample, for the sample types in their order.
pub(super) type Sums = [Tally; TYPES.len()];

/// Sample types: the beginning of their names, and their measure.
pub(super) const TYPES: [(&str, Measure); 3] = [
    ("alloc", Measure::Allocated),
    ("inuse", Measure::Live),
    ("peak", Measure::HighWater),
];

/// Identity of a sample: its call stack and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) stack: StackId,
    pub(super) thread: Option<ThreadId>,
    pub(super) allocator: Option<Allocator>,
    pub(super) context: Option<ContextId>,
}

impl Key {
    fn of(site: &Site, labels: Labels) -> Key {
        Key {
            stack: site.stack,
            thread: labels.thread.then_some(site.thread),
            allocator: labels.allocator.then_some(site.allocator),
            context: labels.context.then_some(site.context),
        }
    }
}

/// All samples of a report, in the order of the call tree. Samples without a value are left out.
#[derive(Debug)]
pub(super) struct Samples<'a> {
    pub(super) report: &'a Report,
    labels: Labels,
    /// Call sites, those of one sample beside each other.
    sites: Vec<u32>,
    /// Index into `sites` of the first call site of each sample, and at last their number.
    starts: Vec<u32>,
}

impl<'a> Samples<'a> {
    pub(super) fn of(report: &'a Report, labels: Labels) -> Samples<'a> {
        let key = |&site: &u32| Key::of(&report.sites[site as usize], labels);
        let has_value = |&site: &u32| sums(&report.sites[site as usize]) != Sums::default();
        let all = 0..u32::try_from(report.sites.len()).expect("fewer than 2^32 call sites");
        let mut sites: Vec<u32> = all.filter(has_value).collect();
        sites.sort_unstable_by_key(key);
        let mut starts = vec![0];
        for sample in sites.chunk_by(|a, b| key(a) == key(b)) {
            starts.push(starts[starts.len() - 1] + sample.len() as u32);
        }
        Samples {
            report,
            labels,
            sites,
            starts,
        }
    }

    /// Returns the number of samples.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of call sites in the sample.
    pub(super) fn call_sites(&self, sample: u32) -> u64 {
        self.sites_of(sample).len() as u64
    }

    pub(super) fn key(&self, sample: u32) -> Key {
        let first = self.sites_of(sample)[0];
        Key::of(&self.report.sites[first as usize], self.labels)
    }

    pub(super) fn sums(&self, sample: u32) -> Sums {
        let mut total = Sums::default();
        for &site in self.sites_of(sample) {
            add(&mut total, &sums(&self.report.sites[site as usize]));
        }
        total
    }

    fn sites_of(&self, sample: u32) -> &[u32] {
        let [start, end] = [0, 1].map(|next| self.starts[sample as usize + next] as usize);
        &self.sites[start..end]
    }
}

/// Adds `other` to `sums`.
pub(super) fn add(sums: &mut Sums, other: &Sums) {
    for (sum, other) in sums.iter_mut().zip(other) {
        *sum += *other;
    }
}

fn sums(site: &Site) -> Sums {
    TYPES.map(|(_, measure)| measure.of(site))
}
