//! The report's call sites in the order of the page's call tree, and the data that refer to them.

use std::io::{self, Write};

use super::contexts::UsedContexts;
use super::varint::column;
use super::{Page, varint};
use crate::Report;
use crate::model::{Site, Survivor, Tally};
use crate::views::{CallTree, Interval, Measure};

/// Row of a call site that has nothing in any view.
const NO_ROW: u32 = u32::MAX;

/// Call sites that have something, by call tree node.
pub(super) struct Rows {
    /// (node, index of the call site).
    list: Vec<(u32, u32)>,
    /// Row of each call site, or [`NO_ROW`].
    row_of_site: Vec<u32>,
}

impl Rows {
    pub(super) fn of(report: &Report, tree: &CallTree) -> Rows {
        let mut node_of_stack = vec![0; report.stacks.len() + 1];
        for (node, at) in tree.nodes.iter().zip(1..) {
            node_of_stack[node.stack.0 as usize] = at;
        }
        // A stack that is not of this report counts as the empty one, as in `CallTree::of`.
        let node = |site: &Site| node_of_stack.get(site.stack.0 as usize).copied();
        let mut list: Vec<(u32, u32)> = (0..)
            .zip(&report.sites)
            .filter(|(_, site)| {
                Measure::ALL
                    .iter()
                    .any(|side| side.of(site) != Tally::default())
            })
            .map(|(index, site)| (node(site).unwrap_or(0), index))
            .collect();
        list.sort_unstable();
        let mut row_of_site = vec![NO_ROW; report.sites.len()];
        for (&(_, site), row) in list.iter().zip(0..) {
            row_of_site[site as usize] = row;
        }
        Rows { list, row_of_site }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the row of a call site that has one.
    fn row(&self, site: u32) -> Option<u32> {
        let row = self.row_of_site.get(site as usize).copied()?;
        (row != NO_ROW).then_some(row)
    }

    /// Returns the call site of each row.
    pub(super) fn sites<'a>(&'a self, report: &'a Report) -> impl Iterator<Item = &'a Site> {
        self.list
            .iter()
            .map(|&(_, site)| &report.sites[site as usize])
    }

    pub(super) fn write(
        &self,
        report: &Report,
        contexts: &UsedContexts<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut before = 0;
        column(out, &self.list, |&(node, _)| {
            let step = node - before;
            before = node;
            u64::from(step)
        })?;
        let sides = [
            Measure::Live,
            Measure::HighWater,
            Measure::Allocated,
            Measure::Temporary,
        ];
        let mut each = |value: &dyn Fn(&Site) -> u64| {
            column(out, &self.list, |&(_, site)| {
                value(&report.sites[site as usize])
            })
        };
        each(&|site| u64::from(site.thread.0))?;
        each(&|site| u64::from(site.allocator.id()))?;
        each(&|site| u64::from(contexts.number_of(site.context)))?;
        for side in sides {
            each(&|site| side.of(site).count)?;
            each(&|site| side.of(site).bytes)?;
        }
        each(&|site| site.oldest_live_ms.map_or(0, |ms| ms.saturating_add(1)))
    }
}

/// Returns the survivors that belong to a row, by row.
pub(super) fn survivors(report: &Report, rows: &Rows) -> Vec<(u32, Survivor)> {
    let generations = report.survivors.starts_ms.len();
    let list = report.survivors.list.iter();
    let mut found: Vec<(u32, Survivor)> = list
        .filter(|survivor| (survivor.generation as usize) < generations)
        .filter_map(|survivor| Some((rows.row(survivor.site)?, *survivor)))
        .collect();
    found.sort_by_key(|(row, survivor)| (*row, survivor.generation));
    found
}

pub(super) fn write_survivors(out: &mut impl Write, list: &[(u32, Survivor)]) -> io::Result<()> {
    row_steps(out, list)?;
    column(out, list, |(_, survivor)| u64::from(survivor.generation))?;
    column(out, list, |(_, survivor)| survivor.live.count)?;
    column(out, list, |(_, survivor)| survivor.live.bytes)
}

/// Returns the intervals that belong to a row, by row. Intervals with impossible times are left out.
pub(super) fn intervals(page: &Page<'_>, rows: &Rows) -> Vec<(u32, Interval)> {
    let Some(intervals) = page.intervals else {
        return Vec::new();
    };
    let slots = intervals.starts_ms.len();
    let possible = |row: &&Interval| {
        (row.born as usize) < slots && row.freed.is_none_or(|freed| freed >= row.born)
    };
    let mut found: Vec<(u32, Interval)> = intervals
        .rows
        .iter()
        .filter(possible)
        .filter_map(|interval| Some((rows.row(interval.site)?, *interval)))
        .collect();
    found.sort_by_key(|(row, interval)| (*row, interval.born, interval.freed.unwrap_or(u32::MAX)));
    found
}

pub(super) fn write_intervals(out: &mut impl Write, list: &[(u32, Interval)]) -> io::Result<()> {
    row_steps(out, list)?;
    column(out, list, |(_, row)| u64::from(row.born))?;
    column(out, list, |(_, row)| {
        row.freed.map_or(0, |freed| u64::from(freed - row.born) + 1)
    })?;
    column(out, list, |(_, row)| row.blocks.count)?;
    column(out, list, |(_, row)| row.blocks.bytes)
}

fn row_steps<T>(out: &mut impl Write, list: &[(u32, T)]) -> io::Result<()> {
    let mut before = 0;
    column(out, list, |(row, _)| {
        let step = row - before;
        before = *row;
        u64::from(step)
    })
}

/// Writes the numbers of allocations by size, as steps from the size before.
pub(super) fn write_sizes(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let sizes = &report.totals.sizes;
    let mut before = 0;
    for size in sizes {
        varint::write_step(out, before, size.size)?;
        before = size.size;
    }
    column(out, sizes, |size| size.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survivors_and_intervals_of_sites_that_are_not_there_are_left_out() {
        let mut report = Report::default();
        report.survivors.starts_ms = vec![0];
        report.survivors.list = vec![Survivor {
            site: 7,
            generation: 0,
            live: Tally { count: 1, bytes: 1 },
        }];
        let rows = Rows::of(&report, &CallTree::of(&report));
        assert_eq!(rows.len(), 0);
        assert!(survivors(&report, &rows).is_empty());
    }
}
