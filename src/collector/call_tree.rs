//! The call tree of the whole process: every distinct call stack by return addresses, each kept once.
//!
//! Threads number the nodes of their own trees; whoever merges the rings maps each such node once to one of these.

use super::hash::mix;
use super::positions::Positions;
use super::snapshot::{ModuleId, RawNode};
use crate::capture::event::NodeId;

/// See the module.
#[derive(Debug)]
pub struct CallTree {
    nodes: Vec<RawNode>,
    index: Positions,
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
        }
    }
}

impl CallTree {
    /// The stack of `parent` with the return address `address` called from it, which lies in `module` (or is one of
    /// the marks of [`RawNode`]). Added if it is new. The same address in another module is another stack: a module's id
    /// is never given to one that differs from it in path, place or build id, so nothing need be forgotten when one is
    /// unloaded.
    ///
    /// Past 2^32 - 2 stacks, which no memory holds, the caller's stack is given instead.
    pub fn child(&mut self, parent: NodeId, address: u64, module: ModuleId) -> NodeId {
        let node = RawNode {
            parent,
            module,
            address,
        };
        let hash = hash_of(&node);
        let nodes = &self.nodes;
        if let Some(at) = self
            .index
            .find(hash, |at| nodes.get(at as usize) == Some(&node))
        {
            return NodeId(at);
        }
        let Some(at) = u32::try_from(self.nodes.len())
            .ok()
            .filter(|&at| at < u32::MAX)
        else {
            return parent;
        };
        debug_assert!(parent.0 < at, "a parent is added before its children");
        // All but the root, which is nobody's child.
        self.index
            .insert(hash, at, || self.nodes.iter().map(hash_of).zip(0..).skip(1));
        self.nodes.push(node);
        NodeId(at)
    }

    /// Every node; index 0 is the empty stack, parents come first.
    #[must_use]
    pub fn nodes(&self) -> &[RawNode] {
        &self.nodes
    }

    /// Bytes of memory it holds.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.nodes.as_slice()) as u64 + self.index.memory_bytes()
    }
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
    fn an_address_that_another_module_took_over_is_another_stack() {
        let mut tree = CallTree::default();
        let old = tree.child(NodeId::ROOT, 0x1000, ModuleId(1));
        let new = tree.child(NodeId::ROOT, 0x1000, ModuleId(2));
        assert_ne!(new, old);
        assert_eq!(tree.nodes()[old.0 as usize].module, ModuleId(1));
        // The first one comes again, at the same place.
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
