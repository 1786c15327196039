//! The lines that probably leak, as the page's head has them: the ranking of [`leaks`], numbered as the page numbers frames.

use std::collections::HashMap;

use serde::Serialize;

use super::used::Used;
use crate::Report;
use crate::model::Frame;
use crate::views::{Leak, Leaks, Names, leaks, named};

/// Largest number of lines that the page lists.
const MOST: usize = 20;

/// Ranking of a report.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    unknown: Option<&'static str>,
    lines: Vec<(Place, Leak)>,
    left_out: usize,
}

/// Function by its plain name, file, line.
type Place = (String, String, u32);

/// [`Ranking`] with the page's numbers of frames; `report/page/js/decode.js` reads it.
#[derive(Debug, Serialize)]
pub(super) struct Ranked<'a> {
    /// Why it is not known what leaks.
    unknown: Option<&'static str>,
    /// The likeliest leak first.
    list: Vec<RankedLine<'a>>,
    /// Number of lines that `list` does not have, the least likely ones.
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct RankedLine<'a> {
    frame: u32,
    own: bool,
    blocks: u64,
    bytes: u64,
    per_hour: u64,
    survival: Option<f64>,
    confidence: &'static str,
    evidence: &'a [String],
    against: &'a [String],
}

impl Ranking {
    /// Judges the lines of `report` by plain names, as all other outputs do: a line is one even if type parameters differ.
    pub(super) fn of(report: &Report) -> Ranking {
        // Without a history nothing is judged, and the copy of a large report would be for nothing.
        let judged = !report.history.moments.is_empty();
        let plain = judged.then(|| named(report, Names::Plain)).flatten();
        let plain = plain.as_ref().unwrap_or(report);
        let mut list = match leaks(plain) {
            Leaks::Ranked(list) => list,
            Leaks::Unknown(reason) => {
                return Ranking {
                    unknown: Some(reason),
                    ..Ranking::default()
                };
            }
        };
        let left_out = list.len().saturating_sub(MOST);
        list.truncate(MOST);
        let lines = list.into_iter().map(|leak| {
            let frame = plain.frames.get(leak.frame.0 as usize).copied();
            (place(plain, frame.unwrap_or_default()), leak)
        });
        Ranking {
            unknown: None,
            lines: lines.collect(),
            left_out,
        }
    }

    /// Returns the ranking with the numbers of `used`, the frames of the same report with both names. The first of the
    /// frames that differ in full names alone stands for all, as on the page.
    pub(super) fn numbered(&self, report: &Report, used: &Used) -> Ranked<'_> {
        let mut first = HashMap::new();
        if !self.lines.is_empty() {
            for (number, &old) in (0..).zip(&used.frames) {
                let frame = report.frames.get(old as usize).copied().unwrap_or_default();
                let lines = &self.lines;
                if lines.iter().any(|((_, _, line), _)| *line == frame.line) {
                    first.entry(place(report, frame)).or_insert(number);
                }
            }
        }
        // Each has a number: a line that leaks is in a call stack.
        let numbered = self
            .lines
            .iter()
            .filter_map(|(place, leak)| Some((*first.get(place)?, leak)));
        Ranked {
            unknown: self.unknown,
            list: numbered
                .map(|(frame, leak)| RankedLine {
                    frame,
                    own: leak.is_own,
                    blocks: leak.live.count,
                    bytes: leak.live.bytes,
                    per_hour: leak.growth_bytes_per_hour,
                    survival: leak.survival,
                    confidence: leak.confidence.name(),
                    evidence: &leak.evidence,
                    against: &leak.against,
                })
                .collect(),
            left_out: self.left_out,
        }
    }
}

fn place(report: &Report, frame: Frame) -> Place {
    let text = |id| report.strings.get(id).to_owned();
    (text(frame.function), text(frame.file), frame.line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Allocator, ContextId, FrameId, Held, HistoryMoment, Site, StackId, Survivor, Tally,
        ThreadId,
    };
    use crate::views::{CallTree, with_both_names};

    /// Returns a session of 100 seconds in which each of `functions`, all in one line, keeps a block of 1 kB each second.
    fn leaking(functions: &[&str]) -> Report {
        let mut report = Report::default();
        report.about.end_ms = 100_000;
        let blocks = |count| Tally {
            count,
            bytes: 1_000 * count,
        };
        let moments: Vec<u64> = (1..10).map(|step| step * 10).collect();
        report.survivors.starts_ms = (0..10).map(|step| step * 10_000).collect();
        let all = functions.len() as u64;
        for &seconds in &moments {
            report.history.moments.push(HistoryMoment {
                at_ms: seconds * 1_000,
                allocated: blocks(all * seconds),
            });
        }
        report.totals.allocated = blocks(all * 100);
        report.totals.live = blocks(all * 100);
        for (number, function) in (0u32..).zip(functions) {
            report.add_frame(function, "src/cart.rs", 7);
            report.sites.push(Site {
                context: ContextId::NONE,
                thread: ThreadId(0),
                stack: report.stacks.child(StackId::EMPTY, FrameId(number)),
                allocator: Allocator::Malloc,
                allocated: blocks(100),
                high_water: blocks(100),
                live: blocks(100),
                temporary: Tally::default(),
                oldest_live_ms: None,
            });
            for generation in 0..10 {
                report.survivors.list.push(Survivor {
                    site: number,
                    generation,
                    live: blocks(10),
                });
            }
            for (moment, &seconds) in (0u32..).zip(&moments) {
                report.history.list.push(Held {
                    site: number,
                    moment,
                    live: blocks(seconds).bytes,
                    allocated: blocks(seconds).bytes,
                });
            }
        }
        report
    }

    #[test]
    fn a_line_is_ranked_once_whatever_its_type_parameters() {
        let report = leaking(&["shop::Cart<u8>::add", "shop::Cart<u16>::add"]);
        let both = with_both_names(&report).unwrap();
        let used = Used::by(&both, &CallTree::of(&both));
        let ranking = Ranking::of(&report);
        let ranked = ranking.numbered(&both, &used);
        let lines: Vec<_> = ranked
            .list
            .iter()
            .map(|line| (line.frame, line.blocks, line.bytes, line.confidence))
            .collect();
        assert_eq!(lines, [(0, 200, 200_000, "high")]);
        assert_eq!((ranked.unknown, ranked.left_out), (None, 0));
    }

    #[test]
    fn the_likeliest_lines_are_listed_and_the_others_counted() {
        let names: Vec<String> = (0..30).map(|number| format!("shop::f{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let report = leaking(&names);
        let used = Used::by(&report, &CallTree::of(&report));
        let ranking = Ranking::of(&report);
        let ranked = ranking.numbered(&report, &used);
        assert_eq!((ranked.list.len(), ranked.left_out), (MOST, 10));
    }
}
