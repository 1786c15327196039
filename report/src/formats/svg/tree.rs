//! Joins call stacks into boxes, and computes which are drawn, where, and how wide.

use std::collections::HashMap;

use super::Choice;
use crate::Report;
use crate::formats::samples::{Weighed, root_to_leaf, weighed};
use crate::model::{FrameId, StrId, Tally, ThreadId};
use crate::views::Unit;

/// If only the largest stacks are drawn: the part of everything that they must have…
const COVERED: f64 = 0.99;
/// …the smallest number of stacks…
const AT_LEAST: usize = 100;
/// …and the largest number.
const AT_MOST: usize = 10_000;
/// Narrowest box that is drawn, as a part of the whole width.
pub(super) const NARROWEST: f64 = 0.001;

/// Meaning of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Label {
    /// Everything: all other boxes are below this one.
    All,
    /// A thread.
    Thread(ThreadId),
    /// A function, or one line in it.
    Frame(FrameId),
    /// Allocations without a call stack.
    NoStack,
}

/// Box: a label below the same labels.
#[derive(Debug, PartialEq)]
pub(super) struct Tile {
    pub(super) label: Label,
    pub(super) depth: usize,
    /// Distance from the left, in the picture's unit.
    pub(super) start: u64,
    /// Width, in the picture's unit.
    pub(super) value: u64,
    pub(super) tally: Tally,
}

/// Boxes that are drawn.
#[derive(Debug)]
pub(super) struct Tree {
    /// The root box first; each box before those below it.
    pub(super) tiles: Vec<Tile>,
    /// Sum of all stacks, including those that are left out.
    pub(super) total: Tally,
    pub(super) depth: usize,
}

/// Box while stacks are added.
struct Node {
    label: Label,
    above: usize,
    tally: Tally,
}

impl Tree {
    pub(super) fn of(report: &Report, choice: &Choice) -> Tree {
        let all = weighed(report, choice.measure, choice.unit, choice.by_thread);
        let mut total = Tally::default();
        for stack in &all {
            total += stack.tally;
        }
        let drawn = if choice.largest_only {
            largest(all, choice.unit, choice.unit.of(total))
        } else {
            all
        };
        let same = same_labels(report, choice.lines);
        let mut nodes = vec![Node {
            label: Label::All,
            above: 0,
            tally: Tally::default(),
        }];
        let mut known: HashMap<(usize, Label), usize> = HashMap::new();
        let mut frames = Vec::new();
        for stack in &drawn {
            root_to_leaf(report, stack.stack, &mut frames);
            if choice.leaf_first {
                frames.reverse();
            }
            let thread = choice.by_thread.then_some(Label::Thread(stack.thread));
            let none = frames.is_empty().then_some(Label::NoStack);
            let path = frames.iter().map(|frame| {
                let same = same.get(frame.0 as usize).copied();
                Label::Frame(same.unwrap_or(*frame))
            });
            let mut at = 0;
            nodes[at].tally += stack.tally;
            for label in thread.into_iter().chain(none).chain(path) {
                let next = nodes.len();
                let below = *known.entry((at, label)).or_insert(next);
                if below == next {
                    nodes.push(Node {
                        label,
                        above: at,
                        tally: Tally::default(),
                    });
                }
                at = below;
                nodes[at].tally += stack.tally;
            }
        }
        let tiles = lay_out(&nodes, choice.unit);
        let depth = tiles.iter().map(|tile| tile.depth + 1).max().unwrap_or(0);
        Tree {
            tiles,
            total,
            depth,
        }
    }
}

/// Returns, for each frame, the first frame in the same box: the same function, and with `lines` the same line in it.
fn same_labels(report: &Report, lines: bool) -> Vec<FrameId> {
    let mut first: HashMap<(StrId, Option<(StrId, u32)>), FrameId> = HashMap::new();
    let frames = (0..).map(FrameId).zip(&report.frames);
    frames
        .map(|(id, frame)| {
            let place = lines.then_some((frame.file, frame.line));
            *first.entry((frame.function, place)).or_insert(id)
        })
        .collect()
}

