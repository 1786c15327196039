//! The call tree with the sums of each call stack, with threads and allocators joined.
//!
//! Nodes stand in preorder: a subtree is one run of neighbours, so a reader needs no child lists and sums a subtree in one
//! pass. Nothing is pruned; only stacks without any allocation at or below them are left out.

use super::Sums;
use crate::Report;
use crate::model::{FrameId, StackId};

/// Node of a [`CallTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeNode {
    /// Number of frames in its call stack; at least 1.
    pub depth: u32,
    /// The leaf of its call stack.
    pub frame: FrameId,
    /// Its call stack in the report.
    pub stack: StackId,
}

/// All call stacks with allocations, in preorder, and the sums of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallTree {
    /// The nodes, parents before children, a subtree in one run. The empty stack is not among them.
    pub nodes: Vec<TreeNode>,
    /// (node number, sums), by node number; node `n` is `nodes[n - 1]` and 0 is the empty stack.
    pub own: Vec<(u32, Sums)>,
}

const NONE: u32 = u32::MAX;

impl CallTree {
    /// Makes the call tree of `report`. Takes about 24 bytes per node and 80 for each stack that allocated.
    #[must_use]
    pub fn of(report: &Report) -> CallTree {
        let stacks = report.stacks.len() + 1;
        let mut slot_of = vec![NONE; stacks];
        let mut sums: Vec<Sums> = Vec::new();
        for site in &report.sites {
            // A handle that is not of this report counts for the empty stack, so that its sums are shown.
            let stack = if (site.stack.0 as usize) < stacks {
                site.stack.0 as usize
            } else {
                0
            };
            if slot_of[stack] == NONE {
                slot_of[stack] = u32::try_from(sums.len()).expect("fewer sites than 2^32");
                sums.push(Sums::default());
            }
            sums[slot_of[stack] as usize].add(site);
        }

        let (first_child, next_sibling) = children(report, &slot_of, &sums);
        let mut tree = CallTree::default();
        let mut open = vec![(0u32, 0u32)];
        while let Some((stack, depth)) = open.pop() {
            if let Some(node) = report.stacks.node(StackId(stack)) {
                tree.nodes.push(TreeNode {
                    depth,
                    frame: node.frame,
                    stack: StackId(stack),
                });
            }
            let slot = slot_of[stack as usize];
            if slot != NONE && !sums[slot as usize].is_zero() {
                let number = u32::try_from(tree.nodes.len()).expect("fewer nodes than stacks");
                tree.own.push((number, sums[slot as usize]));
            }
            if stack != 0 && next_sibling[stack as usize] != NONE {
                open.push((next_sibling[stack as usize], depth));
            }
            if first_child[stack as usize] != NONE {
                open.push((first_child[stack as usize], depth + 1));
            }
        }
        tree
    }

    /// Returns the sums of the whole tree.
    #[must_use]
    pub fn total(&self) -> Sums {
        let mut total = Sums::default();
        for (_, own) in &self.own {
            total += *own;
        }
        total
    }
}

/// Returns the first child and the next sibling of every stack that has an allocation at or below it.
fn children(report: &Report, slot_of: &[u32], sums: &[Sums]) -> (Vec<u32>, Vec<u32>) {
    let stacks = slot_of.len();
    let mut first_child = vec![NONE; stacks];
    let mut next_sibling = vec![NONE; stacks];
    // Children have larger handles than their parents. So from the largest handle on, a stack's subtree is complete when the
    // stack is reached, and adding at the front leaves siblings in the order of their handles.
    for id in (1..stacks).rev() {
        let slot = slot_of[id];
        let allocates = slot != NONE && !sums[slot as usize].is_zero();
        if !allocates && first_child[id] == NONE {
            continue;
        }
        let id = u32::try_from(id).expect("stack handles are 32 bits wide");
        if let Some(node) = report.stacks.node(StackId(id)) {
            let parent = node.parent.0 as usize;
            next_sibling[id as usize] = first_child[parent];
            first_child[parent] = id;
        }
    }
    (first_child, next_sibling)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Allocator, ContextId, ThreadId};
    use crate::model::{Site, Tally};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn tally(count: u64) -> Tally {
        Tally {
            count,
            bytes: count * 10,
        }
    }

    /// A report whose sites are (stack as frame numbers from the root, live count).
    fn report_of(sites: &[(Vec<u8>, u64)]) -> Report {
        let mut report = Report::default();
        for number in 0..=u8::MAX {
            report.add_frame(&format!("f{number}"), "", 0);
        }
        for (path, live) in sites {
            let stack = path.iter().fold(StackId::EMPTY, |at, &frame| {
                report.stacks.child(at, FrameId(u32::from(frame)))
            });
            report.sites.push(Site {
                context: ContextId::NONE,
                thread: ThreadId(0),
                stack,
                allocator: Allocator::Malloc,
                allocated: tally(0),
                high_water: tally(live / 2),
                live: tally(*live),
                temporary: tally(0),
                oldest_live_ms: Some(*live),
            });
        }
        report
    }

    /// Returns the tree's sums by path, computed from preorder and depths alone.
    fn by_path(tree: &CallTree) -> BTreeMap<Vec<u32>, u64> {
        let mut paths = vec![vec![]];
        let mut path: Vec<u32> = Vec::new();
        for node in &tree.nodes {
            path.truncate(node.depth as usize - 1);
            path.push(node.frame.0);
            paths.push(path.clone());
        }
        tree.own
            .iter()
            .map(|(node, sums)| (paths[*node as usize].clone(), sums.live.count))
            .collect()
    }

    #[test]
    fn a_stack_without_allocations_is_left_out_and_its_sibling_is_not() {
        let tree = CallTree::of(&report_of(&[(vec![1, 2], 0), (vec![1, 3], 5), (vec![], 7)]));
        assert_eq!(
            tree.nodes,
            [
                TreeNode {
                    depth: 1,
                    frame: FrameId(1),
                    stack: StackId(1)
                },
                TreeNode {
                    depth: 2,
                    frame: FrameId(3),
                    stack: StackId(3)
                },
            ]
        );
        assert_eq!(
            by_path(&tree),
            BTreeMap::from([(vec![], 7), (vec![1, 3], 5)])
        );
        assert_eq!(tree.total().oldest_live_ms, Some(5));
    }

    #[test]
    fn a_site_with_a_foreign_stack_handle_still_counts() {
        let mut report = report_of(&[(vec![1], 5)]);
        report.sites[0].stack = StackId(99);
        assert_eq!(CallTree::of(&report).total().live.count, 5);
    }

    proptest! {
        #[test]
        fn the_tree_holds_what_a_map_by_path_holds(
            sites in prop::collection::vec((prop::collection::vec(0u8..4, 0..6), 0u64..9), 0..60)
        ) {
            let tree = CallTree::of(&report_of(&sites));
            let mut model = BTreeMap::new();
            for (path, live) in &sites {
                let path: Vec<u32> = path.iter().map(|&frame| u32::from(frame)).collect();
                *model.entry(path).or_insert(0) += live;
            }
            model.retain(|_, live| *live > 0);
            prop_assert_eq!(by_path(&tree), model);
        }
    }
}
