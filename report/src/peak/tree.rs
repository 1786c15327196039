//! Call stacks merged into boxes: which are drawn, where, and how wide.

use std::collections::HashMap;

use super::Order;
use crate::Report;
use crate::formats::samples::{Sample, root_to_leaf, samples};
use crate::model::FrameId;
use crate::views::{Measure, Unit};

/// Largest stacks first, they are drawn until they hold this part of all bytes…
const COVERED: f64 = 0.99;
/// …but so many at least…
const AT_LEAST: usize = 100;
/// …and no more than these, however many there are: a browser has to draw them.
const AT_MOST: usize = 10_000;
/// Narrower boxes are left out: parts of the whole width.
const NARROWEST: f64 = 0.001;

/// A frame below the same frames.
#[derive(Debug, PartialEq)]
pub(super) struct Tile {
    /// `None` for the box that all others are below.
    pub(super) frame: Option<FrameId>,
    pub(super) depth: usize,
    /// Where it begins, in bytes from the left.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// What is drawn.
#[derive(Debug)]
pub(super) struct Tree {
    /// The box of everything first; each before those below it.
    pub(super) boxes: Vec<Tile>,
    /// Bytes of all stacks, those that are left out too.
    pub(super) total: u64,
    /// Bytes of the stacks that are drawn.
    pub(super) shown: u64,
    pub(super) depth: usize,
}

/// A box while stacks are put in.
#[derive(Default)]
struct Node {
    bytes: u64,
    below: HashMap<FrameId, usize>,
}

impl Tree {
    pub(super) fn of(report: &Report, order: Order) -> Tree {
        let all = samples(report, Measure::HighWater, Unit::Bytes, false);
        let total = all
            .iter()
            .fold(0_u64, |sum, sample| sum.saturating_add(sample.weight));
        let chosen = chosen(all, total);
        let mut nodes = vec![Node::default()];
        let mut frames = Vec::new();
        for sample in &chosen {
            root_to_leaf(report, sample.stack, &mut frames);
            if order == Order::LeafFirst {
                frames.reverse();
            }
            let mut at = 0;
            nodes[at].bytes = nodes[at].bytes.saturating_add(sample.weight);
            for &frame in &frames {
                let next = nodes.len();
                let below = *nodes[at].below.entry(frame).or_insert(next);
                if below == next {
                    nodes.push(Node::default());
                }
                at = below;
                nodes[at].bytes = nodes[at].bytes.saturating_add(sample.weight);
            }
        }
        let shown = nodes[0].bytes;
        let boxes = lay_out(&nodes);
        let depth = boxes.iter().map(|one| one.depth + 1).max().unwrap_or(0);
        Tree {
            boxes,
            total,
            shown,
            depth,
        }
    }
}

/// The stacks that are drawn, the largest first.
fn chosen(mut all: Vec<Sample>, total: u64) -> Vec<Sample> {
    all.sort_by_key(|sample| std::cmp::Reverse(sample.weight));
    let mut covered = 0_u64;
    let enough = (total as f64 * COVERED) as u64;
    let mut count = 0;
    for sample in &all {
        if count >= AT_MOST || (count >= AT_LEAST && covered >= enough) {
            break;
        }
        covered = covered.saturating_add(sample.weight);
        count += 1;
    }
    all.truncate(count);
    all
}

/// The boxes that are wide enough, each before those below it; the widest on the left.
fn lay_out(nodes: &[Node]) -> Vec<Tile> {
    let narrowest = (nodes[0].bytes as f64 * NARROWEST).max(1.0) as u64;
    let mut boxes = Vec::new();
    let mut open = vec![(0, None, 0, 0)];
    while let Some((at, frame, depth, start)) = open.pop() {
        let node = &nodes[at];
        boxes.push(Tile {
            frame,
            depth,
            start,
            bytes: node.bytes,
        });
        let mut below: Vec<(FrameId, usize)> = node
            .below
            .iter()
            .map(|(&frame, &at)| (frame, at))
            .filter(|&(_, at)| nodes[at].bytes >= narrowest)
            .collect();
        below.sort_by_key(|&(frame, at)| (std::cmp::Reverse(nodes[at].bytes), frame.0));
        let mut start = start;
        for (frame, at) in below {
            open.push((at, Some(frame), depth + 1, start));
            start = start.saturating_add(nodes[at].bytes);
        }
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StackId;
    use proptest::prelude::*;

    fn sample(weight: u64) -> Sample {
        Sample {
            thread: crate::model::ThreadId(0),
            stack: StackId::default(),
            weight,
        }
    }

    #[test]
    fn few_stacks_are_all_drawn_and_of_many_those_that_hold_nearly_everything() {
        let few: Vec<Sample> = (0..50).map(|_| sample(1)).collect();
        assert_eq!(chosen(few, 50).len(), 50);
        let mut many: Vec<Sample> = (0..20_000).map(|_| sample(1)).collect();
        many.extend((0..200).map(|_| sample(1_000_000)));
        let total = many.iter().map(|sample| sample.weight).sum();
        // 198 hold 98.9 % of it.
        assert_eq!(chosen(many, total).len(), 199);
        let equal: Vec<Sample> = (0..20_000).map(|_| sample(1)).collect();
        assert_eq!(chosen(equal, 20_000).len(), AT_MOST);
    }

    proptest! {
        #[test]
        fn boxes_lie_within_the_box_above_and_beside_each_other(parents in prop::collection::vec((any::<prop::sample::Index>(), 1_u64..1000), 0..60)) {
            let mut nodes = vec![Node::default()];
            let mut above = vec![0];
            for (nth, (parent, bytes)) in parents.iter().enumerate() {
                let parent = parent.index(nodes.len());
                let at = nodes.len();
                nodes[parent].below.insert(FrameId(nth as u32), at);
                nodes.push(Node::default());
                above.push(parent);
                let mut up = at;
                loop {
                    nodes[up].bytes += bytes;
                    if up == 0 { break; }
                    up = above[up];
                }
            }
            let boxes = lay_out(&nodes);
            prop_assert_eq!(&boxes[0], &Tile { frame: None, depth: 0, start: 0, bytes: nodes[0].bytes });
            let mut path: Vec<&Tile> = Vec::new();
            let mut ends: HashMap<usize, u64> = HashMap::new();
            let mut sorted: Vec<&Tile> = boxes.iter().collect();
            sorted.sort_by_key(|one| (one.start, one.depth));
            for one in sorted {
                path.truncate(one.depth);
                prop_assert_eq!(path.len(), one.depth, "no box without the one above it");
                if let Some(above) = path.last() {
                    prop_assert!(one.start >= above.start && one.start + one.bytes <= above.start + above.bytes);
                }
                let end = ends.entry(one.depth).or_default();
                prop_assert!(one.start >= *end);
                *end = one.start + one.bytes;
                path.push(one);
            }
        }
    }
}
