//! The curves of each line: what it held, kept and allocated, over the session.

use std::collections::HashMap;

use super::work::Work;
use crate::model::{FrameId, Report, StackId, Tally};
use crate::views::Origins;
use crate::views::own_site::responsible;

/// Line of code. Each curve has a value for each bound of [`Work`].
#[derive(Debug)]
pub(super) struct Line {
    pub(super) frame: FrameId,
    pub(super) is_own: bool,
    /// The stack through the line with the most live bytes.
    pub(super) stack: StackId,
    pub(super) live: Tally,
    /// Live bytes. Where it is not known what the line held: those that are still live at the end.
    pub(super) held: Vec<f64>,
    /// Bytes that were allocated until then and are still live at the end.
    pub(super) kept: Vec<f64>,
    /// Blocks of the same.
    pub(super) kept_blocks: Vec<f64>,
    /// Bytes allocated until then, as far as it is known.
    pub(super) allocated: Vec<f64>,
    /// Whether `held` and `allocated` are known at some bound.
    pub(super) is_known: bool,
}

/// Returns the lines of `report` that hold anything.
pub(super) fn lines(report: &Report, origins: &Origins, work: &Work) -> Vec<Line> {
    let mut charged: HashMap<StackId, Option<(FrameId, bool)>> = HashMap::new();
    let mut lines: HashMap<FrameId, Line> = HashMap::new();
    let mut stacks: HashMap<StackId, u64> = HashMap::new();
    let mut line_of_site: Vec<Option<FrameId>> = Vec::with_capacity(report.sites.len());
    for site in &report.sites {
        let line = *charged.entry(site.stack).or_insert_with(|| {
            let (frame, is_own) = responsible(report, origins, site.stack);
            frame.map(|frame| (frame, is_own))
        });
        line_of_site.push(line.map(|(frame, _)| frame));
        let Some((frame, is_own)) = line else {
            continue;
        };
        let line = lines.entry(frame).or_insert_with(|| Line {
            frame,
            is_own,
            stack: site.stack,
            live: Tally::default(),
            held: vec![0.0; work.bounds()],
            kept: vec![0.0; work.bounds()],
            kept_blocks: vec![0.0; work.bounds()],
            allocated: vec![0.0; work.bounds()],
            is_known: false,
        });
        line.live += site.live;
        if let Some(end) = line.allocated.last_mut() {
            *end += site.allocated.bytes as f64;
        }
        let of_stack = stacks.entry(site.stack).or_default();
        *of_stack += site.live.bytes;
        if *of_stack > stacks.get(&line.stack).copied().unwrap_or(0) {
            line.stack = site.stack;
        }
    }
    lines.retain(|_, line| line.live.bytes > 0);

    let line_of = |site: u32| line_of_site.get(site as usize).copied().flatten();
    // Generation to the first bound at which it is over.
    let bound_after: Vec<usize> = report
        .survivors
        .starts_ms
        .iter()
        .map(|&start| {
            let after = work.at_ms.partition_point(|&at| at <= start);
            after.min(work.bounds() - 1)
        })
        .collect();
    for survivor in &report.survivors.list {
        let bound = bound_after.get(survivor.generation as usize);
        if let (Some(frame), Some(&bound)) = (line_of(survivor.site), bound)
            && let Some(line) = lines.get_mut(&frame)
        {
            line.kept[bound] += survivor.live.bytes as f64;
            line.kept_blocks[bound] += survivor.live.count as f64;
        }
    }
    for held in &report.history.list {
        if let Some(frame) = line_of(held.site)
            && let Some(line) = lines.get_mut(&frame)
            && (held.moment as usize) < report.history.moments.len()
        {
            // The first bound is the start.
            let bound = held.moment as usize + 1;
            line.held[bound] += held.live as f64;
            line.allocated[bound] += held.allocated as f64;
            line.is_known = true;
        }
    }
    let mut lines: Vec<Line> = lines.into_values().collect();
    for line in &mut lines {
        line.finish();
    }
    lines.sort_by_key(|line| line.frame);
    lines
}

impl Line {
    /// Turns sums of single bounds into curves.
    fn finish(&mut self) {
        for curve in [&mut self.kept, &mut self.kept_blocks] {
            for bound in 1..curve.len() {
                curve[bound] += curve[bound - 1];
            }
        }
        for bound in 1..self.allocated.len() {
            // A site without an entry held little then, and had allocated what it had before.
            self.allocated[bound] = self.allocated[bound].max(self.allocated[bound - 1]);
        }
        if let Some(end) = self.held.last_mut() {
            *end = self.live.bytes as f64;
        }
        for (held, kept) in self.held.iter_mut().zip(&self.kept) {
            *held = held.max(*kept);
        }
    }

    /// Returns what the line never fell below afterwards, at each bound.
    pub(super) fn floor(&self) -> Vec<f64> {
        let mut floor = self.held.clone();
        for bound in (0..floor.len() - 1).rev() {
            floor[bound] = floor[bound].min(floor[bound + 1]);
        }
        floor
    }
}
