//! Writes the aggregated body: sums by call stack (capture format, section 4).

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use super::codec::{put_signed, put_varint};
use super::header::{AGGREGATED, Header, Version};
use super::writer::{CodeObjects, Sink, put_threads, thread_numbers};
use super::{extension, tag};
use crate::model::{Allocator, Report, StackId, Tally, ThreadId};

/// Writes the sums of `report` as a capture that memray and heapray read.
///
/// memray's merged views count every row after the first of a stack as one block, whatever it contains. So each stack gets
/// one row: allocators are joined under the one with most bytes, and each thread that shares a stack with another thread
/// gets a root frame, `thread <name>`. heapray reads its own rows from the extension.
///
/// # Errors
/// An error of `out`, or [`io::ErrorKind::InvalidInput`] if the report's handles do not fit together.
pub fn write_aggregated(report: &Report, version: Version, out: impl Write) -> io::Result<()> {
    let rows = rows(report)?;
    let apart = threads_that_share(report, &rows);
    let mut sink = Sink::new(out);
    Header::of(&report.about, version, AGGREGATED, report.frames.len()).write(&mut sink.buffer);
    put_snapshots(report, &mut sink)?;
    let tids = thread_numbers(report, &[]);
    put_threads(&mut sink.buffer, report, &[], &tids);
    let mut codes = CodeObjects::write(report, &mut sink)?;
    let roots = put_roots(report, &apart, &mut codes, &mut sink);
    let tables = sink.position();
    for frame in 0..u64::from(codes.count) {
        sink.buffer.push(tag::PYTHON_FRAME_INDEX);
        put_varint(&mut sink.buffer, frame);
        put_varint(&mut sink.buffer, frame + 1);
        put_signed(&mut sink.buffer, 0);
        sink.buffer.push(1); // an entry frame
        sink.pack_if_full()?;
    }
    let mut tree = Tree::new(report, &codes)?;
    for (&(stack, thread), row) in &rows {
        if row.high_water.count == 0 && row.live.count == 0 {
            continue;
        }
        let root = roots.get(&thread).copied();
        let node = tree.put(stack, root, &mut sink.buffer);
        row.put(tids[thread.0 as usize], node, &mut sink.buffer);
        sink.pack_if_full()?;
    }
    sink.buffer.push(tag::AGGREGATED_TRAILER);
    extension::finish(report, &[], &codes.ids, tables, sink)
}

/// Row of one thread and one stack.
#[derive(Debug, Clone, Copy)]
struct Row {
    allocator: Allocator,
    /// Bytes of `allocator`'s site.
    most: u64,
    high_water: Tally,
    live: Tally,
}

impl Row {
    fn put(&self, tid: u64, node: u64, out: &mut Vec<u8>) {
        out.push(tag::AGGREGATED_ALLOCATION);
        let fields = [
            tid,
            u64::from(self.allocator.id()), // a byte and seven of padding
            0,                              // no native stack
            node,
            0, // nor a generation of loaded images
            self.high_water.count,
            self.live.count,
            self.high_water.bytes,
            self.live.bytes,
        ];
        for field in fields {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }
}

type Rows = BTreeMap<(StackId, ThreadId), Row>;

fn rows(report: &Report) -> io::Result<Rows> {
    let mut rows = Rows::new();
    for site in &report.sites {
        let known = (site.stack.0 as usize) <= report.stacks.len()
            && (site.thread.0 as usize) < report.threads.len();
        if !known || site.allocator.is_free() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a call site does not fit its report",
            ));
        }
        let bytes = site.high_water.bytes.max(site.live.bytes);
        let row = rows.entry((site.stack, site.thread)).or_insert(Row {
            allocator: site.allocator,
            most: bytes,
            high_water: Tally::default(),
            live: Tally::default(),
        });
        if bytes > row.most {
            (row.allocator, row.most) = (site.allocator, bytes);
        }
        row.high_water += site.high_water;
        row.live += site.live;
    }
    Ok(rows)
}

