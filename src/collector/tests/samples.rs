//! Sampled events: their estimates are compared with the real allocations.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::*;
use crate::capture::meter::{Meter, Private};
use crate::collector::hash::mix;
use heapray_report::model::Sampling;

const MEAN: u64 = 64 << 10;
const ALLOCATIONS: u64 = 20_000;
const SITES: u64 = 4;

/// A service of one thread: its real allocations, and the estimates from its samples.
struct Run {
    allocated: Tally,
    live: Tally,
    live_of_site: [Tally; SITES as usize],
    export: Export,
    sampling: Sampling,
}

/// Sizes as services have them: most are small, most bytes are in large ones.
fn size(random: u64) -> u64 {
    let bits = 4 + random % 14;
    (1 << bits) + (random >> 32) % (1 << bits)
}

fn run(seed: u64, mean: u64) -> Run {
    let (meter, mut tables) = (
        Meter::default(),
        Tables::new(CLOCK).with_samples(mean, seed),
    );
    let mut private = Private::for_test(&meter, mean, seed);
    let mut truth = (Tally::default(), [Tally::default(); SITES as usize]);
    let event = |kind, address, size, node| Event {
        stamp: CLOCK.start_stamp + address,
        thread: 1,
        kind,
        address,
        size,
        node,
    };
    tables.apply(&event(Kind::Sampling, 0, mean, NodeId::ROOT));
    for number in 0..ALLOCATIONS {
        let random = mix(number + 1);
        let (size, site) = (size(random), random >> 20 & (SITES - 1));
        let (address, block) = (
            (number + 1) * 32,
            Tally {
                count: 1,
                bytes: size,
            },
        );
        truth.0 += block;
        let sampled = meter.take(&mut private, size);
        if sampled {
            tables.apply(&event(Kind::Malloc, address, size, NodeId(site as u32)));
        }
        // The higher a site's number is, the more of its blocks are kept.
        if random >> 40 & 7 > 2 * site {
            // As with the real filter, some frees are of blocks that were not sampled.
            if sampled || random & 64 == 0 {
                tables.apply(&event(Kind::Free, address, 0, NodeId::ROOT));
            }
        } else {
            truth.1[site as usize] += block;
        }
    }
    let mut live = Tally::default();
    truth.1.iter().for_each(|&of_site| live += of_site);
    let sampling = tables.sampling(truth.0).unwrap();
    Run {
        allocated: truth.0,
        live,
        live_of_site: truth.1,
        export: tables.export(),
        sampling,
    }
}

fn within(estimate: Tally, truth: Tally, margin: Tally) -> [bool; 2] {
    [
        estimate.count.abs_diff(truth.count) <= margin.count,
        estimate.bytes.abs_diff(truth.bytes) <= margin.bytes,
    ]
}

#[test]
fn estimates_lie_within_their_stated_margins_in_95_of_100_runs() {
    const RUNS: u64 = 200;
    let mut hits = [0; 5];
    for seed in 0..RUNS {
        let run = run(seed, MEAN);
        let totals = &run.export.totals;
        let live = within(totals.live, run.live, run.sampling.live);
        let allocated = within(totals.allocated, run.allocated, run.sampling.allocated);
        let of_site = |site: u64| {
            let node = NodeId(site as u32);
            let found = run.export.stacks.sites.iter().find(|one| one.node == node);
            found.map(|one| one.live).unwrap_or_default()
        };
        let of_last = of_site(SITES - 1).bytes;
        let margin = run.sampling.margin(of_last);
        let true_last = run.live_of_site[SITES as usize - 1].bytes;
        let is_near = of_last.abs_diff(true_last) <= margin;
        let all = [live[0], live[1], allocated[0], allocated[1], is_near];
        for (hits, hit) in hits.iter_mut().zip(all) {
            *hits += u64::from(hit);
        }
    }
    let all: u64 = hits.iter().sum();
    assert!(all * 100 >= 5 * RUNS * 95, "{hits:?}");
    // Each by itself deviates by 3 of 200 by chance.
    assert!(
        hits.iter().all(|&hits| hits >= RUNS * 95 / 100 - 6),
        "{hits:?}"
    );
}

#[test]
fn estimates_are_right_on_average() {
    const RUNS: u64 = 400;
    let runs: Vec<Run> = (1000..1000 + RUNS).map(|seed| run(seed, MEAN)).collect();
    let truth = runs[0].live;
    let mean =
        |of: &dyn Fn(&Run) -> u64| runs.iter().map(|run| of(run) as f64).sum::<f64>() / RUNS as f64;
    for (what, estimate, truth, margin) in [
        (
            "bytes",
            mean(&|run| run.export.totals.live.bytes),
            truth.bytes,
            mean(&|run| run.sampling.live.bytes),
        ),
        (
            "blocks",
            mean(&|run| run.export.totals.live.count),
            truth.count,
            mean(&|run| run.sampling.live.count),
        ),
    ] {
        // The mean of so many runs deviates by a root of that many less.
        let off = (estimate - truth as f64).abs();
        assert!(
            off < 1.5 * margin / (RUNS as f64).sqrt(),
            "{what}: {estimate} for {truth}"
        );
    }
}

