//! The data of a report in the page, before compression; `report/page/js/decode.js` reads it.
//!
//! ```text
//! length, head              JSON: process, time, conditions, totals, threads, packages, what leaks, and the length of
//!                           each table
//! strings                   length of each; then their UTF-8 bytes, back to back
//! frames                    function of each by its plain name; by its full name; file of each; line of each; package
//! nodes, in preorder        frames closed before each (0: child of its predecessor); frame of each
//! rows: call sites by node  step from the node before; thread; allocator; context, 0 if none; live blocks;
//!                           bytes; high-water blocks; bytes; allocated blocks; bytes; temporary blocks; bytes; oldest
//!                           live block's milliseconds + 1, 0 if unknown
//! survivors by row          step from the row before; generation; blocks; bytes
//! intervals by row          step from the row before; slot of birth; slots to the free + 1, 0 if never; blocks; bytes
//! sizes                     signed step from the size before; allocations of it
//! timeline                  step from the moment before; RSS, heap, own bytes as signed steps
//! ```
//!
//! All numbers are LEB128 ([`varint`]). Only strings and frames that a node uses are written.

use std::io::{self, Write};

use super::contexts::UsedContexts;
use super::head::{Counts, Head, Source};
use super::known::KnownMemory;
use super::ranking::Ranking;
use super::rows::{self, Rows};
use super::used::Used;
use super::varint::column;
use super::{Page, varint};
use crate::model::{FrameId, Moment, StrId};
use crate::views::{CallTree, Origins};

/// Writes the data of `page`, and frees the memory that it needed.
pub(super) fn write(page: &Page<'_>, ranking: &Ranking, out: &mut impl Write) -> io::Result<()> {
    let report = page.report;
    let tree = CallTree::of(report);
    let origins = Origins::of(report);
    let used = Used::by(report, &tree);
    let rows = Rows::of(report, &tree);
    let contexts = UsedContexts::by(report, &rows);
    let survivors = rows::survivors(report, &rows);
    let intervals = rows::intervals(page, &rows);

    let counts = Counts {
        strings: used.strings.len(),
        frames: used.frames.len(),
        nodes: tree.nodes.len(),
        rows: rows.len(),
        survivors: survivors.len(),
        intervals: intervals.len(),
        sizes: report.totals.sizes.len(),
        moments: report.timeline.len(),
    };
    let ranked = ranking.numbered(report, &used);
    let known = KnownMemory::of(report, &used);
    let excerpts = page.sources.map(|files| files.excerpts(report, &origins));
    let excerpts = excerpts.unwrap_or_default();
    let excerpts = excerpts.iter().filter_map(|excerpt| {
        let frame = used.number_of(excerpt.frame)?;
        Some((frame, excerpt.first, &*excerpt.lines))
    });
    let source = Source {
        root: &report.about.source_root,
        url: &report.about.source_url,
        excerpts: excerpts.collect(),
    };
    let head = serde_json::to_vec(&Head::of(
        page, &origins, &contexts, ranked, known, source, counts,
    ))?;
    varint::write(out, head.len() as u64)?;
    out.write_all(&head)?;

    write_strings_and_frames(out, page, &used, &origins)?;
    write_nodes(out, &tree, &used)?;
    rows.write(report, &contexts, out)?;
    rows::write_survivors(out, &survivors)?;
    rows::write_intervals(out, &intervals)?;
    rows::write_sizes(out, report)?;
    write_timeline(out, &report.timeline)
}

fn write_strings_and_frames(
    out: &mut impl Write,
    page: &Page<'_>,
    used: &Used,
    origins: &Origins,
) -> io::Result<()> {
    let report = page.report;
    column(out, &used.strings, |&id| {
        report.strings.get(id).len() as u64
    })?;
    for &id in &used.strings {
        out.write_all(report.strings.get(id).as_bytes())?;
    }
    let frame = |&old: &u32| report.frames.get(old as usize).copied().unwrap_or_default();
    let string = |id: StrId| u64::from(used.string_number[id.0 as usize]);
    column(out, &used.frames, |old| string(frame(old).function))?;
    column(out, &used.frames, |&old| {
        let full = report.full_names.get(old as usize).copied();
        string(full.unwrap_or(frame(&old).function))
    })?;
    column(out, &used.frames, |old| string(frame(old).file))?;
    column(out, &used.frames, |old| u64::from(frame(old).line))?;
    column(out, &used.frames, |&old| {
        origins.index(FrameId(old)).map_or(0, u64::from)
    })
}

