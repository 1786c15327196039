//! The curves of each line: what it held, kept and allocated, over the session.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::work::Work;
use crate::hash::FastMap;
use crate::model::{FrameId, Report, StackId, Tally};
use crate::views::own_site::own_frame;
use crate::views::{KnownSites, Origins};

/// Largest number of lines that are judged: those with the most live bytes. Each takes a kilobyte, and a hostile report can
/// have millions.
const MOST_LINES: usize = 4096;

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

/// Returns the lines of `report` that hold most, ordered by frame. Memory that is known is not theirs.
pub(super) fn lines(report: &Report, origins: &Origins, work: &Work) -> Vec<Line> {
    let mut charged: FastMap<StackId, Option<(FrameId, bool)>> = FastMap::default();
    let mut sums: HashMap<FrameId, Sums> = HashMap::new();
    let mut stacks: FastMap<StackId, u64> = FastMap::default();
    let mut line_of_site: Vec<Option<FrameId>> = Vec::with_capacity(report.sites.len());
    let mut known = KnownSites::of(report);
    for site in &report.sites {
        let line = *charged.entry(site.stack).or_insert_with(|| {
            if known.of_stack(site.stack).is_some() {
                return None;
            }
            let (frame, is_own) = own_frame(report, origins, site.stack);
            frame.map(|frame| (frame, is_own))
        });
        line_of_site.push(line.map(|(frame, _)| frame));
        let Some((frame, is_own)) = line else {
            continue;
        };
        let sums = sums.entry(frame).or_insert(Sums {
            is_own,
            stack: site.stack,
            live: Tally::default(),
            allocated: 0,
        });
        sums.live += site.live;
        sums.allocated = sums.allocated.saturating_add(site.allocated.bytes);
        if site.live.bytes == 0 {
            continue;
        }
        let of_stack = stacks.entry(site.stack).or_default();
        *of_stack = of_stack.saturating_add(site.live.bytes);
        if *of_stack > stacks.get(&sums.stack).copied().unwrap_or(0) {
            sums.stack = site.stack;
        }
    }
    let mut most: Vec<(FrameId, Sums)> = sums
        .into_iter()
        .filter(|(_, sums)| sums.live.bytes > 0)
        .collect();
    most.sort_unstable_by_key(|(frame, sums)| (Reverse(sums.live.bytes), *frame));
    most.truncate(MOST_LINES);
    let mut lines: HashMap<FrameId, Line> = most
        .into_iter()
        .map(|(frame, sums)| (frame, Line::new(frame, &sums, work)))
        .collect();

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

/// Sums of a line.
struct Sums {
    is_own: bool,
    stack: StackId,
    live: Tally,
    allocated: u64,
}

impl Line {
    /// Returns the line with empty curves, but for the bytes that it has allocated at the end.
    fn new(frame: FrameId, sums: &Sums, work: &Work) -> Line {
        let mut allocated = vec![0.0; work.bounds()];
        if let Some(end) = allocated.last_mut() {
            *end = sums.allocated as f64;
        }
        Line {
            frame,
            is_own: sums.is_own,
            stack: sums.stack,
            live: sums.live,
            held: vec![0.0; work.bounds()],
            kept: vec![0.0; work.bounds()],
            kept_blocks: vec![0.0; work.bounds()],
            allocated,
            is_known: false,
        }
    }

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
