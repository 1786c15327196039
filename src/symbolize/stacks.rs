//! Builds the report's call tree from nodes, with stacks trimmed at the leaf.
//!
//! Parents come before children, so each table is filled in one pass without recursion, however deep a stack is. The report
//! contains only the stacks and frames that the trimmed stacks need.

use std::collections::HashMap;

use heapray_report::model::{Frame, FrameId, Place, StackId, Stacks, StrId, Strings};

use super::places::{FrameTable, Own, Places};
use super::trim::Role;
use crate::capture::event::NodeId;
use crate::collector::snapshot::RawNode;

/// The call tree of a report, and the report's stack of each node of the snapshot.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) strings: Strings,
    pub(super) frames: Vec<Frame>,
    pub(super) full_names: Vec<StrId>,
    pub(super) places: Vec<Place>,
    pub(super) stacks: Stacks,
    pub(super) of_node: Vec<StackId>,
}

/// The end of a node's trimmed stack.
#[derive(Debug, Clone, Copy)]
struct End {
    /// The node itself or one of its callers.
    node: u32,
    /// The number of that node's own frames that are kept, counted from the outermost.
    frames: u32,
    /// Whether a frame with [`Role::Code`] is kept. If not, nothing was trimmed.
    has_code: bool,
}

/// Builds the call tree of `nodes`. With `full`, every frame is kept.
pub(super) fn build(nodes: &[RawNode], places: &Places, full: bool) -> Tree {
    let ends = ends(nodes, places, full);
    let needed = needed_in_full(nodes, &ends);
    let mut builder = Builder {
        tree: Tree::default(),
        table: &places.table,
        used: vec![None; places.table.len()],
        known: HashMap::new(),
    };
    builder.tree.of_node = vec![StackId::EMPTY; nodes.len()];
    let mut whole = vec![StackId::EMPTY; nodes.len()];
    for node in 1..nodes.len() {
        let caller = whole[parent(nodes, node)];
        let own = places.of(node_id(node));
        let end = ends[node];
        let ends_here = end.node as usize == node;
        if ends_here {
            let kept = builder.extend(caller, &own[..end.frames as usize]);
            builder.tree.of_node[node] = kept;
            if needed[node] {
                whole[node] = builder.extend(kept, &own[end.frames as usize..]);
            }
        } else {
            builder.tree.of_node[node] = builder.tree.of_node[end.node as usize];
            if needed[node] {
                whole[node] = builder.extend(caller, own);
            }
        }
    }
    builder.tree.stacks.shrink_to_fit();
    builder.tree
}

/// Returns the end of each node's stack: the frame with [`Role::Code`] that is nearest to the leaf, or the leaf if the stack
/// has no such frame.
fn ends(nodes: &[RawNode], places: &Places, full: bool) -> Vec<End> {
    let table = &places.table;
    let mut ends = vec![
        End {
            node: 0,
            frames: 0,
            has_code: false
        };
        nodes.len()
    ];
    // Whether a stack has only entry frames so far. `Role::Entry` counts only there.
    let mut at_entry = vec![true; nodes.len()];
    for node in 1..nodes.len() {
        let caller = parent(nodes, node);
        let own = places.of(node_id(node));
        let whole = End {
            node: index(node),
            frames: index(own.len()),
            has_code: ends[caller].has_code,
        };
        let mut last_code = None;
        at_entry[node] = at_entry[caller];
        for (nth, &frame) in own.iter().enumerate() {
            match table.role(frame) {
                Role::Entry if at_entry[node] => continue,
                Role::Library => {}
                Role::Entry | Role::Code => last_code = Some(nth),
            }
            at_entry[node] = false;
        }
        ends[node] = match last_code {
            _ if full => whole,
            Some(last) => End {
                frames: index(last + 1),
                has_code: true,
                ..whole
            },
            None if ends[caller].has_code => ends[caller],
            None => whole,
        };
    }
    ends
}

/// Returns which nodes are needed with all their frames, because a trimmed stack ends nearer to the leaf.
fn needed_in_full(nodes: &[RawNode], ends: &[End]) -> Vec<bool> {
    let mut needed = vec![false; nodes.len()];
    for end in ends {
        needed[parent(nodes, end.node as usize)] = true;
    }
    for node in (1..nodes.len()).rev() {
        if needed[node] {
            needed[parent(nodes, node)] = true;
        }
    }
    needed
}

struct Builder<'p> {
    tree: Tree,
    table: &'p FrameTable,
    used: Vec<Option<FrameId>>,
    /// The report's frames. Frames of the table that differ only in their role are one frame here.
    known: HashMap<(Frame, Option<StrId>, Option<Own>), FrameId>,
}

impl Builder<'_> {
    fn extend(&mut self, stack: StackId, frames: &[u32]) -> StackId {
        frames.iter().fold(stack, |stack, &frame| {
            let frame = self.frame(frame);
            self.tree.stacks.child(stack, frame)
        })
    }

    /// Returns the report's handle of a frame, and copies the frame into the report at its first use.
    fn frame(&mut self, id: u32) -> FrameId {
        if let Some(used) = self.used[id as usize] {
            return used;
        }
        let Frame {
            function,
            file,
            line,
        } = self.table.frame(id);
        let strings = &self.table.strings;
        let frame = Frame {
            function: self.tree.strings.intern(strings.get(function)),
            file: self.tree.strings.intern(strings.get(file)),
            line,
        };
        let full_name = self.table.full_name(id);
        let full_name = full_name.map(|name| self.tree.strings.intern(name));
        let key = (frame, full_name, self.table.own_address(id));
        let tree = &mut self.tree;
        let used = *self.known.entry(key).or_insert_with(|| {
            tree.frames.push(frame);
            tree.full_names.extend(full_name);
            tree.places.push(self.table.place(id));
            FrameId(index(tree.frames.len() - 1))
        });
        self.used[id as usize] = Some(used);
        used
    }
}

/// Returns the caller of `node`, or the root if the parent does not come before its child (a broken snapshot).
fn parent(nodes: &[RawNode], node: usize) -> usize {
    match nodes.get(node) {
        Some(raw) if (raw.parent.0 as usize) < node => raw.parent.0 as usize,
        _ => 0,
    }
}

fn node_id(node: usize) -> NodeId {
    NodeId(index(node))
}

fn index(position: usize) -> u32 {
    u32::try_from(position).expect("nodes and frames are numbered in 32 bits")
}
