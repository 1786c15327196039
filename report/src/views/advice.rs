//! What can be said for certain about the service's own lines: which grow their blocks again and again, which allocate
//! for a moment only, and which keep something of every span of the capture.
//!
//! Only lines of the service's own code are spoken of, only such that matter (a hundredth of the whole), and only what
//! the numbers prove; the numbers are given with it.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::own_site::responsible;
use super::{Origins, Sums};
use crate::Report;
use crate::model::{Allocator, FrameId, StackId, StrId, Tally};
use crate::units::size;

/// Something worth doing, or looking at.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The line of the service's own code.
    pub frame: FrameId,
    /// What was found there.
    pub finding: Finding,
    /// The same in a sentence for people, with its numbers.
    pub text: String,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// Of every span of the capture, blocks of this line are still live: a leak, or a collection that only grows.
    Grows {
        /// What is live, by generation of [`Report::survivors`].
        generations: Vec<Tally>,
        /// All of it.
        live: Tally,
    },
    /// Blocks that begin small and are moved as they grow.
    Regrown {
        /// Calls of `realloc`, and the bytes they asked for.
        regrown: Tally,
        /// Blocks that were begun in the same way on the same line.
        begun: u64,
    },
    /// Nearly all blocks are freed at once: with at most one other allocation of their thread in between.
    ShortLived {
        /// Blocks that were.
        temporary: Tally,
        /// All blocks.
        allocated: Tally,
    },
}

/// Of the whole, at least one part in so many makes a line matter.
const MATTERS: u64 = 100;
/// Fewer calls are not a habit.
const FEWEST_REGROWN: u64 = 16;
const FEWEST_SHORT_LIVED: u64 = 1000;
/// So often at least does the average block grow.
const GROWN: u64 = 3;
/// Generations that are shorter than this part of the capture say nothing by being empty.
const SHORTEST_GENERATION: u64 = 50;
const FEWEST_GENERATIONS: usize = 3;

/// What can be said for certain about `report`: lines that grow first, by what they keep, then those that regrow their
/// blocks, by bytes asked for, then those with short-lived blocks, by number.
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

/// What is known of one of the service's lines.
#[derive(Debug, Default)]
struct Line {
    sums: Sums,
    /// By the function that the line called to get there.
    ways: HashMap<Option<StrId>, Way>,
    generations: Vec<Tally>,
}

/// Allocations of a line by one function that it called: `Vec::push` begins blocks and regrows them, while
/// `format!` on the same line is another matter.
#[derive(Debug, Default)]
struct Way {
    begun: u64,
    regrown: Tally,
}

/// The service's line that `stack` is put down to, and the function that it called.
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

/// Whether each generation of survivors is long enough to say something.
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
