//! The text of `memray stats` 1.20 (its `reporters/stats.py` and `compute_statistics`).

use std::fmt::Write;

use super::histogram::histogram;
use super::{TOP, place, size};
use crate::model::{Allocator, Report};
use crate::views::{LocationSums, by_location, by_module};

pub(super) fn put(out: &mut String, report: &Report) {
    let totals = &report.totals;
    // Sums of memray's aggregated captures lack what was allocated and freed; memray refuses to print these at all.
    let unknown = totals.allocated.count == 0 && totals.high_water.count > 0;
    let known = |text: String| match unknown {
        true => "not in an aggregated capture".to_owned(),
        false => text,
    };
    line(out, "\n📏 Total allocations:");
    line(
        out,
        &format!("\t{}", known(totals.allocated.count.to_string())),
    );
    line(out, "\n📦 Total memory allocated:");
    line(out, &format!("\t{}", known(size(totals.allocated.bytes))));
    line(out, "\n📈 Peak memory usage:");
    line(out, &format!("\t{}", size(totals.high_water.bytes)));
    line(out, "\n📊 Histogram of allocation size:");
    line(out, &format!("\t{}", histogram(&totals.sizes)));
    line(out, "\n📂 Allocator type distribution:");
    for (allocator, count) in allocators(report) {
        line(out, &format!("\t {}: {count}", allocator.name()));
    }
    put_locations(out, report);
    put_modules(out, report);
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Most used first; of equals, what was used last is first, which is how memray's hash map hands them out.
fn allocators(report: &Report) -> Vec<(Allocator, u64)> {
    let mut allocators: Vec<_> = report
        .totals
        .by_allocator
        .iter()
        .rev()
        .filter(|(_, tally)| tally.count > 0)
        .map(|(allocator, tally)| (*allocator, tally.count))
        .collect();
    allocators.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    allocators
}

/// Of equal places, the one that allocated first comes last; one without a call stack comes behind all.
fn put_locations(out: &mut String, report: &Report) {
    let locations: Vec<LocationSums> = by_location(report)
        .into_iter()
        .filter(|location| location.sums.allocated.count > 0)
        .collect();
    let top = |value: fn(&LocationSums) -> u64| {
        let mut order: Vec<(u64, bool, usize)> = (0..)
            .zip(&locations)
            .map(|(index, location)| (value(location), location.frame.is_some(), index))
            .collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        order.truncate(TOP);
        order
    };
    line(
        out,
        &format!("\n🥇 Top {TOP} largest allocating locations (by size):"),
    );
    for (bytes, _, index) in top(|location| location.sums.allocated.bytes) {
        let place = place(report, locations[index].frame);
        line(out, &format!("\t- {place} -> {}", size(bytes)));
    }
    line(
        out,
        &format!("\n🥇 Top {TOP} largest allocating locations (by number of allocations):"),
    );
    for (count, _, index) in top(|location| location.sums.allocated.count) {
        let place = place(report, locations[index].frame);
        line(out, &format!("\t- {place} -> {count}"));
    }
}

fn put_modules(out: &mut String, report: &Report) {
    let mut modules = by_module(report);
    if modules.is_empty() {
        return;
    }
    for by_size in [true, false] {
        let what = if by_size {
            "by size"
        } else {
            "by number of allocations"
        };
        modules.sort_by_key(|(_, tally)| {
            std::cmp::Reverse(if by_size { tally.bytes } else { tally.count })
        });
        let _ = writeln!(out, "\n🥇 Top {TOP} allocating modules ({what}):");
        for (name, tally) in modules.iter().take(TOP) {
            let _ = writeln!(
                out,
                "\t- {name}: {} total | {} allocations",
                size(tally.bytes),
                tally.count
            );
        }
    }
}
