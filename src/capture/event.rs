//! The events that travel from a hook to the collector.
//!
//! An event is a few words, so that it is written fast. Their meaning depends on the kind. They are written and read by name:
//! by [`Ring`](super::ring::Ring)'s `push_…` and the functions here, and by the methods of [`Event`].

use super::metered::Metered;

/// Kind of an [`Event`]. Fits in a byte; the allocation kinds equal memray's allocator numbers.
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
    /// A thread begins to record: [`Event::tid`].
    ThreadStart = 18,
    /// A thread ends or is renamed: [`Event::name`].
    ThreadName = 19,
    /// The real `realloc` succeeded, and sampling does not record the new block. The old block is gone.
    ReallocDone = 20,
    /// From now on the thread's allocations are samples: [`Event::mean_bytes`].
    Sampling = 21,
    /// From now on the thread allocates in another context: [`Event::context`].
    Context = 22,
    /// A run has ended: [`Event::run`], and its [`Event::run_end`].
    RunEnd = 23,
    /// A run has ended whose allocations a thread has counted itself: its [`Event::run_end`].
    MeteredRunEnd = 24,
    /// The trace of the run whose end the thread tells next, after the [`Kind::SpanId`]: [`Event::trace_words`].
    TraceId = 25,
    /// The span of that run: [`Event::trace_words`].
    SpanId = 26,
}

impl Kind {
    /// Returns the kind of number `byte`. An unknown number reads as `Free`, whose address will be unknown.
    #[inline]
    #[must_use]
    pub fn from_byte(byte: u8) -> Kind {
        const ALL: [Kind; 27] = [
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
            Kind::Context,
            Kind::RunEnd,
            Kind::MeteredRunEnd,
            Kind::TraceId,
            Kind::SpanId,
        ];
        ALL.get(usize::from(byte)).copied().unwrap_or(Kind::Free)
    }

    /// Returns whether two words of 64 bits belong to the event, in a second slot.
    #[inline]
    #[must_use]
    pub fn has_words(self) -> bool {
        matches!(self, Kind::ThreadName | Kind::TraceId | Kind::SpanId)
    }

    /// Returns whether the event hands out memory.
    #[must_use]
    pub fn is_allocation(self) -> bool {
        (Kind::Malloc as u8..=Kind::Mmap as u8).contains(&(self as u8))
    }
}

/// Event as the collector sees it after the merge: in the order of time over all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time stamp counter.
    pub stamp: u64,
    /// The recording thread. Threads are numbered from 1 in the order of their first event; numbers are never reused.
    pub thread: u32,
    /// Kind of the event.
    pub kind: Kind,
    /// Address of the block or the range.
    pub address: u64,
    /// Requested bytes; for `Munmap`, the length of the range. For other kinds see the methods.
    pub size: u64,
    /// Call stack of an allocation, as a node of the collector's call tree. For a free see [`Event::is_untracked`].
    pub node: NodeId,
}

impl Event {
    /// Makes the event of `thread`, which is the system's `tid`, for its first event.
    #[must_use]
    pub fn thread_start(stamp: u64, thread: u32, tid: u32) -> Event {
        Event {
            stamp,
            thread,
            kind: Kind::ThreadStart,
            address: 0,
            size: u64::from(tid),
            node: NodeId::ROOT,
        }
    }

    /// Returns the operating system's number of the thread, for a [`Kind::ThreadStart`].
    #[inline]
    #[must_use]
    pub fn tid(&self) -> u32 {
        u32::try_from(self.size).unwrap_or(0)
    }

    /// Returns the name, padded with zeros, for a [`Kind::ThreadName`].
    #[must_use]
    pub fn name(&self) -> [u8; 16] {
        unpacked_name([self.address, self.size])
    }

    /// Returns the mean distance of sampling points in bytes, for a [`Kind::Sampling`].
    #[inline]
    #[must_use]
    pub fn mean_bytes(&self) -> u64 {
        self.size
    }

