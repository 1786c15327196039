//! Findings about the service's own lines that the numbers prove: lines that grow their blocks again and again, lines that
//! allocate only for a moment, and lines that keep blocks of every generation of the session.
//!
//! Findings are only about lines of the service's own code, and only about lines that matter (a hundredth of the whole).
//! Each finding has its numbers.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::own_site::responsible;
use super::{Origins, Sums};
use crate::Report;
use crate::model::{Allocator, FrameId, StackId, StrId, Tally};
use crate::units::size;

/// Advice about a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The line of the service's own code.
    pub frame: FrameId,
    /// The finding about the line.
    pub finding: Finding,
    /// The finding in a sentence for users, with its numbers.
    pub text: String,
}

/// Finding about a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// Blocks of this line are live from every generation of the session: a leak, or a collection that only grows.
    Grows {
        /// Live memory by generation of [`Report::survivors`].
        generations: Vec<Tally>,
        /// Sum of the generations.
        live: Tally,
    },
    /// Blocks begin small and are moved as they grow.
    Regrown {
        /// Calls of `realloc`, and the requested bytes.
        regrown: Tally,
        /// Blocks that were first allocated in the same way on the same line.
        begun: u64,
    },
    /// Nearly all blocks are freed at once: with at most one other allocation of their thread in between.
    ShortLived {
        /// Temporary blocks.
        temporary: Tally,
        /// All blocks.
        allocated: Tally,
    },
}

/// A line matters if it has at least one part in so many of the whole.
const MATTERS: u64 = 100;
/// Smallest number of calls that is a pattern.
const FEWEST_REGROWN: u64 = 16;
const FEWEST_SHORT_LIVED: u64 = 1000;
/// Smallest average number of times that a block grows.
const GROWN: u64 = 3;
/// Shortest generation, as a fraction of the session, whose emptiness means something.
const SHORTEST_GENERATION: u64 = 50;
const FEWEST_GENERATIONS: usize = 3;

/// Returns the advice about `report`: first lines that grow, by their live bytes, then those that regrow their blocks, by
/// requested bytes, then those with short-lived blocks, by number.
#[must_use]
pub fn advice(report: &Report) -> Vec<Advice> {
    let origins = Origins::of(report);
    let mut lines: HashMap<FrameId, Line> = HashMap::new();
    let mut known: HashMap<StackId, Option<(FrameId, Option<StrId>)>> = HashMap::new();
    let mut line_of_site: Vec<Option<FrameId>> = Vec::with_capacity(report.sites.len());
    for site in &report.sites {
        let place = *known
            .entry(site.stack)
            .or_insert_with(|| own_line(report, &origins, site.stack));
        line_of_site.push(place.map(|(frame, _)| frame));
        let Some((frame, callee)) = place else {
            continue;
        };
        let line = lines.entry(frame).or_default();
        line.sums.add(site);
        let way = line.ways.entry(callee).or_default();
        match site.allocator {
            Allocator::Realloc | Allocator::PymallocRealloc => way.regrown += site.allocated,
            Allocator::Mmap => {}
            _ => way.begun = way.begun.saturating_add(site.allocated.count),
        }
    }
    let counts: Vec<bool> = generations_that_count(report);
    for survivor in &report.survivors.list {
        let frame = line_of_site.get(survivor.site as usize).copied().flatten();
        if let Some(line) = frame.and_then(|frame| lines.get_mut(&frame)) {
            line.generations.resize(counts.len(), Tally::default());
            if let Some(tally) = line.generations.get_mut(survivor.generation as usize) {
                *tally += survivor.live;
            }
        }
    }
    let mut all: Vec<Advice> = Vec::new();
    for (&frame, line) in &lines {
        let findings = [
            grows(report, line, &counts),
            regrown(report, line),
            short_lived(report, line),
        ];
        all.extend(findings.into_iter().flatten().map(|finding| Advice {
            frame,
            text: sentence(&finding),
            finding,
        }));
    }
    all.sort_by_key(|advice| {
        let (rank, weight) = match &advice.finding {
            Finding::Grows { live, .. } => (0, live.bytes),
            Finding::Regrown { regrown, .. } => (1, regrown.bytes),
            Finding::ShortLived { temporary, .. } => (2, temporary.count),
        };
        (rank, Reverse(weight), advice.frame)
    });
    all
}