/// Returns the largest stacks, largest first, that have nearly everything.
fn largest(mut all: Vec<Weighed>, unit: Unit, total: u64) -> Vec<Weighed> {
    all.sort_by_key(|stack| std::cmp::Reverse(unit.of(stack.tally)));
    let mut covered = 0_u64;
    let enough = (total as f64 * COVERED) as u64;
    let mut count = 0;
    for stack in &all {
        if count >= AT_MOST || (count >= AT_LEAST && covered >= enough) {
            break;
        }
        covered = covered.saturating_add(unit.of(stack.tally));
        count += 1;
    }
    all.truncate(count);
    all
}

/// Returns the boxes that are wide enough, each before those below it, the widest on the left.
fn lay_out(nodes: &[Node], unit: Unit) -> Vec<Tile> {
    let value = |at: usize| unit.of(nodes[at].tally);
    let narrowest = (value(0) as f64 * NARROWEST).max(1.0) as u64;
    let mut below: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, node) in nodes.iter().enumerate().skip(1) {
        if value(at) >= narrowest {
            below.entry(node.above).or_default().push(at);
        }
    }
    let mut tiles = Vec::new();
    let mut open = vec![(0, 0, 0)];
    while let Some((at, depth, start)) = open.pop() {
        tiles.push(Tile {
            label: nodes[at].label,
            depth,
            start,
            value: value(at),
            tally: nodes[at].tally,
        });
        let mut next = below.remove(&at).unwrap_or_default();
        next.sort_by_key(|&at| (std::cmp::Reverse(value(at)), nodes[at].label));
        let mut start = start;
        for at in next {
            open.push((at, depth + 1, start));
            start = start.saturating_add(value(at));
        }
    }
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StackId;
    use proptest::prelude::*;

    fn stack(bytes: u64) -> Weighed {
        Weighed {
            thread: ThreadId(0),
            stack: StackId::default(),
            tally: Tally { count: 1, bytes },
        }
    }

    #[test]
    fn few_stacks_are_all_drawn_and_of_many_those_that_hold_nearly_everything() {
        let few: Vec<Weighed> = (0..50).map(|_| stack(1)).collect();
        assert_eq!(largest(few, Unit::Bytes, 50).len(), 50);
        let mut many: Vec<Weighed> = (0..20_000).map(|_| stack(1)).collect();
        many.extend((0..200).map(|_| stack(1_000_000)));
        let total = many.iter().map(|stack| stack.tally.bytes).sum();
        // 198 have 98.9 % of it.
        assert_eq!(largest(many, Unit::Bytes, total).len(), 199);
        let equal: Vec<Weighed> = (0..20_000).map(|_| stack(1)).collect();
        assert_eq!(largest(equal, Unit::Bytes, 20_000).len(), AT_MOST);
    }

    proptest! {
        #[test]
        fn boxes_lie_within_the_box_above_and_beside_each_other(parents in prop::collection::vec((any::<prop::sample::Index>(), 1_u64..1000), 0..60)) {
            let node = |label, above| Node { label, above, tally: Tally::default() };
            let mut nodes = vec![node(Label::All, 0)];
            for (nth, (parent, bytes)) in parents.iter().enumerate() {
                let parent = parent.index(nodes.len());
                let mut up = nodes.len();
                nodes.push(node(Label::Frame(FrameId(nth as u32)), parent));
                loop {
                    nodes[up].tally.bytes += bytes;
                    if up == 0 { break; }
                    up = nodes[up].above;
                }
            }
            let tiles = lay_out(&nodes, Unit::Bytes);
            prop_assert_eq!(tiles[0].label, Label::All);
            prop_assert_eq!((tiles[0].depth, tiles[0].start, tiles[0].value), (0, 0, nodes[0].tally.bytes));
            let mut path: Vec<&Tile> = Vec::new();
            let mut ends: HashMap<usize, u64> = HashMap::new();
            let mut sorted: Vec<&Tile> = tiles.iter().collect();
            sorted.sort_by_key(|tile| (tile.start, tile.depth));
            for tile in sorted {
                path.truncate(tile.depth);
                prop_assert_eq!(path.len(), tile.depth, "no box without the one above it");
                if let Some(above) = path.last() {
                    prop_assert!(tile.start >= above.start && tile.start + tile.value <= above.start + above.value);
                }
                let end = ends.entry(tile.depth).or_default();
                prop_assert!(tile.start >= *end);
                *end = tile.start + tile.value;
                path.push(tile);
            }
        }
    }
}