/// Returns, for each thread, whether one of its rows has a stack that another thread has too.
fn threads_that_share(report: &Report, rows: &Rows) -> Vec<bool> {
    let mut shares = vec![false; report.threads.len()];
    let mut last: Option<(StackId, ThreadId)> = None;
    for (&(stack, thread), row) in rows {
        if row.high_water.count == 0 && row.live.count == 0 {
            continue;
        }
        if let Some((last_stack, last_thread)) = last
            && last_stack == stack
        {
            shares[thread.0 as usize] = true;
            shares[last_thread.0 as usize] = true;
        }
        last = Some((stack, thread));
    }
    shares
}

/// Writes a root frame for each thread that needs one. Returns its index by thread.
fn put_roots<W: Write>(
    report: &Report,
    apart: &[bool],
    codes: &mut CodeObjects,
    sink: &mut Sink<W>,
) -> HashMap<ThreadId, u32> {
    let mut roots = HashMap::new();
    for ((thread, id), _) in report
        .threads
        .iter()
        .zip(0..)
        .zip(apart)
        .filter(|(_, apart)| **apart)
    {
        let name = match report.strings.get(thread.name) {
            "" => format!("thread {}", thread.tid),
            name => format!("thread {name}"),
        };
        let code = codes.add(&mut sink.buffer, &name, "", 0);
        roots.insert(ThreadId(id), code - 1);
    }
    roots
}

fn put_snapshots<W: Write>(report: &Report, sink: &mut Sink<W>) -> io::Result<()> {
    for moment in &report.timeline {
        sink.buffer.push(tag::MEMORY_SNAPSHOT);
        let at = (report.about.start_ms as u64).wrapping_add(moment.at_ms);
        for field in [at, moment.rss, moment.heap] {
            sink.buffer.extend_from_slice(&field.to_le_bytes());
        }
        sink.pack_if_full()?;
    }
    Ok(())
}

/// Call tree as far as it was written.
struct Tree<'a> {
    report: &'a Report,
    codes: &'a CodeObjects,
    /// Number in the file of each stack's node, if it has one below the plain root.
    plain: Vec<u64>,
    /// The same below the thread roots.
    rooted: HashMap<(u32, StackId), u64>,
    /// Two frames with one code object would be one node to memray, so nodes are keyed by code.
    by_code: HashMap<(u64, u32), u64>,
    written: u64,
    path: Vec<(StackId, u32)>,
}

impl<'a> Tree<'a> {
    fn new(report: &'a Report, codes: &'a CodeObjects) -> io::Result<Self> {
        for (_, node) in report.stacks.iter() {
            if node.frame.0 as usize >= codes.ids.len() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a call stack has a frame that its report does not have",
                ));
            }
        }
        Ok(Tree {
            report,
            codes,
            plain: vec![0; report.stacks.len() + 1],
            rooted: HashMap::new(),
            by_code: HashMap::new(),
            written: 0,
            path: Vec::new(),
        })
    }

    /// Writes the missing nodes of `stack`, and returns the leaf's number.
    fn put(&mut self, stack: StackId, root: Option<u32>, out: &mut Vec<u8>) -> u64 {
        self.path.clear();
        let mut at = stack;
        let mut node = loop {
            let known = match root {
                None => self.plain[at.0 as usize],
                Some(root) => self.rooted.get(&(root, at)).copied().unwrap_or(0),
            };
            if known != 0 {
                break known;
            }
            let Some(step) = self.report.stacks.node(at) else {
                break match root {
                    None => 0,
                    Some(root) => {
                        let node = self.child(0, root, out);
                        self.rooted.insert((root, StackId::EMPTY), node);
                        node
                    }
                };
            };
            let frame = self.codes.ids[step.frame.0 as usize] - 1;
            self.path.push((at, frame));
            at = step.parent;
        };
        while let Some((at, frame)) = self.path.pop() {
            node = self.child(node, frame, out);
            match root {
                None => self.plain[at.0 as usize] = node,
                Some(root) => {
                    self.rooted.insert((root, at), node);
                }
            }
        }
        node
    }

    fn child(&mut self, parent: u64, frame: u32, out: &mut Vec<u8>) -> u64 {
        let written = &mut self.written;
        *self.by_code.entry((parent, frame)).or_insert_with(|| {
            out.push(tag::PYTHON_TRACE_INDEX);
            put_varint(out, u64::from(frame));
            put_varint(out, parent);
            *written += 1;
            *written
        })
    }
}
