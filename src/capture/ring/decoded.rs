//! Reads the words of a slot.

use super::{ADDRESS_MASK, SIZE_IN_NEXT_SLOT, Slot};
use crate::capture::event::{Kind, NodeId};

/// Thread that begins to write to a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadStart {
    /// The session.
    pub session: u32,
    /// The operating system's number of the thread.
    pub tid: u32,
    /// The number of the thread in its events.
    pub number: u32,
}

/// Decoded slot. [`add`](Decoded::add) adds the content of a second slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Time stamp counter.
    pub stamp: u64,
    /// Kind of the event.
    pub kind: Kind,
    /// As that of an [`Event`](crate::capture::event::Event).
    pub address: u64,
    /// As that of an [`Event`](crate::capture::event::Event).
    pub size: u64,
    /// See the methods.
    pub(super) node: u32,
    /// Set if a second slot belongs to the event.
    pub more: bool,
}

impl Decoded {
    /// Returns the call stack of an allocation, as a node of the thread's own call tree.
    #[inline(always)]
    #[must_use]
    pub fn stack(&self) -> u32 {
        self.node
    }

    /// Returns the [`NodeId::of_free`] of an event that frees.
    #[inline(always)]
    #[must_use]
    pub fn node_of_free(&self) -> NodeId {
        NodeId(self.node)
    }

    /// Returns the thread of a [`Kind::ThreadStart`].
    #[must_use]
    pub fn thread_start(&self) -> ThreadStart {
        ThreadStart {
            session: self.address as u32,
            tid: self.size as u32,
            number: self.node,
        }
    }

    /// Adds the second slot.
    #[inline]
    pub fn add(&mut self, more: Slot) {
        if self.kind.has_words() {
            [self.address, self.size, _] = more;
        } else {
            self.size = more[0];
        }
    }
}

/// Decodes a first slot.
#[inline]
pub fn decode(slot: Slot) -> Decoded {
    let kind = Kind::from_byte((slot[1] >> 56) as u8);
    let size = slot[2] >> 32;
    Decoded {
        stamp: slot[0],
        kind,
        address: slot[1] & ADDRESS_MASK,
        size,
        node: slot[2] as u32,
        more: size == SIZE_IN_NEXT_SLOT,
    }
}
