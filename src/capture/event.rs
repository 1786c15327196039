//! What travels from a hook to the collector.

/// The kind of an [`Event`]. Fits in a byte; allocation kinds equal memray's allocator numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // each allocation kind is the C function of that name
pub enum Kind {
    /// `free`, or Rust's `dealloc`.
    Free = 5,
    Malloc = 6,
    Realloc = 7,
    Calloc = 8,
    PosixMemalign = 9,
    AlignedAlloc = 10,
    Memalign = 11,
    Valloc = 12,
    Pvalloc = 13,
    Mmap = 14,
    /// `munmap` of a range, which need not be one that `mmap` returned.
    Munmap = 15,
    /// The old block of a `realloc`, recorded before the real call. The same thread's next event about memory is
    /// either a `Realloc` (it succeeded) or a `ReallocFailed` of the same address.
    ReallocFree = 16,
    /// The real `realloc` failed: the block at `address` lives on as before.
    ReallocFailed = 17,
    /// A thread begins to record. `size` is its operating system number.
    ThreadStart = 18,
    /// A thread ends or is renamed: the first 8 bytes of its name in `address`, the next 8 in `size`, zero padded.
    ThreadName = 19,
    /// The real `realloc` succeeded, and sampling leaves its new block out: the old one is gone.
    ReallocDone = 20,
    /// From now on the thread's allocations are samples: `size` is the mean distance of their points in bytes.
    Sampling = 21,
}

impl Kind {
    /// The kind of number `byte`; a number that is none reads as `Free` of an address that nobody knows.
    #[inline]
    #[must_use]
    pub fn from_byte(byte: u8) -> Kind {
        const ALL: [Kind; 22] = [
            Kind::Free,
            Kind::Free,
            Kind::Free,
            Kind::Free,
            Kind::Free,
            Kind::Free,
            Kind::Malloc,
            Kind::Realloc,
            Kind::Calloc,
            Kind::PosixMemalign,
            Kind::AlignedAlloc,
            Kind::Memalign,
            Kind::Valloc,
            Kind::Pvalloc,
            Kind::Mmap,
            Kind::Munmap,
            Kind::ReallocFree,
            Kind::ReallocFailed,
            Kind::ThreadStart,
            Kind::ThreadName,
            Kind::ReallocDone,
            Kind::Sampling,
        ];
        ALL.get(usize::from(byte)).copied().unwrap_or(Kind::Free)
    }

    /// Whether memory is handed out.
    #[must_use]
    pub fn is_allocation(self) -> bool {
        (Kind::Malloc as u8..=Kind::Mmap as u8).contains(&(self as u8))
    }
}

/// One event, as the collector sees it after the merge: in the order of time over all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time stamp counter.
    pub stamp: u64,
    /// The recording thread: numbered from 1 in order of first use, never used again.
    pub thread: u32,
    /// What happened.
    pub kind: Kind,
    /// Address of the block.
    pub address: u64,
    /// Bytes asked for; of `Munmap`, the length of the range. Of `Free`, while sampling, 1 if the thread knows the block
    /// for a temporary one; else 0.
    pub size: u64,
    /// The call stack: a node of the collector's call tree. For frees [`NodeId::ROOT`], or [`NodeId::UNTRACKED`].
    pub node: NodeId,
}

/// A node of the collector's call tree: a call stack by return addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The empty stack.
    pub const ROOT: NodeId = NodeId(0);

    /// Of a free: the thread was untracked. If the block is unknown, it is one that was not to be seen.
    pub const UNTRACKED: NodeId = NodeId(1);
}
