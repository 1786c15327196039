//! The allocations while a function ran, if a session records: the difference of two snapshots.

use std::collections::HashMap;
use std::sync::Arc;

use heapray_report::model::Tally;
use heapray_report::parallel::{AllocationSite, Allocations};
use heapray_report::views;

use crate::collector::snapshot::{RawSite, Snapshot, StackTable};
use crate::symbolize::{self, ReportOptions};

/// Largest number of call sites on a page.
const MOST_SITES: usize = 200;

/// Allocations by call site, and blocks and bytes by thread, with the kernel's numbers.
pub(super) type Found = (Allocations, HashMap<u32, (u64, u64)>);

/// Returns the running session's number and a snapshot, or `None` if nothing records.
pub(super) fn now() -> Option<(u64, Arc<Snapshot>)> {
    let profiler = crate::profiler();
    let view = profiler.core().ok()?.lifecycle().running_view()?;
    Some((view.session, view.snapshot))
}

/// Returns the allocations since an earlier snapshot.
pub(super) fn since((session, before): (u64, Arc<Snapshot>)) -> Option<Found> {
    let (now_session, now) = now()?;
    if session != now_session {
        return None;
    }
    let (before, now) = (&before.stacks, Arc::unwrap_or_clone(now).stacks);
    let by_thread = by_thread(before, &now);
    let grown = StackTable {
        sites: difference(&before.sites, &now.sites),
        ..now
    };
    let total = pair(grown.sites.iter().map(|site| site.allocated));
    let report = symbolize::resolve(&grown, &ReportOptions::default()).report;
    let sites = views::own_sites(&report, &views::Origins::of(&report));
    let mut sites: Vec<AllocationSite> = sites
        .iter()
        .map(|site| {
            let frame = site
                .frame
                .and_then(|frame| report.frames.get(frame.0 as usize));
            let text = |id| report.strings.get(id).to_owned();
            AllocationSite {
                name: frame.map_or_else(|| "unknown".to_owned(), |frame| text(frame.function)),
                file: frame.map_or_else(String::new, |frame| text(frame.file)),
                line: frame.map_or(0, |frame| frame.line),
                count: site.sums.allocated.count,
                bytes: site.sums.allocated.bytes,
            }
        })
        .collect();
    sites.sort_by_key(|site| std::cmp::Reverse((site.bytes, site.count)));
    sites.truncate(MOST_SITES);
    Some((Allocations { total, sites }, by_thread))
}

/// Returns the additional allocations of sites, by stack and allocator. Threads are joined.
fn difference(before: &[RawSite], now: &[RawSite]) -> Vec<RawSite> {
    let key = |site: &RawSite| (site.node, site.kind as u8);
    let mut known: HashMap<_, Tally> = HashMap::new();
    for site in before {
        *known.entry(key(site)).or_default() += site.allocated;
    }
    let mut sums: HashMap<_, RawSite> = HashMap::new();
    for site in now {
        let none = RawSite {
            context: 0,
            allocated: Tally::default(),
            high_water: Tally::default(),
            live: Tally::default(),
            temporary: Tally::default(),
            ..*site
        };
        sums.entry(key(site)).or_insert(none).allocated += site.allocated;
    }
    let mut grown: Vec<RawSite> = sums
        .into_values()
        .filter_map(|mut site| {
            let before = known.get(&key(&site)).copied().unwrap_or_default();
            site.allocated = minus(site.allocated, before);
            (site.allocated.count > 0).then_some(site)
        })
        .collect();
    grown.sort_by_key(key);
    grown
}

fn by_thread(before: &StackTable, now: &StackTable) -> HashMap<u32, (u64, u64)> {
    let sums = |stacks: &StackTable| {
        let mut sums: HashMap<u32, Tally> = HashMap::new();
        for site in &stacks.sites {
            *sums.entry(site.thread).or_default() += site.allocated;
        }
        sums
    };
    let known = sums(before);
    let tids: HashMap<u32, u32> = now
        .threads
        .iter()
        .map(|thread| (thread.number, thread.tid))
        .collect();
    let mut found = HashMap::new();
    for (number, sum) in sums(now) {
        let grown = minus(sum, known.get(&number).copied().unwrap_or_default());
        if let Some(&tid) = tids.get(&number) {
            let of: &mut (u64, u64) = found.entry(tid).or_default();
            of.0 += grown.count;
            of.1 += grown.bytes;
        }
    }
    found
}

fn minus(now: Tally, before: Tally) -> Tally {
    Tally {
        count: now.count.saturating_sub(before.count),
        bytes: now.bytes.saturating_sub(before.bytes),
    }
}

fn pair(tallies: impl Iterator<Item = Tally>) -> (u64, u64) {
    tallies.fold((0, 0), |sum, tally| {
        (sum.0 + tally.count, sum.1 + tally.bytes)
    })
}