/// Data about one of the service's lines.
#[derive(Debug, Default)]
struct Line {
    sums: Sums,
    /// Allocations by the function that the line called.
    ways: HashMap<Option<StrId>, Way>,
    generations: Vec<Tally>,
}

/// Allocations of a line through one function that it called: `Vec::push` begins blocks and regrows them, while `format!` on
/// the same line is a separate case.
#[derive(Debug, Default)]
struct Way {
    begun: u64,
    regrown: Tally,
}

/// Returns the service's line that `stack` is charged to, and the function that it called.
fn own_line(
    report: &Report,
    origins: &Origins,
    stack: StackId,
) -> Option<(FrameId, Option<StrId>)> {
    let (Some(own), true) = responsible(report, origins, stack) else {
        return None;
    };
    let callee = report
        .stacks
        .leaf_to_root(stack)
        .take_while(|&frame| frame != own)
        .last()
        .and_then(|FrameId(frame)| report.frames.get(frame as usize));
    Some((own, callee.map(|frame| frame.function)))
}

/// Returns, for each generation of survivors, whether it is long enough to count.
fn generations_that_count(report: &Report) -> Vec<bool> {
    let starts = &report.survivors.starts_ms;
    let end = super::intervals::duration_ms(report).max(starts.last().copied().unwrap_or(0));
    let ends = starts.iter().skip(1).copied().chain([end]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end_of)| {
            end_of.saturating_sub(*start) > 0
                && end_of.saturating_sub(*start) >= end / SHORTEST_GENERATION
        })
        .collect()
}

fn grows(report: &Report, line: &Line, counts: &[bool]) -> Option<Finding> {
    let live = line.sums.live;
    let long: Vec<&Tally> = line
        .generations
        .iter()
        .zip(counts)
        .filter_map(|(tally, &counts)| counts.then_some(tally))
        .collect();
    let in_every_one = long.iter().all(|tally| tally.count > 0);
    (long.len() >= FEWEST_GENERATIONS
        && in_every_one
        && live.bytes > 0
        && live.bytes >= report.totals.live.bytes / MATTERS)
        .then(|| Finding::Grows {
            generations: line.generations.clone(),
            live,
        })
}

fn regrown(report: &Report, line: &Line) -> Option<Finding> {
    let total = report.totals.allocated;
    let mut sum = (Tally::default(), 0u64);
    for way in line.ways.values() {
        let often = way.begun > 0 && way.regrown.count / way.begun >= GROWN;
        let matters = way.regrown.count >= total.count / MATTERS
            || way.regrown.bytes >= total.bytes / MATTERS;
        if often && matters && way.regrown.count >= FEWEST_REGROWN {
            sum.0 += way.regrown;
            sum.1 = sum.1.saturating_add(way.begun);
        }
    }
    (sum.1 > 0).then_some(Finding::Regrown {
        regrown: sum.0,
        begun: sum.1,
    })
}

fn short_lived(report: &Report, line: &Line) -> Option<Finding> {
    let Sums {
        temporary,
        allocated,
        ..
    } = line.sums;
    let nearly_all = temporary.count >= allocated.count - allocated.count / 10;
    (nearly_all
        && temporary.count >= FEWEST_SHORT_LIVED
        && temporary.count >= report.totals.allocated.count / MATTERS)
        .then_some(Finding::ShortLived {
            temporary,
            allocated,
        })
}

fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::Grows { generations, live } => {
            let bytes = |tally: Option<&Tally>| size(tally.map_or(0, |tally| tally.bytes));
            format!(
                "Something of every span of the capture is still live: {} in {} blocks, {} of the first of {} spans and \
                 {} of the last. A leak, or a collection that only grows.",
                size(live.bytes),
                live.count,
                bytes(generations.first()),
                generations.len(),
                bytes(generations.last()),
            )
        }
        Finding::Regrown { regrown, begun } => format!(
            "{begun} {} grew {:.1} times on average. Room from the start (with_capacity, reserve) saves up to {} calls of \
             realloc that asked for {} in all.",
            if *begun == 1 { "block" } else { "blocks" },
            regrown.count as f64 / *begun as f64,
            regrown.count,
            size(regrown.bytes),
        ),
        Finding::ShortLived {
            temporary,
            allocated,
        } => format!(
            "{} of {} blocks ({} in all) were freed by their thread at once, with at most one other allocation in between. \
             A buffer that is kept and reused saves them.",
            temporary.count,
            allocated.count,
            size(temporary.bytes),
        ),
    }
}