fn write_nodes(out: &mut impl Write, tree: &CallTree, used: &Used) -> io::Result<()> {
    let mut depth = 0;
    column(out, &tree.nodes, |node| {
        let closed = depth + 1 - node.depth;
        depth = node.depth;
        u64::from(closed)
    })?;
    column(out, &tree.nodes, |node| {
        u64::from(used.frame_number[node.frame.0 as usize])
    })
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

#[cfg(test)]
mod tests {
    use super::super::varint::tests::{read, read_step};
    use super::*;
    use crate::Report;
    use crate::model::{
        Allocator, Context, ContextId, Site, SizeCount, StackId, Survivor, Tally, ThreadId,
    };
    use crate::views::{Interval, Intervals};

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
            report.add_frame(function, "", line);
        }
        report.frames[0].file = unused;
        let root = report.stacks.child(StackId::EMPTY, FrameId(1));
        let leaf = report.stacks.child(root, FrameId(2));
        let labels = vec![("route".to_owned(), "GET /a".to_owned())];
        report.contexts = vec![Context::default(); 3];
        report.contexts[2].labels = labels;
        // The second of the contexts has no labels.
        for (stack, bytes, context) in [(leaf, 300, 2), (root, 20, 1), (StackId::EMPTY, 1, 0)] {
            report.sites.push(Site {
                context: ContextId(context),
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
                temporary: Tally { count: 2, bytes: 8 },
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
        let blocks = Tally {
            count: 6,
            bytes: 60,
        };
        report.survivors.starts_ms = vec![0, 5];
        report.survivors.list = vec![Survivor {
            site: 0,
            generation: 1,
            live: blocks,
        }];
        let interval = |site, born, freed| Interval {
            site,
            born,
            freed,
            blocks,
        };
        let intervals = Intervals {
            starts_ms: vec![0, 3, 6],
            rows: vec![
                interval(0, 1, Some(2)),
                interval(2, 0, None),
                interval(1, 3, None),
                interval(1, 2, Some(1)),
            ],
        };
        let sizes = [(16, 4), (64, 5)].map(|(size, count)| SizeCount { size, count });
        report.totals.sizes = sizes.to_vec();
        let page = Page {
            report: &report,
            intervals: Some(&intervals),
            has_log: true,
            sources: None,
        };
        write(&page, &Ranking::default(), &mut written).unwrap();
        let mut rest = written.as_slice();
        let length = usize::try_from(read(&mut rest)).unwrap();
        let head: serde_json::Value = serde_json::from_slice(&rest[..length]).unwrap();
        rest = &rest[length..];
        let count = |name: &str| head["counts"][name].as_u64().unwrap();
        let counts = ["strings", "frames", "nodes", "rows", "moments"].map(count);
        assert_eq!(counts, [3, 2, 2, 3, 2]);
        assert_eq!(
            ["survivors", "intervals"].map(count),
            [1, 2],
            "possible ones"
        );
        assert_eq!(head["contexts"], serde_json::json!([[["route", "GET /a"]]]));
        assert_eq!(strings(&mut rest, 3), ["root", "", "leaf"]);
        let mut numbers =
            |count: usize| -> Vec<u64> { (0..count).map(|_| read(&mut rest)).collect() };
        assert_eq!(numbers(2), [0, 2], "functions");
        assert_eq!(numbers(2), [0, 2], "full names");
        assert_eq!(numbers(2), [1, 1], "files");
        assert_eq!(numbers(2), [2, 3], "lines");
        numbers(2);
        assert_eq!(numbers(2), [0, 0], "closed");
        assert_eq!(numbers(2), [0, 1], "frames");
        assert_eq!(numbers(3), [0, 1, 1], "nodes of call sites");
        assert_eq!(numbers(6), [0, 0, 0, 6, 6, 6], "threads and allocators");
        assert_eq!(numbers(3), [0, 0, 1], "contexts");
        assert_eq!(numbers(3), [3, 3, 3], "live blocks");
        assert_eq!(numbers(3), [1, 20, 300], "live bytes");
        assert_eq!(
            numbers(12),
            [5, 5, 5, 500, 500, 500, 9, 9, 9, 900, 900, 900]
        );
        assert_eq!(numbers(6), [2, 2, 2, 8, 8, 8], "temporary");
        assert_eq!(numbers(3), [0, 0, 8], "oldest");
        assert_eq!(numbers(4), [2, 1, 6, 60], "survivors");
        assert_eq!(numbers(10), [0, 2, 0, 1, 0, 2, 6, 6, 60, 60], "intervals");
        assert_eq!(numbers(4), [32, 96, 4, 5], "sizes");
        let at = read_step(&mut rest, 0);
        assert_eq!(read_step(&mut rest, at), 10);
        let rss = read_step(&mut rest, 0);
        assert_eq!((rss, read_step(&mut rest, rss)), (4096, 1024));
    }
}
