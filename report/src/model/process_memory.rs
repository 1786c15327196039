//! Parts of the process's memory at the end of the session, from the system and the allocator.

/// Figures in bytes. Those that the system did not report are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct ProcessMemory {
    /// Resident memory, as in the timeline: the sum of the next three.
    pub rss: u64,
    /// Resident pages without a file (`RssAnon` of `/proc/self/status`).
    pub anonymous: Option<u64>,
    /// Resident pages of mapped files: code, shared libraries, data (`RssFile`).
    pub files: Option<u64>,
    /// Resident shared memory (`RssShmem`).
    pub shared: Option<u64>,
    /// Anonymous pages that were swapped out (`VmSwap`); not part of `rss`.
    pub swapped: Option<u64>,
    /// Resident pages of thread stacks, as far as heapray knows the threads.
    pub stacks: Option<u64>,
    /// Threads whose stacks are in `stacks`.
    pub stack_count: u32,
    /// Memory that heapray mapped for itself, beside the allocator.
    pub own_mapped: u64,
    /// Memory that heapray has from the allocator, a part of the allocator's `in_use`.
    pub own_heap: u64,
    /// Figures that the allocators of the process report about themselves.
    pub allocators: Vec<AllocatorMemory>,
    /// Memory charged to the control group (`memory.current`), including page cache and all other processes of the group.
    pub cgroup: Option<u64>,
    /// The group's limit (`memory.max`), if it has one.
    pub cgroup_limit: Option<u64>,
}

/// Figures of an allocator, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct AllocatorMemory {
    /// `glibc`, `jemalloc`, `mimalloc`, …
    pub name: String,
    /// Bytes in blocks that are handed out, with their headers and rounding.
    pub in_use: u64,
    /// Bytes kept for later: freed, but not returned to the system. Not all of them need be resident.
    pub kept: u64,
    /// The arenas among which it divides its memory; 0 if unknown.
    pub arenas: u32,
}

impl AllocatorMemory {
    /// Returns the figures of the allocator `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, in_use: u64, kept: u64) -> AllocatorMemory {
        AllocatorMemory {
            name: name.into(),
            in_use,
            kept,
            arenas: 0,
        }
    }

    /// Returns the figures with the number of arenas.
    #[must_use]
    pub fn with_arenas(mut self, arenas: u32) -> AllocatorMemory {
        self.arenas = arenas;
        self
    }
}
