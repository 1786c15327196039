//! The live blocks by age: the part of the session in which they were allocated.
//!
//! Nothing is kept for this while recording. Each block's entry knows its birth, and a snapshot counts them.

use heapray_report::model::{Survivor, Survivors, Tally};

use super::birth::Birth;
use super::hash::Map;
use super::live::Block;
use super::sites::SiteId;

/// Number of equal parts of a session, besides the marks: enough for a curve in a table's cell.
const PARTS: u64 = 16;

/// Counts `blocks`, with the number that each stands for, by site and generation, and finds the oldest block of each of
/// `sites` sites. The session has run for `end_ms` milliseconds; `marks` are moments of it.
pub(super) fn count(
    blocks: impl Iterator<Item = (Block, u64)>,
    sites: usize,
    marks: impl Iterator<Item = u64>,
    end_ms: u64,
) -> (Survivors, Vec<Birth>) {
    let starts_ms = starts(marks, end_ms);
    // Births are rounded down, and so are these starts. So a block that was born at a mark does not count as older than the
    // mark.
    let starts: Vec<Birth> = starts_ms.iter().map(|&ms| Birth::at_ms(ms)).collect();
    let mut oldest = vec![Birth::NEVER; sites];
    let mut live: Map<u64, Tally> = Map::default();
    for (block, times) in blocks {
        let oldest = &mut oldest[block.site.0 as usize];
        *oldest = block.birth.min(*oldest);
        let generation = starts.partition_point(|&start| start <= block.birth) - 1;
        let tally = live.entry(key(block.site, generation as u32)).or_default();
        *tally += Tally {
            count: times,
            bytes: block.size,
        };
    }
    let mut list: Vec<Survivor> = live
        .into_iter()
        .map(|(key, live)| Survivor {
            site: (key >> 32) as u32,
            generation: key as u32,
            live,
        })
        .collect();
    list.sort_unstable_by_key(|survivor| (survivor.site, survivor.generation));
    (Survivors { starts_ms, list }, oldest)
}

fn key(site: SiteId, generation: u32) -> u64 {
    u64::from(site.0) << 32 | u64::from(generation)
}

/// Returns the starts of the generations: 0, each mark, and the starts of equal parts of the time.
fn starts(marks: impl Iterator<Item = u64>, end_ms: u64) -> Vec<u64> {
    let parts =
        (0..PARTS).map(|part| (u128::from(end_ms) * u128::from(part) / u128::from(PARTS)) as u64);
    let mut starts: Vec<u64> = parts.chain(marks).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn generations_begin_at_marks_and_at_equal_parts() {
        assert_eq!(starts([].into_iter(), 0), [0]);
        assert_eq!(starts([3, 3, 1].into_iter(), 4), [0, 1, 2, 3]);
        let parts = starts([170].into_iter(), 1600);
        assert_eq!(parts[..4], [0, 100, 170, 200]);
        assert_eq!(parts.len(), 17);
    }

    proptest! {
        #[test]
        fn every_block_is_counted_in_the_generation_that_it_was_born_in(
            blocks in prop::collection::vec((0u32..5, 0u64..1000, 0u64..1 << 40), 0..200),
            marks in prop::collection::vec(0u64..1000, 0..4),
            end in 0u64..1200,
        ) {
            let given = blocks.iter().map(|&(site, ms, size)| Block {
                size,
                site: SiteId(site),
                birth: Birth::at_ms(ms),
            });
            let given = given.map(|block| (block, 1));
            let (survivors, oldest) = count(given, 5, marks.into_iter(), end);
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
