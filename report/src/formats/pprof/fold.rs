//! The choice of the samples that are written. With a limit, the smaller samples are folded: into one sample for each root,
//! or into a single one if there are many roots. The sums of all samples stay the same.
//!
//! Needs 16 bytes per sample, and 4 per node of the call tree if there is a limit.

use std::collections::{BTreeMap, BTreeSet};

use super::samples::{Key, Samples, Sums, add};
use crate::model::{Report, StackId, Tally};

/// Choice of samples.
#[derive(Debug)]
pub(super) struct Fold<'a> {
    samples: &'a Samples<'a>,
    /// All samples. Those that may be written are first, the largest before the others.
    ranking: Vec<u32>,
    /// Number of samples that are written. All others are folded.
    keep: usize,
    /// Largest such number if anything is folded.
    most: usize,
    /// The outermost frame of each node of the call tree, if samples are folded by it.
    roots: Option<Vec<StackId>>,
}

impl<'a> Fold<'a> {
    /// Folds nothing.
    pub(super) fn nothing(samples: &'a Samples<'a>) -> Fold<'a> {
        Fold {
            samples,
            ranking: (0..samples.len() as u32).collect(),
            keep: samples.len(),
            most: samples.len(),
            roots: None,
        }
    }

    /// Folds samples if there are more than `limit`, which is not 0.
    pub(super) fn to(limit: usize, samples: &'a Samples<'a>) -> Fold<'a> {
        let mut fold = Fold {
            ranking: ranking(samples, limit),
            roots: Some(roots(samples.report)),
            ..Fold::nothing(samples)
        };
        // At least half of the samples are not folded.
        let many = limit / 2;
        let mut groups = BTreeSet::new();
        let mut all = fold.ranking.iter();
        while let Some(&sample) = all.next()
            && groups.len() <= many
        {
            groups.insert(fold.group_of(sample));
        }
        if groups.len() > many {
            fold.roots = None;
        }
        fold.most = limit - fold.roots.as_ref().map_or(1, |_| groups.len());
        if samples.len() > limit {
            fold.keep = fold.most;
        }
        fold
    }

    /// Folds more samples, because the profile has `bytes` and may have `limit`. Returns false if this cannot be done.
    pub(super) fn more(&mut self, bytes: usize, limit: usize) -> bool {
        if self.keep == 0 {
            return self.roots.take().is_some();
        }
        // Smaller samples share most of their code with larger ones. So their share of the bytes leads to too many samples
        // rather than to too few, and to the right number in a few steps.
        let by_share = self.keep as u128 * limit as u128 / bytes.max(1) as u128;
        let fewer = self.keep - self.keep.div_ceil(16);
        self.keep = fewer.min(self.most).min(by_share as usize);
        true
    }

    /// Returns the samples that are written.
    pub(super) fn kept(&self) -> Vec<u32> {
        let mut kept = self.ranking[..self.keep].to_vec();
        kept.sort_unstable();
        kept
    }

    /// Returns what the other samples are folded into: their root and labels, and their sums. The key is `None` if they have
    /// different ones.
    pub(super) fn folded(&self) -> BTreeMap<Option<Key>, Sums> {
        let mut folded = BTreeMap::new();
        for &sample in &self.ranking[self.keep..] {
            let sums = folded.entry(self.group_of(sample)).or_default();
            add(sums, &self.samples.sums(sample));
        }
        folded
    }

    /// Returns the number of call sites that are folded.
    pub(super) fn call_sites(&self) -> u64 {
        let folded = self.ranking[self.keep..].iter();
        folded.map(|&sample| self.samples.call_sites(sample)).sum()
    }

    fn group_of(&self, sample: u32) -> Option<Key> {
        let roots = self.roots.as_ref()?;
        let key = self.samples.key(sample);
        let root = roots.get(key.stack.0 as usize);
        Some(Key {
            stack: root.copied().unwrap_or_default(),
            ..key
        })
    }
}

/// Returns all samples. The largest ones, as many as `limit`, come first and in order.
fn ranking(samples: &Samples<'_>, limit: usize) -> Vec<u32> {
    let mut ranking: Vec<u32> = (0..samples.len() as u32).collect();
    let mut totals = Sums::default();
    for &sample in &ranking {
        add(&mut totals, &samples.sums(sample));
    }
    let sizes = ranking
        .iter()
        .map(|&sample| share(&samples.sums(sample), &totals));
    let sizes: Vec<f64> = sizes.collect();
    let larger = |a: &u32, b: &u32| {
        let by_size = sizes[*b as usize].total_cmp(&sizes[*a as usize]);
        by_size.then(a.cmp(b))
    };
    if ranking.len() > limit {
        ranking.select_nth_unstable_by(limit, larger);
    }
    let first = limit.min(ranking.len());
    ranking[..first].sort_unstable_by(larger);
    ranking
}

/// Returns the largest of the shares that `sums` have of `totals`: a sample that matters in one type is large.
fn share(sums: &Sums, totals: &Sums) -> f64 {
    let part = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    let of_tally = |(sum, total): (&Tally, &Tally)| {
        part(sum.count, total.count).max(part(sum.bytes, total.bytes))
    };
    sums.iter().zip(totals).map(of_tally).fold(0.0, f64::max)
}

/// Returns the outermost frame of each node of the call tree, by its handle.
fn roots(report: &Report) -> Vec<StackId> {
    let mut roots = vec![StackId::EMPTY];
    for (stack, node) in report.stacks.iter() {
        roots.push(match node.parent {
            StackId::EMPTY => stack,
            parent => roots[parent.0 as usize],
        });
    }
    roots
}
