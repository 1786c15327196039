//! The judgement of a line: see the module above for the three questions.

use super::lines::Line;
use super::work::Work;
use super::{Confidence, Leak, text};
use crate::model::{Report, Tally};

/// Parts of the work that are looked at. What the last tenth left may be in use still; the first tenth is start-up.
const PARTS: usize = 8;
const FIRST: f64 = 0.1;
const LAST: f64 = 0.9;

/// A part gains if it has this fraction of the largest gain of a part since the growth began.
const GAINS: f64 = 0.15;
/// Latest beginning of a growth that is believed.
const LATEST: f64 = 0.6;
/// Fewest parts that gain.
const FEWEST_PARTS: usize = 3;
/// Bounds of the gain in the second half of a growth, relative to the first half. Above: blocks are freed as they age. Below:
/// the growth ends.
const AGEING: f64 = 2.5;
const ENDING: f64 = 0.25;

const LEAST_BYTES: f64 = 4096.0;
/// Fewest blocks. They are counted between the first and the last tenth of the work, which may cut them in parts: of two blocks
/// at most 1.6 are counted, which is no more than a coincidence, of three 2.4.
const LEAST_BLOCKS: f64 = 2.0;
/// Fewest blocks of a line that frees most of what it allocates: a few old ones are nothing unusual there.
const LEAST_BLOCKS_OF_MANY: f64 = 16.0;
/// Least growth that somebody should act on: so many bytes, or this part of the live bytes.
const ACT_BYTES: f64 = 65_536.0;
const ACT_PART: f64 = 0.01;
/// Fewest blocks, in as many parts, that are a pattern beyond doubt.
const CERTAIN_BLOCKS: f64 = 16.0;
const CERTAIN_PARTS: usize = 6;
/// The same where they are this part of the live bytes.
const CERTAIN_LARGE_BLOCKS: f64 = 8.0;
const LARGE_PART: f64 = 0.5;

/// Largest number of blocks of a line that may be one collection that is moved as it grows.
const COLLECTIONS: u64 = 16;
/// Largest number of bytes that such collections allocate, for each byte that they have at the end: 2 if each doubles.
const MOVED: f64 = 4.0;
/// Smallest factor by which such a collection grows in a step, and the factor that is expected.
const STEP: f64 = 1.4;
const DOUBLED: f64 = 2.0;

/// Result for a line that grows.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) shape: Shape,
    /// Part of the work after which the growth began.
    pub(super) from: f64,
    /// Growth that counts, in bytes and blocks.
    pub(super) grown: f64,
    pub(super) grown_blocks: f64,
    /// Number of parts that gained, of those since the growth began.
    pub(super) gaining: usize,
    pub(super) parts: usize,
    /// Gain of the second half of the growth, relative to the first.
    pub(super) later: f64,
    pub(super) per_hour: u64,
    pub(super) survival: Option<f64>,
    pub(super) confidence: Confidence,
    pub(super) span_ms: u64,
}

/// Shape of a growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Blocks are kept, of all ages.
    Kept,
    /// A few blocks become larger and larger.
    Enlarged,
}

impl Verdict {
    /// Returns the growth in bytes, and the entry of the ranking.
    pub(super) fn into_leak(self, line: &Line) -> (u64, Leak) {
        let (evidence, against) = text::sentences(&self, line);
        let leak = Leak {
            frame: line.frame,
            is_own: line.is_own,
            stack: line.stack,
            live: line.live,
            growth_bytes_per_hour: self.per_hour,
            survival: self.survival,
            confidence: self.confidence,
            evidence,
            against,
        };
        (self.grown as u64, leak)
    }
}

/// Returns the verdict about `line`, or `None` if it does not grow.
pub(super) fn judge(report: &Report, work: &Work, line: &Line) -> Option<Verdict> {
    let noise = report
        .conditions
        .sampling
        .as_ref()
        .map_or(0.0, |sampling| sampling.mean_bytes() as f64);
    let verdict = kept(work, line).or_else(|| enlarged(work, line))?;
    let least_blocks = match verdict.survival {
        Some(survival) if survival < 0.5 => LEAST_BLOCKS_OF_MANY,
        _ => LEAST_BLOCKS,
    };
    let enough = verdict.grown >= LEAST_BYTES.max(4.0 * noise)
        && (verdict.shape == Shape::Enlarged || verdict.grown_blocks >= least_blocks);
    enough.then(|| Verdict {
        confidence: confidence(&verdict, report.totals.live, noise),
        ..verdict
    })
}

/// Returns the verdict about a line that keeps what it allocates: from the beginning, or from a later time on.
fn kept(work: &Work, line: &Line) -> Option<Verdict> {
    let gains: Vec<f64> = (0..PARTS)
        .map(|part| gain(work, &line.kept, start(part), start(part + 1)))
        .collect();
    (0..PARTS)
        .filter(|&first| start(first) <= LATEST)
        .find_map(|first| {
            // Relative to what came since: a table that was made before hides no leak.
            let least = GAINS * gains[first..].iter().copied().fold(0.0, f64::max);
            let gains: Vec<bool> = gains[first..]
                .iter()
                .map(|&gain| gain > 0.0 && gain >= least)
                .collect();
            if !gains[0] {
                return None;
            }
            kept_from(work, line, first, &gains)
        })
}

