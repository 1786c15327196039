//! The parts of the resident size as one family: they add up to it.

use heapray_report::model::ProcessMemory;

use super::family::{Family, Kind};
use crate::collector::figures::Running;

/// Returns the family. It has no value where the system does not report the resident size.
pub(super) fn family(memory: Option<&ProcessMemory>, running: Option<&Running>) -> Family {
    let mut family = Family::new(
        Kind::Gauge,
        "heapray_rss_bytes",
        "Resident memory by part: live blocks, what the allocator has beyond them, thread stacks, mapped files and shared \
         memory, the profiler, and other.",
    );
    let live = running.map_or(0, |now| now.live.bytes.saturating_sub(now.mapped));
    for (part, bytes) in memory
        .map(|memory| parts(memory, live))
        .into_iter()
        .flatten()
    {
        family.add([("part", part.to_owned())], bytes);
    }
    family
}

/// Returns the parts of the resident size. `live`: bytes of live blocks from the allocator.
///
/// Not all of what is counted need be resident: blocks that were never touched, and free memory that the allocator has
/// returned to the system. A part is cut where the resident size is used up. What the system reports itself comes first, and
/// what the allocator keeps comes last.
fn parts(memory: &ProcessMemory, live: u64) -> [(&'static str, u64); 6] {
    let sum = |bytes: u64, more: u64| bytes.saturating_add(more);
    let allocators = memory.allocators.iter();
    let held = allocators.map(|it| sum(it.in_use, it.kept)).fold(0, sum);
    let mut left = memory.rss;
    let mut take = |bytes: u64| {
        let taken = bytes.min(left);
        left -= taken;
        taken
    };
    let files = take(sum(memory.files.unwrap_or(0), memory.shared.unwrap_or(0)));
    let profiler = take(sum(memory.own_mapped, memory.own_heap));
    let stacks = take(memory.stacks.unwrap_or(0));
    let live_resident = take(live);
    let allocator = take(held.saturating_sub(sum(live, memory.own_heap)));
    [
        ("live", live_resident),
        ("allocator", allocator),
        ("stacks", stacks),
        ("files", files),
        ("profiler", profiler),
        ("other", left),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapray_report::model::AllocatorMemory;
    use proptest::prelude::*;

    #[test]
    fn the_allocator_has_what_is_not_live() {
        let memory = ProcessMemory {
            rss: 1_000,
            files: Some(100),
            stacks: Some(50),
            own_mapped: 70,
            own_heap: 30,
            allocators: vec![AllocatorMemory::new("glibc", 400, 200)],
            ..ProcessMemory::default()
        };
        let expected = [
            ("live", 300),
            ("allocator", 270),
            ("stacks", 50),
            ("files", 100),
            ("profiler", 100),
            ("other", 180),
        ];
        assert_eq!(parts(&memory, 300), expected);
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_resident_size(figures in any::<[u64; 8]>()) {
            let [rss, files, stacks, own_mapped, own_heap, in_use, kept, live] = figures;
            let memory = ProcessMemory {
                rss,
                files: Some(files),
                stacks: Some(stacks),
                own_mapped,
                own_heap,
                allocators: vec![AllocatorMemory::new("any", in_use, kept)],
                ..ProcessMemory::default()
            };
            let total: u128 = parts(&memory, live).iter().map(|(_, bytes)| u128::from(*bytes)).sum();
            prop_assert_eq!(total, u128::from(rss));
        }
    }
}
