//! The parts of the resident size, which add up to it, including the unexplained rest.

use crate::Report;
use crate::model::Allocator;
use crate::units::size;

/// Relation of a [`Part`] to the resident size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Share {
    /// Part of the resident size. All of these together, minus those that are not resident, are the resident size.
    Resident,
    /// Counted among the parts, but not resident: to be subtracted.
    NotResident,
    /// Another figure for comparison.
    Beside,
}

/// Part in [`resident_parts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Name in a few words: `Live blocks`.
    pub name: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// Relation to the resident size.
    pub share: Share,
    /// Explanation of the part, and its meaning for a user who looks for memory, in a sentence or two.
    pub explanation: String,
}

/// Returns the parts of the resident size at the end of the session, in the order of a bar, without empty parts. Returns
/// none if the process's memory was not read.
///
/// Nothing counts twice: memory that heapray has from the allocator is heapray's part, not the allocator's. The figures come
/// from several sources (the session, the allocator, the system) that were read one after another, so the rest includes
/// their differences too.
#[must_use]
pub fn resident_parts(report: &Report) -> Vec<Part> {
    let Some(memory) = &report.process_memory else {
        return Vec::new();
    };
    let (mut live, mut mapped) = (0u64, 0u64);
    for site in &report.sites {
        let sum = match site.allocator {
            Allocator::Mmap => &mut mapped,
            _ => &mut live,
        };
        *sum = sum.saturating_add(site.live.bytes);
    }
    let sum = |bytes: u64, more: u64| bytes.saturating_add(more);
    let in_use = memory.allocators.iter().map(|a| a.in_use).fold(0, sum);
    let kept = memory.allocators.iter().map(|a| a.kept).fold(0, sum);
    let names: Vec<&str> = memory.allocators.iter().map(|a| a.name.as_str()).collect();
    let names = names.join(", ");
    let unrecorded = in_use.saturating_sub(live.saturating_add(memory.own_heap));

    let mut parts = Parts::default();
    let cannot_tell = if memory.allocators.is_empty() {
        " The allocator does not report what else it has."
    } else {
        ""
    };
    parts.add(
        "Live blocks",
        live,
        format!("What the service allocated since the capture began and has not freed, as it asked for it.{cannot_tell}"),
    );
    parts.add(
        "Rounding and unrecorded blocks",
        unrecorded,
        format!(
            "What {names} has handed out beyond that: headers, sizes rounded up, and blocks from before the capture."
        ),
    );
    parts.add(
        "Kept by the allocator",
        kept,
        format!("Freed by the service, and kept by {names} for later: fragmentation and caches, no leak."),
    );
    parts.add(
        "Thread stacks",
        memory.stacks.unwrap_or(0),
        format!(
            "Touched pages of the stacks of {} threads.",
            memory.stack_count
        ),
    );
    parts.add(
        "Heapray",
        sum(memory.own_mapped, memory.own_heap),
        "The profiler's own tables and buffers; without it they would not be there.".into(),
    );
    parts.add(
        "Mapped files",
        memory.files.unwrap_or(0),
        "Code and data of the program, its libraries and other mapped files; the system can drop and reread most of it."
            .into(),
    );
    parts.add(
        "Shared memory",
        memory.shared.unwrap_or(0),
        "Pages of shared memory (tmpfs, shm) that this process has touched.".into(),
    );
    let explained = parts.list.iter().map(|part| part.bytes).fold(0, sum);
    let maps = match mapped {
        0 => String::new(),
        mapped => format!(
            " The service has {} mapped with mmap; what of it was touched is here, or among the files.",
            size(mapped)
        ),
    };
    parts.add(
        "Unexplained",
        memory.rss.saturating_sub(explained),
        format!("Resident, but not accounted for: mappings of libraries, static data, the loader, page tables' rounding.{maps}"),
    );
    parts.share = Share::NotResident;
    parts.add(
        "Not resident",
        explained.saturating_sub(memory.rss),
        "Counted above, but not in memory: pages that were never touched, given back or swapped out.".into(),
    );
    parts.share = Share::Beside;
    parts.add(
        "Swapped out",
        memory.swapped.unwrap_or(0),
        "Pages of this process in swap, not part of its resident size.".into(),
    );
    if let Some(cgroup) = memory.cgroup {
        let limit = match memory.cgroup_limit {
            Some(limit) => format!(" Its limit is {}.", size(limit)),
            None => " It has no limit.".into(),
        };
        parts.add(
            "Control group",
            cgroup,
            format!("What the system charges the container: page cache and every process in it are part of it.{limit}"),
        );
    }
    parts.list
}

struct Parts {
    list: Vec<Part>,
    share: Share,
}

impl Default for Parts {
    fn default() -> Self {
        Parts {
            list: Vec::new(),
            share: Share::Resident,
        }
    }
}

impl Parts {
    fn add(&mut self, name: &'static str, bytes: u64, explanation: String) {
        if bytes > 0 {
            self.list.push(Part {
                name,
                bytes,
                share: self.share,
                explanation,
            });
        }
    }
}
