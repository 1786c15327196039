//! The text of `memray stats` 1.20 (its `reporters/stats.py` and `compute_statistics`).

use std::fmt::Write;

use super::histogram::histogram;
use super::place;
use crate::memray::in_one_line;
use crate::model::{Allocator, Report, Tally};
use crate::units::size;
use crate::views::{by_location, by_module};

pub(super) fn put(out: &mut String, report: &Report, most: usize) {
    let totals = &report.totals;
    // memray's aggregated captures do not have the sums of allocated and freed memory. memray refuses to print these at all.
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
    put_locations(out, report, most);
    put_modules(out, report, most);
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Returns the allocators, the most used first. Of equals, the one that was used last is first, as in memray's hash map.
pub(super) fn allocators(report: &Report) -> Vec<(Allocator, u64)> {
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

fn put_locations(out: &mut String, report: &Report, most: usize) {
    for by_size in [true, false] {
        let what = order(by_size);
        line(
            out,
            &format!("\n🥇 Top {most} largest allocating locations ({what}):"),
        );
        for (place, value) in top_locations(report, most, by_size) {
            let value = if by_size {
                size(value)
            } else {
                value.to_string()
            };
            line(out, &format!("\t- {place} -> {value}"));
        }
    }
}

fn order(by_size: bool) -> &'static str {
    if by_size {
        "by size"
    } else {
        "by number of allocations"
    }
}

/// Returns the places that allocated most, in bytes or in number. Of equal places, the one that allocated first comes last;
/// a place without a call stack comes after all.
pub(super) fn top_locations(report: &Report, most: usize, by_size: bool) -> Vec<(String, u64)> {
    let locations = by_location(report);
    let mut order: Vec<(u64, bool, usize)> = (0..)
        .zip(&locations)
        .filter(|(_, location)| location.sums.allocated.count > 0)
        .map(|(index, location)| {
            let allocated = location.sums.allocated;
            let value = if by_size {
                allocated.bytes
            } else {
                allocated.count
            };
            (value, location.frame.is_some(), index)
        })
        .collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    order.truncate(most);
    order
        .into_iter()
        .map(|(value, _, index)| (place(report, locations[index].frame), value))
        .collect()
}

fn put_modules(out: &mut String, report: &Report, most: usize) {
    for by_size in [true, false] {
        let what = order(by_size);
        let modules = top_modules(report, most, by_size);
        if modules.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n🥇 Top {most} allocating modules ({what}):");
        for (name, tally) in modules {
            let _ = writeln!(
                out,
                "\t- {}: {} total | {} allocations",
                in_one_line(&name),
                size(tally.bytes),
                tally.count
            );
        }
    }
}

/// Returns the modules that allocated most, in bytes or in number.
pub(super) fn top_modules(report: &Report, most: usize, by_size: bool) -> Vec<(String, Tally)> {
    let mut modules = by_module(report);
    modules.sort_by_key(|(_, tally)| {
        std::cmp::Reverse(if by_size { tally.bytes } else { tally.count })
    });
    modules.truncate(most);
    modules
}
