//! The live blocks by age: the part of the session in which they were allocated.
//!
//! Nothing is kept for this while recording. Each block's entry knows its birth, and a snapshot counts them.

use heapray_report::checkpoints;
use heapray_report::model::{Survivor, Survivors, Tally};

use super::birth::Birth;
use super::live::Block;

/// Counts `blocks`, with the number that each stands for, by site and generation, and finds the oldest block of each of
/// `sites` sites. The generations start at `starts_ms`, the first at 0.
pub(super) fn count(
    blocks: impl Iterator<Item = (Block, u64)>,
    sites: usize,
    starts_ms: Vec<u64>,
) -> (Survivors, Vec<Birth>) {
    // Births are rounded down, and so are these starts. So a block that was born at a mark does not count as older than the
    // mark.
    let starts: Vec<Birth> = starts_ms.iter().map(|&ms| Birth::at_ms(ms)).collect();
    let mut oldest = vec![Birth::NEVER; sites];
    // Neighbours in memory are mostly of the same age.
    let (mut generation, mut births) = (0, Birth::NEVER..Birth::NEVER);
    let blocks = blocks.map(|(block, times)| {
        let oldest = &mut oldest[block.site.0 as usize];
        *oldest = block.birth.min(*oldest);
        if !births.contains(&block.birth) {
            generation = starts.partition_point(|&start| start <= block.birth) - 1;
            let end = starts.get(generation + 1).copied();
            births = starts[generation]..end.unwrap_or(Birth::NEVER);
        }
        Survivor {
            site: block.site.0,
            generation: generation as u32,
            live: Tally {
                count: times,
                bytes: block.size,
            },
        }
    });
    (checkpoints::survivors(starts_ms, blocks), oldest)
}

#[cfg(test)]
mod tests {
    use super::super::sites::SiteId;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_block_is_counted_in_the_generation_that_it_was_born_in(
            blocks in prop::collection::vec((0u32..5, 0u64..1000, 0u64..1 << 40), 0..200),
            starts in prop::collection::btree_set(1u64..1200, 0..20),
        ) {
            let given = blocks.iter().map(|&(site, ms, size)| Block {
                size,
                site: SiteId(site),
                birth: Birth::at_ms(ms),
            });
            let given = given.map(|block| (block, 1));
            let (survivors, oldest) = count(given, 5, std::iter::once(0).chain(starts).collect());
            prop_assert!(survivors.list.is_sorted_by_key(|one| (one.site, one.generation)));
            for (generation, &start) in survivors.starts_ms.iter().enumerate() {
                let next = survivors.starts_ms.get(generation + 1).copied().unwrap_or(u64::MAX);
                for site in 0..5 {
                    let mut expected = Tally::default();
                    for &(_, _, size) in blocks.iter().filter(|b| b.0 == site && (start..next).contains(&b.1)) {
                        expected += Tally { count: 1, bytes: size };
                    }
                    let found = survivors.list.iter().find(|one| one.site == site && one.generation as usize == generation);
                    prop_assert_eq!(found.map(|one| one.live).unwrap_or_default(), expected);
                }
            }
            for site in 0..5u32 {
                let first = blocks.iter().filter(|b| b.0 == site).map(|b| b.1).min();
                prop_assert_eq!(oldest[site as usize], first.map_or(Birth::NEVER, Birth::at_ms));
            }
        }
    }
}
