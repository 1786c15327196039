//! Compares two reports: growth and shrinkage by call site. Their handles need not agree: frames are the same if function,
//! file and line are, and call stacks if all their frames are. Threads and allocators are joined.

use std::collections::HashMap;

use super::merge::join;
use super::own_site::own_sites;
use super::rebuild::sum_up;
use super::{Measure, Origins, Sums, Unit};
use crate::Report;
use crate::model::{FrameId, Site, StackId, Tally};

/// Sums of one call site, or of all, before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Sums in the first report.
    pub before: Sums,
    /// Sums in the second.
    pub after: Sums,
}

impl Change {
    /// Returns how much more there is after; negative if it shrank.
    #[must_use]
    pub fn growth(&self, measure: Measure, unit: Unit) -> i128 {
        let of = |sums| i128::from(unit.of(measure.of_sums(sums)));
        of(&self.after) - of(&self.before)
    }

    fn has_changed(&self) -> bool {
        Measure::ALL
            .iter()
            .any(|measure| measure.of_sums(&self.before) != measure.of_sums(&self.after))
    }
}

/// Comparison of two reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// Strings, frames and call stacks of both reports, which [`by_own_site`](Self::by_own_site) and
    /// [`by_stack`](Self::by_stack) refer to. It has no sites.
    pub tables: Report,
    /// All sites together.
    pub total: Change,
    /// Changes by the line of the service's own code that memory is charged to ([`own_sites`]), without lines that did not
    /// change. `None` is the empty stack.
    pub by_own_site: Vec<(Option<FrameId>, Change)>,
    /// Changes by call stack, without stacks that did not change.
    pub by_stack: Vec<(StackId, Change)>,
    before: Report,
    after: Report,
}

/// Node of [`Diff::tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffNode {
    /// Number of frames in its call stack; at least 1.
    pub depth: u32,
    /// The leaf of its call stack.
    pub frame: FrameId,
    /// Change of the call stack and all stacks below it.
    pub total: Change,
}

