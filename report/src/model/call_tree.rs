//! Strings, frames and the call tree that is made of them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::clean::in_one_line;
use crate::hash::FastMap;

/// A string of [`Strings`]. `StrId::EMPTY` is the empty string.
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
    /// The handle of `text`, which is added if it is new. Kept in one line: without control characters and the like, which
    /// [`in_one_line`](crate::memray::in_one_line) names, so that no name can harm whatever shows it.
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

    /// The text of `id`; the empty string where `id` is not of this table.
    #[must_use]
    pub fn get(&self, id: StrId) -> &str {
        self.list.get(id.0 as usize).map_or("", |text| text)
    }

    /// How many distinct strings there are, the empty one included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Always false: the empty string is in every table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// An index into [`Report::frames`](super::Report::frames).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// One place in the source: a function and a line of it. An inlined call is a frame like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Frame {
    /// The demangled name, or `module+0xoffset` where there are no symbols.
    pub function: StrId,
    /// The source file as the compiler saw it; the ELF object's path where the file is unknown.
    pub file: StrId,
    /// Line in `file`, from 1; 0 if unknown.
    pub line: u32,
}

/// A call stack: a node of [`Stacks`]. [`StackId::EMPTY`] is the stack with no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StackId(pub u32);

impl StackId {
    /// The stack with no frame, parent of every root frame.
    pub const EMPTY: StackId = StackId(0);
}

/// A call stack as its caller's stack and one more frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The stack of the caller; always a smaller handle than the node's own.
    pub parent: StackId,
    /// The frame that this node adds (the leaf of this stack).
    pub frame: FrameId,
}

/// The call tree. Parents come before children; node `n` is `StackId(n + 1)`, since 0 is the empty stack.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    nodes: Vec<StackNode>,
    /// By parent and frame.
    index: FastMap<u64, StackId>,
}

impl PartialEq for Stacks {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

impl Stacks {
    /// The stack of `parent` with `frame` called from it; added if it is new.
    #[inline]
    pub fn child(&mut self, parent: StackId, frame: FrameId) -> StackId {
        let node = StackNode { parent, frame };
        let key = (u64::from(parent.0) << 32) | u64::from(frame.0);
        if let Some(&id) = self.index.get(&key) {
            return id;
        }
        assert!(
            parent.0 as usize <= self.nodes.len(),
            "a parent is added before its children"
        );
        self.nodes.push(node);
        let id = StackId(u32::try_from(self.nodes.len()).expect("fewer than 2^32 stacks"));
        self.index.insert(key, id);
        id
    }

    /// The node of `id`; `None` for the empty stack.
    #[must_use]
    pub fn node(&self, id: StackId) -> Option<StackNode> {
        self.nodes.get((id.0 as usize).wrapping_sub(1)).copied()
    }

    /// Frames from the leaf to the root.
    pub fn leaf_to_root(&self, id: StackId) -> impl Iterator<Item = FrameId> + '_ {
        let mut at = id;
        std::iter::from_fn(move || {
            let node = self.node(at)?;
            at = node.parent;
            Some(node.frame)
        })
    }

    /// Every stack but the empty one with its handle, parents first.
    pub fn iter(&self) -> impl Iterator<Item = (StackId, StackNode)> + '_ {
        self.nodes
            .iter()
            .zip(1..)
            .map(|(&node, id)| (StackId(id), node))
    }

    /// How many stacks there are, the empty one not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no stack but the empty one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}
