//! Data of the made-up service's session over time and about the process: survivors, marks, intervals, memory.

use heapray_report::Report;
use heapray_report::model::{
    AllocatorMemory, Context, ContextId, Held, History, HistoryMoment, Mark, ProcessMemory,
    SizeCount, Survivor, Survivors, Tally,
};
use heapray_report::views::{Interval, Intervals};

/// Length of the session.
pub(crate) const END_MS: u64 = 184_200;
/// End of the load: the service is idle from then on.
pub(crate) const LOAD_MS: u64 = 130_000;
const SLOTS: u64 = 60;
/// Milliseconds between two moments of the history under load. Each begins a generation, and so does each mark.
const STEP_MS: u64 = 6_500;
const WARM_MS: u64 = 30_000;

/// Returns the moments of the history.
fn moments() -> Vec<u64> {
    let idle = [150_000, 170_000];
    (1..=LOAD_MS / STEP_MS)
        .map(|step| step * STEP_MS)
        .chain(idle)
        .collect()
}

/// Returns the start of each generation.
fn generations() -> Vec<u64> {
    let mut starts: Vec<u64> = moments().into_iter().chain([0, WARM_MS]).collect();
    starts.sort_unstable();
    starts
}

/// Returns part number `part` of `parts` nearly equal parts of `tally`. The first parts get the rest.
fn part(tally: Tally, part: u64, parts: u64) -> Tally {
    let size = tally.bytes.checked_div(tally.count).unwrap_or(0);
    let count = tally.count / parts + u64::from(part < tally.count % parts);
    Tally {
        count,
        bytes: count * size,
    }
}

/// Returns the times between which site `index` kept blocks: some grow as long as there is load, some are set-up.
fn keeps(index: usize) -> (u64, u64) {
    let always = (0, LOAD_MS);
    let set_up = (0, STEP_MS);
    [
        always,
        always,
        set_up,
        (52_000, LOAD_MS),
        always,
        (0, 39_000),
    ][index % 6]
}

/// Returns how much of `tally` was allocated until `at_ms`, if it was allocated evenly between two times.
fn until(tally: Tally, at_ms: u64, (start_ms, end_ms): (u64, u64)) -> Tally {
    let size = tally.bytes.checked_div(tally.count).unwrap_or(0);
    let length = end_ms - start_ms;
    let count = tally.count * at_ms.saturating_sub(start_ms).min(length) / length;
    Tally {
        count,
        bytes: count * size,
    }
}

/// Fills in everything but sites, totals and timeline.
pub(crate) fn add(report: &mut Report) {
    report.survivors = survivors(report);
    report.history = history(report);
    for site in &mut report.sites {
        site.oldest_live_ms = None;
    }
    for survivor in &report.survivors.list {
        let site = &mut report.sites[survivor.site as usize];
        let born = report.survivors.starts_ms[survivor.generation as usize] + 1_200;
        site.oldest_live_ms = Some(site.oldest_live_ms.map_or(born, |ms| ms.min(born)));
    }
    let live_at = |share: u64| Tally {
        count: report.totals.live.count * share / 6,
        bytes: report.totals.live.bytes * share / 6,
    };
    report.marks = vec![
        Mark {
            name: "warmed up".to_owned(),
            at_ms: WARM_MS,
            live: live_at(2),
        },
        Mark {
            name: "after <b>load</b>".to_owned(),
            at_ms: LOAD_MS,
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
    let starts_ms = generations();
    let mut list = Vec::new();
    for (site, index) in report.sites.iter().zip(0u32..) {
        let keeps = keeps(index as usize);
        let mut before = Tally::default();
        for (generation, &end) in (0u32..).zip(starts_ms.iter().skip(1)) {
            let now = until(site.live, end, keeps);
            if now.count > before.count {
                list.push(Survivor {
                    site: index,
                    generation,
                    live: Tally {
                        count: now.count - before.count,
                        bytes: now.bytes - before.bytes,
                    },
                });
            }
            before = now;
        }
    }
    Survivors { starts_ms, list }
}

/// Puts call sites into contexts: three of four belong to a route, and some of those to a tenant.
#[allow(dead_code)] // not everything that includes this file needs it
pub(crate) fn add_contexts(report: &mut Report) {
    const ROUTES: [&str; 4] = [
        "GET /cart/{id}",
        "POST /orders",
        "<b>GET</b> /search",
        "GET /rates",
    ];
    let context = |labels: &[(&str, &str)]| Context {
        labels: labels
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        ..Context::default()
    };
    report.contexts = vec![Context::default()];
    for route in ROUTES {
        report.contexts.push(context(&[("route", route)]));
        let tenant = ("tenant", "acme");
        report.contexts.push(context(&[("route", route), tenant]));
    }
    for (context, number) in report.contexts.iter_mut().zip(0u64..).skip(1) {
        for run in 0..200 {
            let bytes = 1_000 * number + 37 * run;
            context.runs.allocated_bytes.add(bytes);
            context.runs.allocated_blocks.add(run % 7);
            context.runs.most_bytes.add(bytes / 2);
            context.runs.held_bytes.add(bytes * number / 64);
        }
    }
    for (site, number) in report.sites.iter_mut().zip(0u32..) {
        if number % 4 != 3 {
            site.context = ContextId(1 + (number / 3 + number / 7) % 8);
        }
    }
}

/// Makes all that is live set-up: nothing leaks.
#[allow(dead_code)] // not everything that includes this file needs it
pub(crate) fn keep_nothing_but_set_up(report: &mut Report) {
    report.history = History {
        list: Vec::new(),
        ..report.history.clone()
    };
    report.survivors.list = report
        .sites
        .iter()
        .zip(0u32..)
        .filter(|(site, _)| site.live.count > 0)
        .map(|(site, index)| Survivor {
            site: index,
            generation: 0,
            live: site.live,
        })
        .collect();
}

/// Returns what sites held under load: what they kept, and at the end of the load nothing else.
fn history(report: &Report) -> History {
    let moments: Vec<HistoryMoment> = moments()
        .into_iter()
        .map(|at_ms| HistoryMoment {
            at_ms,
            allocated: until(report.totals.allocated, at_ms, (0, LOAD_MS)),
        })
        .collect();
    // As in real sessions: those that hold most.
    let mut largest: Vec<usize> = (0..report.sites.len()).collect();
    largest.sort_by_key(|&index| std::cmp::Reverse(report.sites[index].live.bytes));
    largest.truncate(512);
    largest.sort_unstable();
    let mut list = Vec::new();
    for index in largest {
        let site = &report.sites[index];
        for (moment, at) in (0u32..).zip(&moments) {
            let kept = until(site.live, at.at_ms, keeps(index));
            if kept.count > 0 {
                list.push(Held {
                    site: u32::try_from(index).expect("few sites"),
                    moment,
                    live: kept.bytes,
                    allocated: until(site.allocated, at.at_ms, (0, LOAD_MS)).bytes,
                });
            }
        }
    }
    History { moments, list }
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
            born: slot_of(report.survivors.starts_ms[survivor.generation as usize]),
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
