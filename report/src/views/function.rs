//! Sums by function: of the function itself, and of the function and its callees.

use std::collections::HashMap;

use super::{Sums, by_stack};
use crate::model::{Report, StackId, StrId};

/// Sums of one function of one file, over all its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionSums {
    /// Its name.
    pub function: StrId,
    /// Its file.
    pub file: StrId,
    /// Sums as the leaf: the function itself.
    pub own: Sums,
    /// Sums of the function and its callees. A recursive function's memory counts once.
    pub total: Sums,
}

/// Returns one entry for each function that is on a call stack, in the order of the call tree.
#[must_use]
pub fn by_function(report: &Report) -> Vec<FunctionSums> {
    let mut functions: Vec<FunctionSums> = Vec::new();
    let mut index: HashMap<(StrId, StrId), usize> = HashMap::new();
    let frames: Vec<usize> = report
        .frames
        .iter()
        .map(|frame| {
            *index
                .entry((frame.function, frame.file))
                .or_insert_with(|| {
                    functions.push(FunctionSums {
                        function: frame.function,
                        file: frame.file,
                        own: Sums::default(),
                        total: Sums::default(),
                    });
                    functions.len() - 1
                })
        })
        .collect();
    for site in &report.sites {
        if let Some(node) = report.stacks.node(site.stack) {
            functions[frames[node.frame.0 as usize]].own.add(site);
        }
    }
    let totals = by_stack(report);
    let children = Children::of(report);
    // Down the tree with a count of how often each function is on the path: only its outermost call adds up.
    let mut on_path = vec![0u32; functions.len()];
    let mut path: Vec<(StackId, usize)> = vec![(StackId::EMPTY, 0)];
    while let Some((stack, next)) = path.last_mut() {
        let Some(&child) = children.of_stack(*stack).get(*next) else {
            if let Some(node) = report.stacks.node(*stack) {
                on_path[frames[node.frame.0 as usize]] -= 1;
            }
            path.pop();
            continue;
        };
        *next += 1;
        if let Some(node) = report.stacks.node(child) {
            let function = frames[node.frame.0 as usize];
            if on_path[function] == 0 {
                functions[function].total += totals[child.0 as usize];
            }
            on_path[function] += 1;
            path.push((child, 0));
        }
    }
    let mut used = vec![false; functions.len()];
    for (_, node) in report.stacks.iter() {
        used[frames[node.frame.0 as usize]] = true;
    }
    let mut used = used.into_iter();
    functions.retain(|_| used.next().unwrap_or(false));
    functions
}

/// Children of every stack, packed.
struct Children {
    /// The start of each stack's children in `list`.
    starts: Vec<u32>,
    list: Vec<StackId>,
}

impl Children {
    fn of(report: &Report) -> Children {
        let stacks = &report.stacks;
        let mut starts = vec![0u32; stacks.len() + 2];
        for (_, node) in stacks.iter() {
            starts[node.parent.0 as usize + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut list = vec![StackId::EMPTY; stacks.len()];
        for (stack, node) in stacks.iter() {
            let slot = &mut next[node.parent.0 as usize];
            list[*slot as usize] = stack;
            *slot += 1;
        }
        Children { starts, list }
    }

    fn of_stack(&self, stack: StackId) -> &[StackId] {
        let at = stack.0 as usize;
        &self.list[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Allocator, ContextId, FrameId, Site, Tally, ThreadId};

    #[test]
    fn a_recursive_function_counts_its_memory_once() {
        let mut report = Report::default();
        for name in ["main", "walk", "leaf"] {
            report.add_frame(name, "", 1);
        }
        let mut site = |path: &[u32], bytes| {
            let stack = path.iter().fold(StackId::EMPTY, |parent, &frame| {
                report.stacks.child(parent, FrameId(frame))
            });
            let live = Tally { count: 1, bytes };
            report.sites.push(Site {
                context: ContextId::NONE,
                thread: ThreadId(0),
                stack,
                allocator: Allocator::Malloc,
                allocated: live,
                high_water: live,
                live,
                temporary: Tally::default(),
                oldest_live_ms: None,
            });
        };
        site(&[0, 1, 1, 2], 10);
        site(&[0, 1, 1], 5);
        site(&[2], 1);
        let live: Vec<_> = by_function(&report)
            .iter()
            .map(|f| (f.own.live.bytes, f.total.live.bytes))
            .collect();
        assert_eq!(live, [(0, 15), (5, 15), (11, 11)]);
        assert_eq!(
            by_stack(&report)[0].live,
            Tally {
                count: 3,
                bytes: 16
            }
        );
    }
}
