//! The moments at which the memory of call sites is noted, while a session is recorded or its events are read.
//!
//! The end of the session is not known, and neither is its traffic. So a checkpoint is made whenever the session has grown by
//! a few hundredths, and when there are too many of them, the one that is missed least is dropped. Growth is measured half by
//! time and half by allocated bytes: a burst of ten seconds in an idle day has half of the checkpoints, and so has the day.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::hash::FastMap;
use crate::model::{Held, History, HistoryMoment, Survivor, Survivors, Tally};

/// Largest number of checkpoints.
const MOST: usize = 32;
/// Largest number of sites at a checkpoint: those that hold most.
const MOST_SITES: usize = 512;
/// Earliest checkpoint: before, everything is start-up.
const FIRST_MS: u64 = 10;

/// Number of equal parts of a session that are generations until there are as many checkpoints.
const PARTS: u64 = 16;
/// Largest number of generations without marks.
pub(crate) const MOST_GENERATIONS: u64 = 2 * MOST as u64;

/// Call site at a checkpoint: its number, its live bytes, and all bytes that it has allocated.
pub type SiteBytes = (u32, u64, u64);

/// Checkpoints of a session.
#[derive(Debug, Clone, Default)]
pub struct Checkpoints {
    list: Vec<Checkpoint>,
}

#[derive(Debug, Clone)]
struct Checkpoint {
    moment: HistoryMoment,
    sites: Vec<SiteBytes>,
}

impl Checkpoints {
    /// Returns whether the session, which is `at_ms` old and has allocated `allocated`, has grown enough since the last
    /// checkpoint.
    #[inline]
    #[must_use]
    pub fn is_due(&self, at_ms: u64, allocated: Tally) -> bool {
        let now = HistoryMoment { at_ms, allocated };
        let last = self
            .list
            .last()
            .map_or(HistoryMoment::default(), |last| last.moment);
        at_ms >= FIRST_MS && at_ms > last.at_ms && part(last, now, now) >= 2.0 / MOST as f64
    }

    /// Adds a checkpoint, with those of `sites` that hold most.
    pub fn add(&mut self, at_ms: u64, allocated: Tally, sites: impl Iterator<Item = SiteBytes>) {
        // The smallest is on top, to be replaced by a larger one.
        let mut most = BinaryHeap::with_capacity(MOST_SITES);
        for (number, live, allocated) in sites.filter(|site| site.1 > 0) {
            let site = Reverse((live, number, allocated));
            if most.len() < MOST_SITES {
                most.push(site);
            } else if let Some(mut smallest) = most.peek_mut()
                && *smallest > site
            {
                *smallest = site;
            }
        }
        // A list of its own, without the heap's spare room.
        let mut sites = Vec::with_capacity(most.len());
        sites.extend(
            most.iter()
                .map(|&Reverse((live, number, allocated))| (number, live, allocated)),
        );
        self.list.push(Checkpoint {
            moment: HistoryMoment { at_ms, allocated },
            sites,
        });
        if self.list.len() > MOST {
            self.drop_one();
        }
    }

    /// Drops the checkpoint whose neighbours are closest to each other.
    fn drop_one(&mut self) {
        let Some(end) = self.list.last().map(|last| last.moment) else {
            return;
        };
        let gap = |at: usize| {
            let before = at
                .checked_sub(1)
                .map_or(HistoryMoment::default(), |at| self.list[at].moment);
            part(before, self.list[at + 1].moment, end)
        };
        let least = (0..self.list.len() - 1).min_by(|&a, &b| gap(a).total_cmp(&gap(b)));
        if let Some(least) = least {
            self.list.remove(least);
        }
    }

    /// Counts what some sites held as held by others: `into` returns the number of the other site.
    pub fn fold(&mut self, into: impl Fn(u32) -> Option<u32>) {
        for checkpoint in &mut self.list {
            let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
            for (number, live, allocated) in checkpoint.sites.drain(..) {
                let sum = sums.entry(into(number).unwrap_or(number)).or_default();
                *sum = (sum.0 + live, sum.1 + allocated);
            }
            let sums = sums.into_iter();
            let sites = sums.map(|(number, (live, allocated))| (number, live, allocated));
            checkpoint.sites.extend(sites);
        }
    }

    /// Returns the milliseconds of the checkpoints since the start, rising.
    pub fn times_ms(&self) -> impl Iterator<Item = u64> {
        self.list.iter().map(|checkpoint| checkpoint.moment.at_ms)
    }