/// Compares `after` with `before`. Both lists are in the order of the largest change of live bytes, growth or shrinkage,
/// then of bytes at the high-water mark.
#[must_use]
pub fn diff(before: &Report, after: &Report) -> Diff {
    let reports = [before.clone(), after.clone()];
    let (mut tables, renamed) = join(&reports);
    tables.about = after.about.clone();
    let [first, second] = reports;
    let mut sides = [first, second]
        .into_iter()
        .zip(&renamed)
        .map(|(report, renamed)| {
            let sites = report.sites.iter().map(|site| Site {
                thread: renamed.thread(site.thread),
                stack: renamed.stack(site.stack),
                context: renamed.context(site.context),
                ..*site
            });
            Report {
                sites: sites.collect(),
                totals: report.totals,
                ..tables.clone()
            }
        });
    let before = sides.next().unwrap_or_default();
    let after = sides.next().unwrap_or_default();
    drop(sides);
    let origins = Origins::of(&tables);
    let mut total = Change::default();
    let mut by_stack: HashMap<StackId, Change> = HashMap::new();
    let mut by_own_site: HashMap<Option<FrameId>, Change> = HashMap::new();
    for (report, side) in [(&before, Side::Before), (&after, Side::After)] {
        for site in &report.sites {
            side.of(by_stack.entry(site.stack).or_default()).add(site);
            side.of(&mut total).add(site);
        }
        for own in own_sites(report, &origins) {
            *side.of(by_own_site.entry(own.frame).or_default()) += own.sums;
        }
    }
    Diff {
        tables,
        total,
        by_own_site: in_order(by_own_site),
        by_stack: in_order(by_stack),
        before,
        after,
    }
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

impl Side {
    fn of(self, change: &mut Change) -> &mut Sums {
        match self {
            Side::Before => &mut change.before,
            Side::After => &mut change.after,
        }
    }
}

fn in_order<K: Ord + Copy>(changes: HashMap<K, Change>) -> Vec<(K, Change)> {
    let mut list: Vec<(K, Change)> = changes
        .into_iter()
        .filter(|(_, change)| change.has_changed())
        .collect();
    list.sort_unstable_by_key(|(key, change)| {
        let size = |measure| change.growth(measure, Unit::Bytes).unsigned_abs();
        let sizes = (
            size(Measure::Live),
            size(Measure::HighWater),
            size(Measure::Allocated),
        );
        (std::cmp::Reverse(sizes), *key)
    });
    list
}

impl Diff {
    /// Returns the growth as a report: each site has the amount by which its call stack grew, and nothing if it shrank.
    /// Every view and format can show it. Sites are by call stack and allocator; threads are those of `after`.
    #[must_use]
    pub fn grown(&self) -> Report {
        surplus(&self.after, &self.before, "only what grew is shown")
    }

    /// Returns the shrinkage as a report: the reverse of [`grown`](Self::grown).
    #[must_use]
    pub fn shrunk(&self) -> Report {
        surplus(&self.before, &self.after, "only what shrank is shown")
    }

    /// Returns the call trees of both reports as one, in preorder, without nodes below which nothing changed. A node's
    /// growth is [`Change::growth`] of its total, and may be the sum of growth and shrinkage below it.
    #[must_use]
    pub fn tree(&self) -> Vec<DiffNode> {
        let count = self.tables.stacks.len() + 1;
        let mut totals = vec![Change::default(); count];
        let mut changed = vec![false; count];
        for (report, side) in [(&self.before, Side::Before), (&self.after, Side::After)] {
            for site in &report.sites {
                side.of(&mut totals[site.stack.0 as usize]).add(site);
            }
        }
        // Parents have smaller handles. So from the largest handle on, children are summed up before their parents.
        let mut first_child = vec![0u32; count];
        let mut next_sibling = vec![0u32; count];
        for id in (1..count).rev() {
            changed[id] |= totals[id].has_changed();
            let Some(node) = self.tables.stacks.node(StackId(id as u32)) else {
                continue;
            };
            let parent = node.parent.0 as usize;
            let own = totals[id];
            totals[parent].before += own.before;
            totals[parent].after += own.after;
            if changed[id] {
                changed[parent] = true;
                next_sibling[id] = first_child[parent];
                first_child[parent] = id as u32;
            }
        }
        let mut nodes = Vec::new();
        let mut open = vec![(first_child[0], 1u32)];
        while let Some((id, depth)) = open.pop() {
            let Some(node) = self.tables.stacks.node(StackId(id)) else {
                continue;
            };
            nodes.push(DiffNode {
                depth,
                frame: node.frame,
                total: totals[id as usize],
            });
            open.push((next_sibling[id as usize], depth));
            open.push((first_child[id as usize], depth + 1));
        }
        nodes
    }
}

/// Returns the amount by which `more` exceeds `less`, by call stack.
fn surplus(more: &Report, less: &Report, note: &str) -> Report {
    let mut owed: HashMap<StackId, [Tally; 4]> = HashMap::new();
    for site in &less.sites {
        let owed = owed.entry(site.stack).or_default();
        for (owed, measure) in owed.iter_mut().zip(Measure::ALL) {
            *owed += measure.of(site);
        }
    }
    let mut part = more.clone();
    for site in &mut part.sites {
        let Some(owed) = owed.get_mut(&site.stack) else {
            continue;
        };
        let fields = [
            &mut site.high_water,
            &mut site.live,
            &mut site.allocated,
            &mut site.temporary,
        ];
        for (owed, field) in owed.iter_mut().zip(fields) {
            let bytes = owed.bytes.min(field.bytes);
            let count = owed.count.min(field.count);
            owed.bytes -= bytes;
            owed.count -= count;
            field.bytes -= bytes;
            field.count -= count;
        }
    }
    part.sites.retain(|site| {
        Measure::ALL
            .iter()
            .any(|measure| measure.of(site) != Tally::default())
    });
    part.totals = sum_up(&part.totals, &part.sites);
    part.conditions.notes.push(note.into());
    part
}