#[test]
fn with_a_point_in_every_byte_everything_is_exact() {
    let run = run(1, 1);
    assert_eq!(run.export.totals.live, run.live);
    assert_eq!(run.export.totals.allocated, run.allocated);
    assert_eq!(run.sampling.samples, ALLOCATIONS);
    // Not even one more point would change this by more than a few bytes.
    assert_eq!(
        (run.sampling.live.count, run.sampling.live.bytes <= 4),
        (0, true)
    );
}

#[test]
fn where_nothing_was_sampled_the_margin_is_that_of_a_poisson_distribution_at_0() {
    let tables = Tables::new(CLOCK).with_samples(MEAN, 3);
    let asked = Tally {
        count: 1000,
        bytes: 100 * MEAN,
    };
    let sampling = tables.sampling(asked).unwrap();
    let points = sampling.live.bytes as f64 / MEAN as f64;
    assert!((3.6..3.8).contains(&points), "{points}");
    assert!((1..1000).contains(&sampling.live.count), "{sampling:?}");
    // No more than was asked for can be live.
    let little = Tally {
        count: 2,
        bytes: 300,
    };
    assert_eq!(tables.sampling(little).unwrap().live, little);
}

#[test]
fn few_or_no_samples_have_honest_margins() {
    // In each run a service keeps `BLOCKS` blocks whose size makes on average 0 to 3 samples.
    const RUNS: u64 = 400;
    for (size, blocks) in [
        (MEAN / 50, 5),
        (MEAN / 10, 10),
        (MEAN / 100, 300),
        (2 * MEAN, 1),
    ] {
        let truth = Tally {
            count: blocks,
            bytes: blocks * size,
        };
        let mut hits = 0;
        for seed in 0..RUNS {
            let mut tables = Tables::new(CLOCK).with_samples(MEAN, seed);
            for address in 1..=blocks {
                let random = mix(mix(seed) ^ address);
                let uniform = (random >> 11) as f64 / (1_u64 << 53) as f64;
                if uniform < -(-(size as f64) / MEAN as f64).exp_m1() {
                    tables.apply(&Event {
                        stamp: CLOCK.start_stamp,
                        thread: 1,
                        kind: Kind::Malloc,
                        address,
                        size,
                        node: NodeId::ROOT,
                    });
                }
            }
            let margin = tables.sampling(truth).unwrap().live;
            let live = tables.export().totals.live;
            hits += u64::from(live.bytes.abs_diff(truth.bytes) <= margin.bytes);
        }
        assert!(hits * 100 >= RUNS * 95, "{size}: {hits} of {RUNS}");
    }
}

#[test]
fn a_mark_that_a_mapping_brings_is_as_uncertain_as_what_lives_then() {
    let mut tables = Tables::new(CLOCK).with_samples(MEAN, 3);
    let mut apply = |kind, address, size| {
        tables.apply(&Event {
            stamp: CLOCK.start_stamp,
            thread: 1,
            kind,
            address,
            size,
            node: NodeId::ROOT,
        });
        let sampling = tables.sampling(Tally::default()).unwrap();
        (sampling.live, sampling.high_water)
    };
    apply(Kind::Sampling, 0, MEAN);
    let (_, certain) = apply(Kind::Malloc, 1 << 12, 32 * MEAN);
    let (_, mark) = apply(Kind::Malloc, 1 << 30, 100);
    assert_ne!(mark, certain);
    apply(Kind::Free, 1 << 30, 0);
    let (live, mark) = apply(Kind::Mmap, 1 << 40, 64 * MEAN);
    assert_eq!(mark, live);
}

#[test]
fn a_range_from_before_the_session_is_not_an_unknown_free_of_samples() {
    let munmap = Event {
        stamp: CLOCK.start_stamp,
        thread: 1,
        kind: Kind::Munmap,
        address: 1 << 30,
        size: 12 << 10,
        node: NodeId::ROOT,
    };
    let unknown_frees = |mut tables: Tables| {
        tables.apply(&munmap);
        tables.counters().unknown_frees
    };
    // Such as the signal stack of a thread that ends.
    assert_eq!(unknown_frees(Tables::new(CLOCK)), 1);
    assert_eq!(unknown_frees(Tables::new(CLOCK).with_samples(MEAN, 3)), 0);
}

#[test]
fn over_many_sessions_the_first_sample_of_each_is_rounded_without_a_bias() {
    const SESSIONS: u64 = 4000;
    // Each block of this size stands for one and a half.
    let size = (MEAN as f64 * 3_f64.ln()) as u64;
    let blocks: u64 = (0..SESSIONS)
        .map(|session| {
            let seed = RandomState::new().hash_one(session);
            let mut tables = Tables::new(CLOCK).with_samples(MEAN, seed);
            tables.apply(&Event {
                stamp: CLOCK.start_stamp,
                thread: 1,
                kind: Kind::Malloc,
                address: 1 << 20,
                size,
                node: NodeId::ROOT,
            });
            tables.counters().live.count
        })
        .sum();
    // Each rounds by half a block up or down. Chance exceeds six deviations once in 500 million runs.
    let off = (blocks as f64 - 1.5 * SESSIONS as f64).abs();
    assert!(off < 6.0 * 0.5 * (SESSIONS as f64).sqrt(), "{blocks}");
}