    /// Returns what the sites held at the checkpoints.
    #[must_use]
    pub fn history(&self) -> History {
        let moments = self.list.iter().map(|checkpoint| checkpoint.moment);
        let list = (0..).zip(&self.list).flat_map(|(moment, checkpoint)| {
            let sites = checkpoint.sites.iter();
            sites.map(move |&(site, live, allocated)| Held {
                site,
                moment,
                live,
                allocated,
            })
        });
        History::of(moments.collect(), list.collect())
    }

    /// Returns the bytes of memory of the checkpoints.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let sites = |checkpoint: &Checkpoint| checkpoint.sites.capacity() * size_of::<SiteBytes>();
        let sites: usize = self.list.iter().map(sites).sum();
        (sites + self.list.capacity() * size_of::<Checkpoint>()) as u64
    }
}

/// Returns the starts of the generations of a session of `end_ms`: 0, each checkpoint, each of `marks`, and, in a session with
/// few checkpoints, those of equal parts of its time.
#[must_use]
pub fn generations(
    checkpoints: &Checkpoints,
    marks: impl Iterator<Item = u64>,
    end_ms: u64,
) -> Vec<u64> {
    let parts = if checkpoints.list.len() as u64 >= PARTS {
        1
    } else {
        PARTS
    };
    let parts =
        (0..parts).map(|part| (u128::from(end_ms) * u128::from(part) / u128::from(PARTS)) as u64);
    let mut starts: Vec<u64> = parts.chain(checkpoints.times_ms()).chain(marks).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Number of sums that [`survivors`] keeps at hand.
const AT_HAND: usize = 512;

/// Sums up `blocks`, any number of them, by site and generation. The generations start at `starts_ms`.
#[must_use]
pub fn survivors(starts_ms: Vec<u64>, blocks: impl Iterator<Item = Survivor>) -> Survivors {
    let mut sums: FastMap<u64, Tally> = FastMap::default();
    // There may be hundreds of millions of blocks, mostly of few sites and generations. A look into the map for each would take
    // most of the time.
    let mut at_hand = vec![None; AT_HAND];
    blocks.for_each(|block| {
        let key = u64::from(block.site) << 32 | u64::from(block.generation);
        let place = block.site.wrapping_add(block.generation * 61) as usize % AT_HAND;
        match &mut at_hand[place] {
            Some((of, sum)) if *of == key => *sum += block.live,
            other => {
                if let Some((of, sum)) = other.replace((key, block.live)) {
                    *sums.entry(of).or_default() += sum;
                }
            }
        }
    });
    for (of, sum) in at_hand.into_iter().flatten() {
        *sums.entry(of).or_default() += sum;
    }
    let list = sums.into_iter().map(|(key, live)| Survivor {
        site: (key >> 32) as u32,
        generation: key as u32,
        live,
    });
    Survivors::of(starts_ms, list.collect())
}

/// Returns the part of the session that lies between two moments: from 0 to 2, 1 for the time and 1 for the work.
fn part(from: HistoryMoment, to: HistoryMoment, end: HistoryMoment) -> f64 {
    let of = |from: u64, to: u64, end: u64| to.saturating_sub(from) as f64 / end.max(1) as f64;
    of(from.at_ms, to.at_ms, end.at_ms)
        + of(
            from.allocated.bytes,
            to.allocated.bytes,
            end.allocated.bytes,
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tally(bytes: u64) -> Tally {
        Tally { count: 1, bytes }
    }

    /// Runs a session with a reading each 10 ms, at which `allocated` bytes have been allocated.
    fn session(readings: impl Iterator<Item = u64>) -> Checkpoints {
        let mut checkpoints = Checkpoints::default();
        for (at, allocated) in readings.enumerate() {
            let at_ms = at as u64 * 10;
            if checkpoints.is_due(at_ms, tally(allocated)) {
                checkpoints.add(at_ms, tally(allocated), [(0, 1000, allocated)].into_iter());
            }
        }
        checkpoints
    }

    #[test]
    fn a_short_burst_and_a_long_pause_both_have_many_checkpoints() {
        // A second of load after an hour, and then a pause of another hour.
        let burst = |at: u64| at.saturating_sub(360_000).min(100) * 1_000_000 + at;
        let checkpoints = session((0..720_000).map(burst));
        let in_burst = |at_ms: &u64| (3_600_000..3_601_000).contains(at_ms);
        let during = checkpoints.times_ms().filter(in_burst).count();
        let all = checkpoints.times_ms().count();
        assert!(all <= MOST && all > MOST / 2, "{all}");
        assert!(during >= 8 && all - during >= 8, "{during} of {all}");
    }

    #[test]
    fn generations_begin_at_marks_at_checkpoints_and_at_equal_parts() {
        let mut checkpoints = Checkpoints::default();
        assert_eq!(generations(&checkpoints, [].into_iter(), 0), [0]);
        assert_eq!(
            generations(&checkpoints, [3, 3, 1].into_iter(), 4),
            [0, 1, 2, 3]
        );
        let parts = generations(&checkpoints, [170].into_iter(), 1600);
        assert_eq!(parts[..4], [0, 100, 170, 200]);
        assert_eq!(parts.len(), 17);
        for at_ms in 1..=16 {
            checkpoints.add(at_ms, tally(1), [].into_iter());
        }
        let parts = generations(&checkpoints, [170].into_iter(), 1600);
        assert_eq!(parts[14..], [14, 15, 16, 170]);
    }

    #[test]
    fn blocks_of_more_sites_than_are_at_hand_are_summed_up() {
        let blocks = (0..9_000u32).map(|number| Survivor {
            site: number * 7 % 3_000,
            generation: number / 4_500,
            live: tally(u64::from(number)),
        });
        let found = survivors(vec![0, 5], blocks.clone());
        let mut expected: BTreeMap<(u32, u32), Tally> = BTreeMap::new();
        for block in blocks {
            *expected.entry((block.site, block.generation)).or_default() += block.live;
        }
        let found = found.list.iter();
        let found = found.map(|one| ((one.site, one.generation), one.live));
        assert!(found.eq(expected));
    }

    #[test]
    fn the_sites_that_hold_most_are_noted() {
        let mut checkpoints = Checkpoints::default();
        let sites = (0..2000u32).map(|site| (site, u64::from(site * 7 % 2000), 20_000));
        checkpoints.add(10, tally(1), sites);
        let history = checkpoints.history();
        assert_eq!(history.list.len(), MOST_SITES);
        assert!(
            history
                .list
                .iter()
                .all(|held| held.live >= 2000 - MOST_SITES as u64)
        );
        let key = |held: &Held| (held.site, held.moment);
        assert!(history.list.is_sorted_by(|a, b| key(a) < key(b)));
        checkpoints.add(20, tally(2), [(3, 0, 9), (4, 1, 9)].into_iter());
        assert_eq!(
            checkpoints.history().list.len(),
            MOST_SITES + 1,
            "what holds nothing is left out"
        );
        assert!(checkpoints.memory_bytes() > 0);
    }

    #[test]
    fn what_a_folded_site_held_is_of_the_other() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.add(
            10,
            tally(1),
            [(1, 10, 11), (2, 20, 22), (3, 30, 33)].into_iter(),
        );
        checkpoints.add(20, tally(2), [(1, 5, 12), (3, 31, 34)].into_iter());
        checkpoints.fold(|site| (site == 1).then_some(2));
        let held = |held: &Held| (held.site, held.moment, held.live, held.allocated);
        let list: Vec<_> = checkpoints.history().list.iter().map(held).collect();
        assert_eq!(
            list,
            [
                (2, 0, 30, 33),
                (2, 1, 5, 12),
                (3, 0, 30, 33),
                (3, 1, 31, 34)
            ]
        );
    }

    proptest! {
        #[test]
        fn no_part_of_a_session_is_without_a_checkpoint(
            steps in prop::collection::vec((1u64..2000, 0u64..1000), 1..40),
        ) {
            let mut allocated = 0;
            let rates = steps.iter().flat_map(|&(readings, rate)| (0..readings).map(move |_| rate * rate));
            let readings: Vec<u64> = rates.map(|rate| { allocated += rate; allocated }).collect();
            let checkpoints = session(readings.iter().copied());
            let end = HistoryMoment {
                at_ms: (readings.len() as u64 - 1) * 10,
                allocated: tally(allocated),
            };
            prop_assert!(checkpoints.list.len() <= MOST);
            let moments = checkpoints.history().moments;
            prop_assert!(moments.is_sorted_by(|a, b| a.at_ms < b.at_ms));
            let first = std::iter::once(HistoryMoment::default()).chain(moments.iter().copied());
            // One reading may be larger than any part.
            let largest = readings.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0).max(readings[0]);
            let step = largest as f64 / allocated.max(1) as f64 + 10.0 / end.at_ms.max(1) as f64;
            for (from, to) in first.zip(moments.iter().copied().chain([end])) {
                let gap = part(from, to, end);
                prop_assert!(gap <= 8.0 / MOST as f64 + 2.0 * step, "{gap}");
            }
        }
    }
}
