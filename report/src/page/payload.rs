//! The report as the page carries it, before compression; `report/page/js/decode.js` is the reader.
//!
//! ```text
//! length, head              JSON: who, when, conditions, totals, packages, and how long each table is
//! strings                   length of each; then their UTF-8 bytes, back to back
//! frames                    function of each; file of each; line of each; package of each
//! nodes, in preorder        frames closed before each (0: child of its predecessor); frame of each
//! own sums, by node         step from the node before; live blocks; live bytes; high-water blocks; bytes;
//!                           allocated blocks; bytes; oldest live block's milliseconds + 1, 0 if unknown
//! timeline                  step from the moment before; RSS, heap, own bytes as signed steps
//! ```
//!
//! All numbers are LEB128 ([`varint`]). Only strings and frames that a node uses are written.

use std::io::{self, Write};

use serde::Serialize;

use super::varint;
use crate::Report;
use crate::model::{Frame, Moment, StrId, Tally};
use crate::views::{CallTree, Origins, Sums};

/// Numbers stay exact in the browser up to 2^53, nine petabytes.
#[derive(Serialize)]
struct Head<'a> {
    producer: &'a str,
    command_line: &'a str,
    pid: u32,
    start_ms: i64,
    end_ms: i64,
    events: u64,
    threads: u64,
    totals: Totals,
    by_allocator: Vec<(&'a str, Pair)>,
    conditions: Conditions<'a>,
    packages: Vec<(&'a str, u8)>,
    counts: Counts,
}

/// Blocks and bytes.
type Pair = (u64, u64);

#[derive(Serialize)]
struct Totals {
    allocated: Pair,
    freed: Pair,
    live: Pair,
    high_water: Pair,
    high_water_ms: Option<u64>,
}

#[derive(Serialize)]
struct Conditions<'a> {
    still_recording: bool,
    hooks: &'a str,
    lost_events: u64,
    stacks_cut: u64,
    stacks_incomplete: u64,
    unknown_frees: u64,
    log_given_up: Option<&'a str>,
    notes: &'a [String],
    own_bytes: u64,
    collector_cpu_ns: u64,
    log_bytes: u64,
}

#[derive(Serialize)]
struct Counts {
    strings: usize,
    frames: usize,
    nodes: usize,
    own: usize,
    moments: usize,
}

const UNUSED: u32 = u32::MAX;

/// Writes `report` and frees what it needed for that.
pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let tree = CallTree::of(report);
    let origins = Origins::of(report);
    let used = Used::by(report, &tree);

    let head = serde_json::to_vec(&head(report, &tree, &origins, &used))?;
    varint::write(out, head.len() as u64)?;
    out.write_all(&head)?;

    column(out, &used.strings, |&id| {
        report.strings.get(id).len() as u64
    })?;
    for &id in &used.strings {
        out.write_all(report.strings.get(id).as_bytes())?;
    }

    let frame = |&old: &u32| report.frames.get(old as usize).copied().unwrap_or_default();
    let string = |id: StrId| u64::from(used.string_number[id.0 as usize]);
    column(out, &used.frames, |old| string(frame(old).function))?;
    column(out, &used.frames, |old| string(frame(old).file))?;
    column(out, &used.frames, |old| u64::from(frame(old).line))?;
    column(out, &used.frames, |&old| {
        origins
            .index(crate::model::FrameId(old))
            .map_or(0, u64::from)
    })?;

    let mut depth = 0;
    column(out, &tree.nodes, |node| {
        let closed = depth + 1 - node.depth;
        depth = node.depth;
        u64::from(closed)
    })?;
    column(out, &tree.nodes, |node| {
        u64::from(used.frame_number[node.frame.0 as usize])
    })?;

    write_own(out, &tree)?;
    write_timeline(out, &report.timeline)
}