/// Does the same for a growth that began with the part `first`; `gains` tells which parts from there on gained.
fn kept_from(work: &Work, line: &Line, first: usize, gains: &[bool]) -> Option<Verdict> {
    let (from, gaining) = (start(first), gains.iter().filter(|&&gains| gains).count());
    let middle = (from + LAST) / 2.0;
    let early = gain(work, &line.kept, from, middle);
    let late = gain(work, &line.kept, middle, LAST);
    if gaining < FEWEST_PARTS
        || late > AGEING * early
        || late < ENDING * early
        || is_replaced(work, line, middle)
        || is_replaced(work, line, from)
        || rose_before(work, line, from)
    {
        return None;
    }
    let (grown, span_ms) = (early + late, span_ms(work, from, LAST));
    let allocated = gain(work, &line.allocated, from, LAST);
    Some(Verdict {
        shape: Shape::Kept,
        from,
        grown,
        grown_blocks: gain(work, &line.kept_blocks, from, LAST),
        gaining,
        parts: gains.len(),
        later: late / early,
        per_hour: per_hour(grown, span_ms),
        survival: (line.is_known && allocated >= grown).then(|| grown / allocated),
        confidence: Confidence::Low,
        span_ms,
    })
}

/// Returns the part of the work after which part `part` begins.
fn start(part: usize) -> f64 {
    FIRST + (LAST - FIRST) * part as f64 / PARTS as f64
}

/// Returns how much `curve` rises between two points of the work.
fn gain(work: &Work, curve: &[f64], from: f64, to: f64) -> f64 {
    work.value(curve, to) - work.value(curve, from)
}

/// Returns whether the line freed as much of what it held at `from` as it has kept since: a full cache, whose old entries
/// make room for new ones.
fn is_replaced(work: &Work, line: &Line, from: f64) -> bool {
    let of = |curve: &[f64]| gain(work, curve, from, LAST);
    let gain = of(&line.kept);
    let given_back = work.value(&line.held, from) - work.value(&line.kept, from);
    // Where much more was allocated, what was given back were short-lived blocks, whose number says nothing.
    let is_old = of(&line.allocated) < 4.0 * given_back;
    given_back >= gain / 2.0 && is_old && of(&line.held) < gain / 2.0
}

/// Returns whether the line had held as much before `from`, and had given it back: it rises and falls.
fn rose_before(work: &Work, line: &Line, from: f64) -> bool {
    let before = (0..work.bounds()).filter(|&bound| work.at_bound(bound) < from);
    let highest = before.map(|bound| line.held[bound]).fold(0.0, f64::max);
    from > FIRST
        && highest - work.value(&line.kept, from)
            >= 0.7 * (work.value(&line.held, LAST) - work.value(&line.kept, from))
}

/// Returns the verdict about a line of few blocks that become larger: a vector or a map that is never emptied.
fn enlarged(work: &Work, line: &Line) -> Option<Verdict> {
    let allocated = *line.allocated.last()?;
    if line.live.count > COLLECTIONS || allocated > MOVED * line.live.bytes as f64 {
        return None;
    }
    let floor = line.floor();
    let end = *floor.last()?;
    let highest = line.held.iter().copied().fold(0.0, f64::max);
    // A map has its old and its new table while it moves.
    if highest > end * 2.1 {
        return None;
    }
    let began = (0..work.bounds()).find(|&bound| floor[bound] > 0.0)?;
    let steps: Vec<f64> = (began + 1..work.bounds())
        .filter(|&bound| floor[bound - 1] > 0.0 && floor[bound] >= STEP * floor[bound - 1])
        .map(|bound| work.at_bound(bound))
        .collect();
    let from = work.at_bound(began);
    let last = *steps.last()?;
    let after_start = steps.iter().filter(|&&at| at > FIRST).count();
    // With steady growth it would have doubled again.
    let overdue = from + (last - from) * DOUBLED < 0.97;
    if steps.len() < FEWEST_PARTS || after_start < 2 || overdue {
        return None;
    }
    let grown = end - work.value(&floor, FIRST);
    let span_ms = span_ms(work, FIRST, 1.0);
    Some(Verdict {
        shape: Shape::Enlarged,
        from,
        grown,
        grown_blocks: line.live.count as f64,
        gaining: steps.len(),
        parts: steps.len(),
        later: 1.0,
        per_hour: per_hour(grown, span_ms),
        survival: None,
        confidence: Confidence::Low,
        span_ms,
    })
}

fn span_ms(work: &Work, from: f64, to: f64) -> u64 {
    work.time_ms(to).saturating_sub(work.time_ms(from))
}

fn per_hour(bytes: f64, span_ms: u64) -> u64 {
    (bytes * 3_600_000.0 / span_ms.max(1) as f64) as u64
}

fn confidence(verdict: &Verdict, live: Tally, noise: f64) -> Confidence {
    let matters = verdict.grown
        >= ACT_BYTES
            .min(ACT_PART * live.bytes as f64)
            .max(10.0 * noise)
        && verdict.grown >= LEAST_BYTES;
    let certain = verdict.shape == Shape::Kept
        && verdict.gaining >= CERTAIN_PARTS.min(verdict.parts)
        && verdict.gaining > FEWEST_PARTS
        && (verdict.grown_blocks >= CERTAIN_BLOCKS
            || verdict.grown_blocks >= CERTAIN_LARGE_BLOCKS
                && verdict.grown >= LARGE_PART * live.bytes as f64)
        && verdict.later >= 0.5;
    match (matters, certain) {
        (true, true) => Confidence::High,
        (true, false) => Confidence::Medium,
        (false, _) => Confidence::Low,
    }
}
