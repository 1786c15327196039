//! Strings, frames and the call tree.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::clean::in_one_line;
use crate::hash::FastMap;

/// Handle of a string in [`Strings`]. `StrId::EMPTY` is the empty string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StrId(pub u32);

impl StrId {
    /// The empty string, in every table.
    pub const EMPTY: StrId = StrId(0);
}

/// Interned strings: each distinct one is kept once.
#[derive(Debug, Clone)]
pub struct Strings {
    list: Vec<Arc<str>>,
    index: HashMap<Arc<str>, StrId>,
}

impl Default for Strings {
    fn default() -> Self {
        let empty: Arc<str> = Arc::from("");
        Strings {
            list: vec![empty.clone()],
            index: HashMap::from([(empty, StrId::EMPTY)]),
        }
    }
}

impl PartialEq for Strings {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Strings {
    /// Returns the handle of `text`, which is added if it is new. The text is kept in one line, without the control and
    /// other characters that [`in_one_line`](crate::memray::in_one_line) removes, so that no name can harm the place where
    /// it is shown.
    pub fn intern(&mut self, text: &str) -> StrId {
        let text = &*in_one_line(text);
        if let Some(&id) = self.index.get(text) {
            return id;
        }
        let id = StrId(u32::try_from(self.list.len()).expect("fewer than 2^32 distinct strings"));
        let text: Arc<str> = Arc::from(text);
        self.list.push(text.clone());
        self.index.insert(text, id);
        id
    }

    /// Returns the text of `id`, or the empty string if `id` is not of this table.
    #[must_use]
    pub fn get(&self, id: StrId) -> &str {
        self.list.get(id.0 as usize).map_or("", |text| text)
    }

    /// Returns the number of distinct strings, including the empty one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns false: the empty string is in every table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Index into [`Report::frames`](super::Report::frames).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// Line of source code: a function and a line in it. An inlined call is a frame like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Frame {
    /// The demangled name, or `module+0xoffset` if there are no symbols.
    pub function: StrId,
    /// The source file as the compiler saw it; the ELF object's path if the file is unknown.
    pub file: StrId,
    /// Line in `file`, from 1; 0 if unknown.
    pub line: u32,
}

/// Handle of a call stack: a node of [`Stacks`]. [`StackId::EMPTY`] is the stack without frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StackId(pub u32);

impl StackId {
    /// The stack without frames, parent of every root frame.
    pub const EMPTY: StackId = StackId(0);
}

/// Call stack, as its caller's stack and one more frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The stack of the caller. Its handle is always smaller than the node's own.
    pub parent: StackId,
    /// The frame that this node adds (the leaf of this stack).
    pub frame: FrameId,
}

impl StackNode {
    fn key(self) -> u64 {
        u64::from(self.parent.0) << 32 | u64::from(self.frame.0)
    }

    /// Returns whether `id` is the handle after the caller's.
    fn follows_caller_as(self, id: StackId) -> bool {
        self.parent.0 + 1 == id.0
    }
}

/// Call tree. Parents come before children; node `n` is `StackId(n + 1)`, since 0 is the empty stack.
///
/// Most trees are built stack by stack, so a stack often has the handle after its caller's. It is looked for there, and the index has
/// the others.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    nodes: Vec<StackNode>,
    /// Stacks by parent and frame: all that belong here, or none after [`shrink_to_fit`](Stacks::shrink_to_fit).
    index: FastMap<u64, StackId>,
    /// Number of stacks that belong into the index.
    indexed: usize,
}

impl PartialEq for Stacks {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

impl Stacks {
    /// Returns the stack of `parent` with `frame` called from it, and adds it if it is new.
    #[inline]
    pub fn child(&mut self, parent: StackId, frame: FrameId) -> StackId {
        let node = StackNode { parent, frame };
        let id = StackId(u32::try_from(self.nodes.len() + 1).expect("fewer than 2^32 stacks"));
        assert!(parent < id, "a parent is added before its children");
        // Nothing is called from the newest stack yet.
        if !node.follows_caller_as(id) {
            let next = StackId(parent.0 + 1);
            if self.node(next) == Some(node) {
                return next;
            }
            if self.index.len() != self.indexed {
                let others = self
                    .iter()
                    .filter(|&(id, node)| !node.follows_caller_as(id));
                self.index = others.map(|(id, node)| (node.key(), id)).collect();
            }
            match self.index.entry(node.key()) {
                Entry::Occupied(known) => return *known.get(),
                Entry::Vacant(free) => free.insert(id),
            };
            self.indexed += 1;
        }
        self.nodes.push(node);
        id
    }

    /// Frees the memory that only [`child`](Self::child) needs, most of the tree's. A later call of it takes that memory again.
    pub fn shrink_to_fit(&mut self) {
        self.index = FastMap::default();
        self.nodes.shrink_to_fit();
    }

    /// Returns the node of `id`, or `None` for the empty stack.
    #[must_use]
    pub fn node(&self, id: StackId) -> Option<StackNode> {
        self.nodes.get((id.0 as usize).wrapping_sub(1)).copied()
    }

    /// Returns the frames from the leaf to the root.
    pub fn leaf_to_root(&self, id: StackId) -> impl Iterator<Item = FrameId> + '_ {
        let mut at = id;
        std::iter::from_fn(move || {
            let node = self.node(at)?;
            at = node.parent;
            Some(node.frame)
        })
    }

    /// Returns every stack except the empty one, with its handle, parents first.
    pub fn iter(&self) -> impl Iterator<Item = (StackId, StackNode)> + '_ {
        self.nodes
            .iter()
            .zip(1..)
            .map(|(&node, id)| (StackId(id), node))
    }

    /// Returns the number of stacks, not counting the empty one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there is no stack except the empty one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_stack_is_kept_once(calls in prop::collection::vec((any::<u16>(), 0u32..6, 0u32..100), 1..400)) {
            let mut stacks = Stacks::default();
            let mut known = HashMap::new();
            for (parent, frame, chance) in calls {
                let parent = StackId(u32::from(parent) % (known.len() as u32 + 1));
                let next = StackId(known.len() as u32 + 1);
                let expected = *known.entry((parent, frame)).or_insert(next);
                prop_assert_eq!(stacks.child(parent, FrameId(frame)), expected);
                if chance == 0 {
                    stacks.shrink_to_fit();
                }
            }
            prop_assert_eq!(stacks.len(), known.len());
            for ((parent, frame), id) in known {
                prop_assert_eq!(stacks.node(id), Some(StackNode { parent, frame: FrameId(frame) }));
            }
        }
    }

    #[test]
    fn a_shrunk_tree_still_finds_its_stacks_and_takes_more() {
        let mut stacks = Stacks::default();
        let main = stacks.child(StackId::EMPTY, FrameId(1));
        let leaf = stacks.child(main, FrameId(2));
        let mut shrunk = stacks.clone();
        shrunk.shrink_to_fit();
        assert_eq!(shrunk, stacks);
        assert_eq!(shrunk.child(main, FrameId(2)), leaf);
        let other = shrunk.child(main, FrameId(3));
        assert_eq!((shrunk.child(main, FrameId(3)), shrunk.len()), (other, 3));
    }
}
