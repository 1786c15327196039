//! Memory that an allocator keeps although the program has freed it: the commonest reason for a large resident size that is
//! not a leak.

use crate::Report;
use crate::units::rounded_size;

/// An allocator that keeps much of the resident memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragmentation {
    /// The allocator: `glibc`, `jemalloc`, …
    pub allocator: String,
    /// Bytes that are free inside it, and may be resident.
    pub kept: u64,
    /// Bytes that are resident.
    pub rss: u64,
    /// The arenas among which it divides its memory; 0 if unknown.
    pub arenas: u32,
}

/// Less is not worth a word.
const LEAST: u64 = 32 << 20;

/// Least part of the resident memory: one in so many bytes.
const LEAST_PART: u64 = 5;

/// Returns the allocator that keeps most of the resident memory at the end of the session, if that is much.
#[must_use]
pub fn fragmentation(report: &Report) -> Option<Fragmentation> {
    let memory = report.process_memory.as_ref()?;
    let most = memory.allocators.iter().max_by_key(|one| one.kept)?;
    // Of what the allocator keeps, it may have given pages back to the system.
    let resident = memory.anonymous.unwrap_or(memory.rss);
    let kept = most
        .kept
        .min(resident.saturating_sub(report.totals.live.bytes));
    (kept >= LEAST && kept >= memory.rss / LEAST_PART).then(|| Fragmentation {
        allocator: most.name.clone(),
        kept,
        rss: memory.rss,
        arenas: most.arenas,
    })
}

impl Fragmentation {
    /// Returns what it is and what to do about it, in two or three sentences.
    #[must_use]
    pub fn advice(&self) -> String {
        let Fragmentation {
            allocator,
            kept,
            rss,
            arenas,
        } = self;
        let inside = match arenas {
            0 => allocator.clone(),
            1 => format!("{allocator}'s arena"),
            arenas => format!("{allocator}'s {arenas} arenas"),
        };
        let what = format!(
            "Of {} resident memory, {} are free inside {inside}: the program has freed them, so they are not leaked.",
            rounded_size(*rss),
            rounded_size(*kept)
        );
        let remedy = match allocator.as_str() {
            "glibc" => {
                "MALLOC_ARENA_MAX=2 in the environment, malloc_trim(0) after a peak, or another allocator (jemalloc, \
                 mimalloc) make it give more back to the system."
            }
            "jemalloc" => {
                "Shorter times in its options (dirty_decay_ms, muzzy_decay_ms) make it give more back to the system."
            }
            _ => "Its own options say when it gives memory back to the system.",
        };
        format!("{what} {remedy}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AllocatorMemory, ProcessMemory, Tally};

    fn report(rss: u64, live: u64, name: &str, kept: u64, arenas: u32) -> Report {
        let mut report = Report::default();
        report.totals.live = Tally {
            count: 1,
            bytes: live,
        };
        report.process_memory = Some(ProcessMemory {
            rss,
            anonymous: Some(rss),
            allocators: vec![
                AllocatorMemory::new("other", 5, 5),
                AllocatorMemory::new(name, live, kept).with_arenas(arenas),
            ],
            ..ProcessMemory::default()
        });
        report
    }

    #[test]
    fn much_that_is_free_but_resident_is_told_with_a_remedy() {
        let found = fragmentation(&report(500 << 20, 50 << 20, "glibc", 400 << 20, 33)).unwrap();
        assert_eq!((found.kept, found.arenas), (400 << 20, 33));
        let advice = found.advice();
        assert!(
            advice
                .starts_with("Of 524 MB resident memory, 419 MB are free inside glibc's 33 arenas"),
            "{advice}"
        );
        assert!(advice.contains("MALLOC_ARENA_MAX=2"), "{advice}");
        // Only what can be resident counts.
        let found = fragmentation(&report(500 << 20, 300 << 20, "x", 1 << 40, 0)).unwrap();
        assert_eq!(found.kept, 200 << 20);
    }

    #[test]
    fn a_leak_little_or_nothing_is_not_fragmentation() {
        for (rss, live, kept) in [
            (500 << 20, 490 << 20, 400 << 20),
            (500 << 20, 50 << 20, 60 << 20),
            (40 << 20, 1 << 20, 20 << 20),
        ] {
            assert_eq!(fragmentation(&report(rss, live, "glibc", kept, 1)), None);
        }
        assert_eq!(fragmentation(&Report::default()), None);
    }
}