    /// Returns the number of the context, for a [`Kind::Context`]. See [`context`](super::context).
    #[inline]
    #[must_use]
    pub fn context(&self) -> u32 {
        u32::try_from(self.size).unwrap_or(0)
    }

    /// Returns the number of the run, for a [`Kind::Context`] or a [`Kind::RunEnd`]; 0 for none.
    #[inline]
    #[must_use]
    pub fn run(&self) -> u64 {
        self.address
    }

    /// Returns what is told at the end of a run, for a [`Kind::RunEnd`] or a [`Kind::MeteredRunEnd`].
    #[must_use]
    pub fn run_end(&self) -> RunEnd {
        let metered = Metered {
            count: self.size & !IS_TRACED,
            bytes: self.address,
        };
        RunEnd {
            context: self.node.0,
            metered: (self.kind == Kind::MeteredRunEnd).then_some(metered),
            is_traced: self.size & IS_TRACED != 0,
        }
    }

    /// Returns the two words of a [`Kind::TraceId`], or the word of a [`Kind::SpanId`] and 0.
    #[must_use]
    pub fn trace_words(&self) -> [u64; 2] {
        [self.address, self.size]
    }

    /// Returns whether the thread knows that the block is a temporary one, for a [`Kind::Free`] while sampling.
    #[inline]
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        self.size == size_of_free(true)
    }

    /// Returns whether the thread was untracked, for a free, a `Munmap` or a `ReallocFree`. Such an event may be of an unknown
    /// block, which is then not counted as unknown.
    #[inline(always)]
    #[must_use]
    pub fn is_untracked(&self) -> bool {
        self.node == NodeId::of_free(true)
    }

    /// Returns the same free by an untracked thread.
    #[inline]
    #[must_use]
    pub fn as_untracked(self) -> Event {
        Event {
            node: NodeId::of_free(true),
            ..self
        }
    }
}

/// What is told at the end of a [run](super::run::Run).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnd {
    /// The number of the context that the run is counted under.
    pub context: u32,
    /// Its allocations, if a thread has counted them: while sampling.
    pub metered: Option<Metered>,
    /// Whether the thread has told its trace before.
    pub is_traced: bool,
}

/// Set in the size of an event of a run's end, if the run has a trace.
const IS_TRACED: u64 = 1 << 63;

impl RunEnd {
    /// Returns the kind, address and size of its event.
    pub(crate) fn fields(&self, run: u64) -> (Kind, u64, u64) {
        let traced = if self.is_traced { IS_TRACED } else { 0 };
        match self.metered {
            None => (Kind::RunEnd, run, traced),
            Some(Metered { count, bytes }) => (Kind::MeteredRunEnd, bytes, count | traced),
        }
    }
}

/// Returns the size of a [`Kind::Free`]: see [`Event::is_temporary`].
#[inline(always)]
#[must_use]
pub const fn size_of_free(is_temporary: bool) -> u64 {
    is_temporary as u64
}

/// Returns the words of a thread's name.
pub(super) fn packed_name(name: [u8; 16]) -> [u64; 2] {
    let [first, last] = [0, 8].map(|at| {
        let mut word = [0; 8];
        word.copy_from_slice(&name[at..at + 8]);
        u64::from_le_bytes(word)
    });
    [first, last]
}

fn unpacked_name(words: [u64; 2]) -> [u8; 16] {
    let mut name = [0; 16];
    for (bytes, word) in name.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    name
}

/// Node of the collector's call tree: a call stack by return addresses.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The empty stack.
    pub const ROOT: NodeId = NodeId(0);

    /// Returns the node of an event that frees: see [`Event::is_untracked`].
    #[inline(always)]
    #[must_use]
    pub const fn of_free(is_untracked: bool) -> NodeId {
        NodeId(is_untracked as u32)
    }
}
