//! Data of the made-up service's session over time and about the process: survivors, marks, intervals, memory.

use heapray_report::Report;
use heapray_report::model::{
    AllocatorMemory, Mark, ProcessMemory, SizeCount, Survivor, Survivors, Tally,
};
use heapray_report::views::{Interval, Intervals};

/// Length of the session.
pub(crate) const END_MS: u64 = 184_200;
const SLOTS: u64 = 60;
const GENERATIONS: [u64; 6] = [0, 30_000, 60_000, 95_000, 130_000, 160_000];

/// Returns part number `part` of `parts` nearly equal parts of `tally`. The first parts get the rest.
fn part(tally: Tally, part: u64, parts: u64) -> Tally {
    let size = tally.bytes.checked_div(tally.count).unwrap_or(0);
    let count = tally.count / parts + u64::from(part < tally.count % parts);
    Tally {
        count,
        bytes: count * size,
    }
}

/// Returns the number of generations with survivors of site `index`: some sites grow all the time, some are set-up.
fn spread(index: usize) -> u64 {
    [6, 6, 1, 3, 6, 2][index % 6]
}

/// Fills in everything but sites, totals and timeline.
pub(crate) fn add(report: &mut Report) {
    report.survivors = survivors(report);
    for site in &mut report.sites {
        site.oldest_live_ms = None;
    }
    for survivor in &report.survivors.list {
        let site = &mut report.sites[survivor.site as usize];
        let born = GENERATIONS[survivor.generation as usize] + 1_200;
        site.oldest_live_ms = Some(site.oldest_live_ms.map_or(born, |ms| ms.min(born)));
    }
    let live_at = |share: u64| Tally {
        count: report.totals.live.count * share / 6,
        bytes: report.totals.live.bytes * share / 6,
    };
    report.marks = vec![
        Mark {
            name: "warmed up".to_owned(),
            at_ms: 30_000,
            live: live_at(2),
        },
        Mark {
            name: "after <b>load</b>".to_owned(),
            at_ms: 130_000,
            live: live_at(5),
        },
    ];
    let live = report.totals.live.bytes;
    let in_use = live + live / 11 + 2_000_000;
    let kept = live / 5;
    report.process_memory = Some(ProcessMemory {
        rss: in_use + kept + 24_000_000,
        anonymous: Some(in_use + kept + 12_500_000),
        files: Some(11_300_000),
        shared: Some(200_000),
        swapped: Some(0),
        stacks: Some(1_100_000),
        stack_count: 14,
        own_mapped: 5_242_880,
        own_heap: 610_000,
        allocators: vec![AllocatorMemory::new("glibc", in_use, kept)],
        cgroup: Some(in_use + kept + 61_000_000),
        cgroup_limit: Some(512 << 20),
    });
    report.totals.sizes = sizes(report);
}

fn survivors(report: &Report) -> Survivors {
    let mut list = Vec::new();
    for (index, site) in report.sites.iter().enumerate() {
        let parts = spread(index);
        for generation in 0..parts {
            let live = part(site.live, generation, parts);
            if live.count > 0 {
                list.push(Survivor {
                    site: u32::try_from(index).expect("few sites"),
                    generation: u32::try_from(generation).expect("six"),
                    live,
                });
            }
        }
    }
    Survivors {
        starts_ms: GENERATIONS.to_vec(),
        list,
    }
}

fn sizes(report: &Report) -> Vec<SizeCount> {
    let mut sizes = std::collections::BTreeMap::new();
    for site in &report.sites {
        let size = site.allocated.bytes.checked_div(site.allocated.count);
        *sizes.entry(size.unwrap_or(0)).or_insert(0) += site.allocated.count;
    }
    let list = sizes.into_iter();
    list.map(|(size, count)| SizeCount { size, count })
        .collect()
}

/// Returns every block of `report`: survivors live on from their generation, the others end two slots after their birth.
pub(crate) fn intervals(report: &Report) -> Intervals {
    let starts_ms: Vec<u64> = (0..SLOTS).map(|slot| slot * END_MS / SLOTS).collect();
    let slot_of = |ms: u64| u32::try_from(ms * SLOTS / END_MS).expect("sixty") + 1;
    let mut rows = Vec::new();
    for survivor in &report.survivors.list {
        rows.push(Interval {
            site: survivor.site,
            born: slot_of(GENERATIONS[survivor.generation as usize]),
            freed: None,
            blocks: survivor.live,
        });
    }
    for (index, site) in (0..).zip(&report.sites) {
        let dead = Tally {
            count: site.allocated.count - site.live.count,
            bytes: site.allocated.bytes - site.live.bytes,
        };
        for (born, at) in [5, 23, 41].into_iter().zip(0..) {
            let blocks = part(dead, at, 3);
            if blocks.count > 0 {
                rows.push(Interval {
                    site: index,
                    born,
                    freed: Some(born + 2),
                    blocks,
                });
            }
        }
    }
    Intervals { starts_ms, rows }
}
