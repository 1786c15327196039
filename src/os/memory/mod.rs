//! Parts of the process's memory, from the system and the allocators, for the question "where did the RSS go?".
//!
//! The collector reads them when it makes a snapshot. All figures come from `/proc` and may be missing there. A missing
//! figure is left out, and nothing here fails.

mod allocators;
mod resident;
mod stacks;
mod status;

use std::path::Path;

use heapray_report::model::ProcessMemory;

use super::cgroup::Groups;
pub use allocators::allocator_memory;
pub(crate) use resident::{resident, resident_by};

/// Reads all figures. heapray has mapped `own_mapped` bytes for itself, and has `own_heap` bytes from the allocator. Returns
/// `None` where the system does not report the resident size.
pub(crate) fn read(own_mapped: u64, own_heap: u64) -> Option<ProcessMemory> {
    let mut memory = read_system()?;
    memory.own_mapped = own_mapped;
    memory.own_heap = own_heap;
    if let Some((bytes, count)) = stacks::resident() {
        memory.stacks = Some(bytes);
        memory.stack_count = count;
    }
    memory.allocators = allocators::figures();
    (memory.cgroup, memory.cgroup_limit) = Groups::find(Path::new("/")).charged();
    Some(memory)
}

/// Reads only those figures that the system has at hand, which takes microseconds: the resident size and its kinds.
pub(crate) fn read_system() -> Option<ProcessMemory> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status::parse(&status)
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
