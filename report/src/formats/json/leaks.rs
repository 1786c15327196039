//! The lines that probably leak, for scripts.
//!
//! ```text
//! { "candidates": [{ "function", "file", "line",
//!                    "stack": [{ "function", "file", "line" }],     leaf first
//!                    "live_bytes", "live_blocks", "growth_bytes_per_hour",
//!                    "survival" (from 0 to 1, or null), "confidence": "high", "medium" or "low",
//!                    "evidence": [text], "against": [text] }],
//!   "known": [{ "function", "file", "reason", "live_bytes", "live_blocks" }],
//!   "unknown": reason }
//! ```
//!
//! The likeliest leak comes first. `known` has the rules that match memory, which is not ranked; it is there only if a rule
//! does. `unknown` is there only if it cannot be told what leaks; `candidates` is empty then.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use crate::Report;
use crate::formats::spelling;
use crate::model::FrameId;
use crate::views::{self, KnownSums, Leak};

#[derive(Serialize)]
struct File<'a> {
    candidates: Vec<Candidate<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    known: Vec<KnownMemory<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<&'static str>,
}

/// Memory that a rule makes known.
#[derive(Serialize)]
pub(crate) struct KnownMemory<'a> {
    function: &'a str,
    file: &'a str,
    reason: &'a str,
    live_bytes: u64,
    live_blocks: u64,
}

impl<'a> KnownMemory<'a> {
    /// Returns the memory of each rule that matches some, most live bytes first.
    pub(crate) fn of(report: &'a Report) -> Vec<KnownMemory<'a>> {
        let known = views::known(report).into_iter();
        known
            .map(|KnownSums { rule, sums }| {
                let rule = &report.about.known[rule];
                KnownMemory {
                    function: &rule.function,
                    file: &rule.file,
                    reason: &rule.reason,
                    live_bytes: sums.live.bytes,
                    live_blocks: sums.live.count,
                }
            })
            .collect()
    }
}

/// Line that probably leaks.
#[derive(Serialize)]
pub(crate) struct Candidate<'a> {
    #[serde(flatten)]
    line: Line<'a>,
    stack: Vec<Line<'a>>,
    live_bytes: u64,
    live_blocks: u64,
    growth_bytes_per_hour: u64,
    survival: Option<f64>,
    confidence: &'static str,
    evidence: Vec<String>,
    against: Vec<String>,
}

#[derive(Serialize)]
struct Line<'a> {
    function: Cow<'a, str>,
    file: Cow<'a, str>,
    line: u32,
}

impl<'a> Line<'a> {
    fn of(report: &'a Report, frame: FrameId) -> Line<'a> {
        let frame = spelling::frame(report, frame);
        Line {
            function: frame.map_or(spelling::NO_NAME.into(), |frame| {
                spelling::function(report, frame)
            }),
            file: frame.map_or("".into(), |frame| spelling::file(report, frame)),
            line: frame.map_or(0, |frame| frame.line),
        }
    }
}

impl<'a> Candidate<'a> {
    pub(crate) fn of(report: &'a Report, leak: &Leak) -> Candidate<'a> {
        let stack = report.stacks.leaf_to_root(leak.stack);
        Candidate {
            line: Line::of(report, leak.frame),
            stack: stack.map(|frame| Line::of(report, frame)).collect(),
            live_bytes: leak.live.bytes,
            live_blocks: leak.live.count,
            growth_bytes_per_hour: leak.growth_bytes_per_hour,
            survival: leak.survival,
            confidence: leak.confidence.name(),
            evidence: leak.evidence.clone(),
            against: leak.against.clone(),
        }
    }
}

/// Writes the lines of `report` that probably leak: the first `most`, or all.
///
/// # Errors
/// If `out` fails.
pub fn leaks(report: &Report, most: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    let leaks = views::leaks(report);
    let file = File {
        candidates: leaks
            .list()
            .iter()
            .take(most.unwrap_or(usize::MAX))
            .map(|leak| Candidate::of(report, leak))
            .collect(),
        known: KnownMemory::of(report),
        unknown: leaks.unknown(),
    };
    Ok(serde_json::to_writer_pretty(out, &file)?)
}
