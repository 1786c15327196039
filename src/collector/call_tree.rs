//! The call tree of the whole process: every distinct call stack by return addresses, each kept once.
//!
//! As in the trees of the threads, the new frames of a stack get numbers in a row, so a node is often the one after its caller's.
//! An index has the others.
//!
//! Threads number the nodes of their own trees. The merge of the rings maps each such node once to a node of this tree.

use super::hash::mix;
use super::positions::Positions;
use super::snapshot::{ModuleId, RawNode};
use crate::capture::event::NodeId;

/// Call tree of the process; see the module.
#[derive(Debug)]
pub struct CallTree {
    nodes: Vec<RawNode>,
    index: Positions,
    /// Largest number of nodes.
    most: usize,
    /// Set if a stack was cut for lack of room.
    has_cut: bool,
}

impl Default for CallTree {
    fn default() -> Self {
        let root = RawNode {
            parent: NodeId::ROOT,
            module: ModuleId::NONE,
            address: 0,
        };
        CallTree {
            nodes: vec![root],
            index: Positions::default(),
            // One number means "no node".
            most: u32::MAX as usize,
            has_cut: false,
        }
    }
}

impl CallTree {
    /// Returns the stack of `parent` with the return address `address` called from it, which lies in `module` (or is one of
    /// the marks of [`RawNode`]), and adds it if it is new. The same address in another module is another stack: a module's
    /// id is never given to a module with another path, place or build id. So unloading a module forgets nothing here.
    ///
    /// Returns the caller's stack if there is no room. That stack must not get further calls then: a known node below it
    /// would make a stack that never existed.
    pub fn child(&mut self, parent: NodeId, address: u64, module: ModuleId) -> NodeId {
        let node = RawNode {
            parent,
            module,
            address,
        };
        let at = self.nodes.len() as u32;
        debug_assert!(parent.0 < at, "a parent is added before its children");
        // Nothing is called from the newest node yet.
        let in_index = !follows(&node, at);
        let hash = hash_of(&node);
        if in_index {
            let nodes = &self.nodes;
            if nodes.get(parent.0 as usize + 1) == Some(&node) {
                return NodeId(parent.0 + 1);
            }
            let is_it = |at: u32| nodes.get(at as usize) == Some(&node);
            if let Some(known) = self.index.find(hash, is_it) {
                return NodeId(known);
            }
        }
        if self.nodes.len() >= self.most || in_index && !self.enter(hash, at) {
            self.has_cut = true;
            return parent;
        }
        self.nodes.push(node);
        NodeId(at)
    }

    /// Enters the next node into the index. Returns false, and does nothing, without memory.
    fn enter(&mut self, hash: u64, at: u32) -> bool {
        let nodes = &self.nodes;
        // Not the root, which nothing calls.
        self.index.insert(hash, at, || {
            let others = nodes.iter().zip(0..).skip(1);
            let others = others.filter(|&(node, at)| !follows(node, at));
            others.map(|(node, at)| (hash_of(node), at))
        })
    }

    /// Allows so many nodes from now on.
    pub(super) fn set_room(&mut self, nodes: usize) {
        let most = self.nodes.len().saturating_add(nodes);
        self.most = most.min(u32::MAX as usize);
    }

    /// Returns whether a stack was ever cut for lack of room.
    pub(super) fn has_cut(&self) -> bool {
        self.has_cut
    }

    /// Returns the stack that stands for all stacks whose sites have no room. There is always room for it.
    pub(super) fn others(&mut self) -> NodeId {
        let most = std::mem::replace(&mut self.most, u32::MAX as usize);
        let node = self.child(NodeId::ROOT, RawNode::OTHER, ModuleId::NONE);
        self.most = most;
        node
    }

    /// Returns all nodes. Index 0 is the empty stack, and parents come first.
    #[must_use]
    pub fn nodes(&self) -> &[RawNode] {
        &self.nodes
    }

    /// Returns the tree's bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.nodes.as_slice()) as u64 + self.mapped_bytes()
    }

    /// Returns those bytes that are pages of its own and not the allocator's.
    pub(super) fn mapped_bytes(&self) -> u64 {
        self.index.mapped_bytes()
    }
}

/// Returns whether a node with the number `at` is the one after its caller. It is looked for there, and not in the index.
#[inline]
fn follows(node: &RawNode, at: u32) -> bool {
    node.parent.0 + 1 == at
}

fn hash_of(node: &RawNode) -> u64 {
    mix(node.address ^ (u64::from(node.parent.0) << 32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const MAIN: ModuleId = ModuleId(0);

    #[test]
    fn a_stack_is_kept_once() {
        let mut tree = CallTree::default();
        let main = tree.child(NodeId::ROOT, 0x1000, MAIN);
        let leaf = tree.child(main, 0x2000, MAIN);
        assert_eq!(tree.child(NodeId::ROOT, 0x1000, MAIN), main);
        assert_eq!(tree.child(main, 0x2000, MAIN), leaf);
        assert_ne!(tree.child(NodeId::ROOT, 0x2000, MAIN), leaf);
        assert_eq!(tree.nodes().len(), 4);
    }

    #[test]
    fn without_room_a_stack_is_its_callers_and_what_is_known_is_found() {
        let mut tree = CallTree::default();
        tree.set_room(2);
        let main = tree.child(NodeId::ROOT, 0x1000, MAIN);
        let leaf = tree.child(main, 0x2000, MAIN);
        assert!(!tree.has_cut());
        assert_eq!(tree.child(main, 0x3000, MAIN), main);
        assert!(tree.has_cut());
        assert_eq!(tree.child(main, 0x2000, MAIN), leaf);
        let others = tree.others();
        assert_eq!(tree.nodes()[others.0 as usize].address, RawNode::OTHER);
        assert_eq!((tree.others(), tree.nodes().len()), (others, 4));
    }

    #[test]
    fn an_address_that_another_module_took_over_is_another_stack() {
        let mut tree = CallTree::default();
        let old = tree.child(NodeId::ROOT, 0x1000, ModuleId(1));
        let new = tree.child(NodeId::ROOT, 0x1000, ModuleId(2));
        assert_ne!(new, old);
        assert_eq!(tree.nodes()[old.0 as usize].module, ModuleId(1));
        // The first module is loaded again, at the same place.
        assert_eq!(tree.child(NodeId::ROOT, 0x1000, ModuleId(1)), old);
    }

    proptest! {
        #[test]
        fn nodes_and_stacks_are_one_to_one(stacks in prop::collection::vec(prop::collection::vec(1u64..6, 0..8), 1..200)) {
            let mut tree = CallTree::default();
            let mut seen: HashMap<Vec<u64>, NodeId> = HashMap::new();
            for stack in stacks {
                let node = stack.iter().fold(NodeId::ROOT, |parent, &address| tree.child(parent, address, MAIN));
                prop_assert_eq!(*seen.entry(stack.clone()).or_insert(node), node);
                let (mut at, mut addresses) = (node, Vec::new());
                while at != NodeId::ROOT {
                    let raw = tree.nodes()[at.0 as usize];
                    prop_assert!(raw.parent < at);
                    addresses.insert(0, raw.address);
                    at = raw.parent;
                }
                prop_assert_eq!(addresses, stack);
            }
        }
    }
}