fn write_own(out: &mut impl Write, tree: &CallTree) -> io::Result<()> {
    let mut before = 0;
    column(out, &tree.own, |&(node, _)| {
        let step = node - before;
        before = node;
        u64::from(step)
    })?;
    let columns: [fn(&Sums) -> u64; 7] = [
        |sums| sums.live.count,
        |sums| sums.live.bytes,
        |sums| sums.high_water.count,
        |sums| sums.high_water.bytes,
        |sums| sums.allocated.count,
        |sums| sums.allocated.bytes,
        |sums| sums.oldest_live_ms.map_or(0, |ms| ms.saturating_add(1)),
    ];
    for value in columns {
        column(out, &tree.own, |(_, sums)| value(sums))?;
    }
    Ok(())
}

fn write_timeline(out: &mut impl Write, timeline: &[Moment]) -> io::Result<()> {
    let columns: [fn(&Moment) -> u64; 4] = [
        |moment| moment.at_ms,
        |moment| moment.rss,
        |moment| moment.heap,
        |moment| moment.own,
    ];
    for value in columns {
        let mut before = 0;
        for moment in timeline {
            varint::write_step(out, before, value(moment))?;
            before = value(moment);
        }
    }
    Ok(())
}

fn column<T>(out: &mut impl Write, rows: &[T], mut value: impl FnMut(&T) -> u64) -> io::Result<()> {
    rows.iter()
        .try_for_each(|row| varint::write(out, value(row)))
}

/// The frames and strings that the tree needs, numbered in the order of their first use.
struct Used {
    frames: Vec<u32>,
    frame_number: Vec<u32>,
    strings: Vec<StrId>,
    string_number: Vec<u32>,
}

impl Used {
    fn by(report: &Report, tree: &CallTree) -> Used {
        let most = tree
            .nodes
            .iter()
            .map(|node| node.frame.0 as usize + 1)
            .max();
        let mut used = Used {
            frames: Vec::new(),
            frame_number: vec![UNUSED; report.frames.len().max(most.unwrap_or(0))],
            strings: Vec::new(),
            string_number: vec![UNUSED; report.strings.len()],
        };
        for node in &tree.nodes {
            let old = node.frame.0;
            if used.frame_number[old as usize] == UNUSED {
                used.frame_number[old as usize] = number(used.frames.len());
                used.frames.push(old);
                let frame = report.frames.get(old as usize).copied();
                let Frame { function, file, .. } = frame.unwrap_or_default();
                used.string(function);
                used.string(file);
            }
        }
        used
    }

    fn string(&mut self, id: StrId) {
        // A handle of no string reads as the empty one everywhere, and is numbered like any other.
        if self.string_number.len() <= id.0 as usize {
            self.string_number.resize(id.0 as usize + 1, UNUSED);
        }
        if self.string_number[id.0 as usize] == UNUSED {
            self.string_number[id.0 as usize] = number(self.strings.len());
            self.strings.push(id);
        }
    }
}

fn number(length: usize) -> u32 {
    u32::try_from(length).expect("no more of them than 32-bit handles")
}

