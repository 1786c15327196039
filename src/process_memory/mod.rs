//! Where the process's memory is: what the system and the allocators tell, for "where did the RSS go?".
//!
//! Read by the collector when it makes a snapshot. Everything comes from `/proc` and may be missing there; a figure
//! that cannot be had is left out, and nothing here fails.

mod allocators;
mod cgroup;
mod resident;
mod stacks;
mod status;

use heapray_report::model::ProcessMemory;

pub use allocators::allocator_memory;
pub(crate) use resident::resident;

/// Reads everything. heapray has mapped `own_mapped` bytes for itself, and has `own_heap` bytes from the allocator.
/// `None` where the system does not tell the resident size.
pub(crate) fn read(own_mapped: u64, own_heap: u64) -> Option<ProcessMemory> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mut memory = status::parse(&status)?;
    memory.own_mapped = own_mapped;
    memory.own_heap = own_heap;
    if let Some((bytes, count)) = stacks::resident() {
        memory.stacks = Some(bytes);
        memory.stack_count = count;
    }
    memory.allocators = allocators::figures();
    (memory.cgroup, memory.cgroup_limit) = cgroup::read();
    Some(memory)
}

/// The control group's limit, if it has one.
pub(crate) fn cgroup_limit() -> Option<u64> {
    cgroup::read().1
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_resident_size() {
        let memory = read(1, 2).unwrap();
        let parts = [memory.anonymous, memory.files, memory.shared];
        assert_eq!(memory.rss, parts.into_iter().flatten().sum::<u64>());
        assert!(memory.rss > 1 << 20);
        assert_eq!((memory.own_mapped, memory.own_heap), (1, 2));
    }
}