fn head<'a>(report: &'a Report, tree: &CallTree, origins: &'a Origins, used: &Used) -> Head<'a> {
    let pair = |tally: Tally| (tally.count, tally.bytes);
    let (about, totals, conditions) = (&report.about, &report.totals, &report.conditions);
    Head {
        producer: &about.producer,
        command_line: &about.command_line,
        pid: about.pid,
        start_ms: about.start_ms,
        end_ms: about.end_ms,
        events: about.events,
        threads: report.threads.iter().map(|t| u64::from(t.threads)).sum(),
        totals: Totals {
            allocated: pair(totals.allocated),
            freed: pair(totals.freed),
            live: pair(totals.live),
            high_water: pair(totals.high_water),
            high_water_ms: totals.high_water_ms,
        },
        by_allocator: totals
            .by_allocator
            .iter()
            .map(|&(allocator, tally)| (allocator.name(), pair(tally)))
            .collect(),
        conditions: Conditions {
            still_recording: conditions.still_recording,
            hooks: &conditions.hooks,
            lost_events: conditions.lost_events,
            stacks_cut: conditions.stacks_cut,
            stacks_incomplete: conditions.stacks_incomplete,
            unknown_frees: conditions.unknown_frees,
            log_given_up: conditions.log_given_up.as_deref(),
            notes: &conditions.notes,
            own_bytes: conditions.overhead.memory_bytes,
            collector_cpu_ns: conditions.overhead.collector_cpu_ns,
            log_bytes: conditions.overhead.log_bytes,
        },
        packages: origins
            .packages()
            .iter()
            .map(|package| (package.name.as_str(), package.kind as u8))
            .collect(),
        counts: Counts {
            strings: used.strings.len(),
            frames: used.frames.len(),
            nodes: tree.nodes.len(),
            own: tree.own.len(),
            moments: report.timeline.len(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::varint::tests::{read, read_step};
    use super::*;
    use crate::model::{Allocator, FrameId, Site, StackId, ThreadId};

    fn strings(bytes: &mut &[u8], count: u64) -> Vec<String> {
        let lengths: Vec<u64> = (0..count).map(|_| read(bytes)).collect();
        lengths
            .into_iter()
            .map(|length| {
                let (text, rest) = bytes.split_at(usize::try_from(length).unwrap());
                *bytes = rest;
                String::from_utf8(text.to_vec()).unwrap()
            })
            .collect()
    }

    #[test]
    fn the_columns_hold_the_report_and_nothing_else() {
        let mut report = Report::default();
        let unused = report.strings.intern("unused");
        for (function, line) in [("never", 1), ("root", 2), ("leaf", 3)] {
            let function = report.strings.intern(function);
            report.frames.push(Frame {
                function,
                file: StrId::EMPTY,
                line,
            });
        }
        report.frames[0].file = unused;
        let root = report.stacks.child(StackId::EMPTY, FrameId(1));
        let leaf = report.stacks.child(root, FrameId(2));
        for (stack, bytes) in [(leaf, 300), (root, 20), (StackId::EMPTY, 1)] {
            report.sites.push(Site {
                thread: ThreadId(0),
                stack,
                allocator: Allocator::Malloc,
                allocated: Tally {
                    count: 9,
                    bytes: 900,
                },
                high_water: Tally {
                    count: 5,
                    bytes: 500,
                },
                live: Tally { count: 3, bytes },
                temporary: Tally::default(),
                oldest_live_ms: (bytes == 300).then_some(7),
            });
        }
        for (at_ms, rss) in [(0, 4096), (10, 1024)] {
            let moment = Moment {
                at_ms,
                rss,
                heap: 5,
                own: 0,
            };
            report.timeline.push(moment);
        }

        let mut written = Vec::new();
        write(&report, &mut written).unwrap();
        let mut rest = written.as_slice();
        let length = usize::try_from(read(&mut rest)).unwrap();
        let head: serde_json::Value = serde_json::from_slice(&rest[..length]).unwrap();
        rest = &rest[length..];
        let count = |name: &str| head["counts"][name].as_u64().unwrap();
        let counts = ["strings", "frames", "nodes", "own", "moments"].map(count);
        assert_eq!(counts, [3, 2, 2, 3, 2]);
        assert_eq!(strings(&mut rest, 3), ["root", "", "leaf"]);
        let mut numbers =
            |count: usize| -> Vec<u64> { (0..count).map(|_| read(&mut rest)).collect() };
        assert_eq!(numbers(2), [0, 2], "functions");
        assert_eq!(numbers(2), [1, 1], "files");
        assert_eq!(numbers(2), [2, 3], "lines");
        numbers(2);
        assert_eq!(numbers(2), [0, 0], "closed");
        assert_eq!(numbers(2), [0, 1], "frames");
        assert_eq!(numbers(3), [0, 1, 1], "nodes with own sums");
        assert_eq!(numbers(3), [3, 3, 3], "live blocks");
        assert_eq!(numbers(3), [1, 20, 300], "live bytes");
        assert_eq!(
            numbers(12),
            [5, 5, 5, 500, 500, 500, 9, 9, 9, 900, 900, 900]
        );
        assert_eq!(numbers(3), [0, 0, 8], "oldest");
        let at = read_step(&mut rest, 0);
        assert_eq!(read_step(&mut rest, at), 10);
        let rss = read_step(&mut rest, 0);
        assert_eq!((rss, read_step(&mut rest, rss)), (4096, 1024));
    }
}
