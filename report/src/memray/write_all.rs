//! Writes the all-allocations body: every event, in order (capture format, section 3).

use std::io::{self, Write};

use super::codec::{Running, pack_address, put_signed, put_varint};
use super::header::{ALL_ALLOCATIONS, Header, Version};
use super::recent::{MISS, Recent};
use super::writer::{
    CodeObjects, Sink, put_context, put_context_switch, put_threads, thread_numbers,
};
use super::{CLOSING_ADDRESS, extension, tag};
use crate::model::{Allocator, ContextId, Event, Report, StackId, Thread, ThreadId};

/// Writes `report` and its `events` as a capture that memray and heapray read.
///
/// It streams: memory is 12 bytes per call stack and a few blocks of 64 KiB, for any number of events. If the last event is
/// not an [`Event::Memory`], one is added, since otherwise memray's temporal views would miss the events after the last one.
///
/// # Errors
/// An error of `events` or `out`, or [`io::ErrorKind::InvalidInput`] for an event with a thread or stack that the report
/// does not have, or with an unsuitable allocator.
pub fn write_all(
    report: &Report,
    events: impl Iterator<Item = io::Result<Event>>,
    version: Version,
    out: impl Write,
) -> io::Result<()> {
    write_all_apart(report, &[], events, version, out)
}

/// Does what [`write_all`] does for events with additional threads: after the report's threads come those in `apart`, whose
/// [`threads`](Thread::threads) is 0. memray uses the numbers of threads to find temporary allocations, so threads that are
/// one in the report are kept apart here.
///
/// # Errors
/// The same as for [`write_all`].
pub fn write_all_apart(
    report: &Report,
    apart: &[Thread],
    events: impl Iterator<Item = io::Result<Event>>,
    version: Version,
    out: impl Write,
) -> io::Result<()> {
    let mut sink = Sink::new(out);
    Header::of(&report.about, version, ALL_ALLOCATIONS, report.frames.len())
        .write(&mut sink.buffer);
    let tids = thread_numbers(report, apart);
    put_threads(&mut sink.buffer, report, apart, &tids);
    let codes = CodeObjects::write(report, &mut sink)?;
    let tables = sink.position();
    let nodes = nodes(report, &codes)?;
    let mut body = Body {
        sink,
        current: u32::MAX,
        context: ContextId::NONE,
        stacks: vec![0; tids.len()],
        tids,
        nodes,
        pushes: Vec::new(),
        recent: Recent::default(),
        address: Running::default(),
        last_memory: None,
        ends_with_memory: false,
    };
    for event in events {
        body.event(event?)?;
        body.sink.pack_if_full()?;
    }
    body.close(report);
    extension::finish(report, apart, &codes.ids, tables, body.sink)
}

/// Stack in the form that a walk through the call tree needs, in one cache line with its neighbours.
#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    depth: u32,
    code: u32,
}

fn nodes(report: &Report, codes: &CodeObjects) -> io::Result<Vec<Node>> {
    let mut nodes = Vec::with_capacity(report.stacks.len() + 1);
    nodes.push(Node {
        parent: 0,
        depth: 0,
        code: 0,
    });
    for (_, node) in report.stacks.iter() {
        let code = codes.ids.get(node.frame.0 as usize).copied();
        nodes.push(Node {
            parent: node.parent.0,
            depth: nodes[node.parent.0 as usize].depth + 1,
            code: code.ok_or_else(|| unknown("frame", node.frame.0))?,
        });
    }
    Ok(nodes)
}

#[cold]
fn unknown(what: &str, number: u32) -> io::Error {
    invalid(format!("the report has no {what} {number}"))
}

#[cold]
fn invalid(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

/// State that memray's reader will have at each point.
struct Body<W: Write> {
    sink: Sink<W>,
    /// The thread of the next records.
    current: u32,
    /// The context of the next allocations.
    context: ContextId,
    /// The stack of each thread.
    stacks: Vec<u32>,
    tids: Vec<u64>,
    nodes: Vec<Node>,
    /// Code objects of frames to push, leaf first.
    pushes: Vec<u32>,
    recent: Recent,
    address: Running,
    /// The last memory record: milliseconds and resident bytes.
    last_memory: Option<(u64, u64)>,
    ends_with_memory: bool,
}

impl<W: Write> Body<W> {
    #[inline]
    fn event(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Allocation {
                thread,
                context,
                allocator,
                address,
                size,
                stack,
            } => {
                if allocator.is_free() {
                    return Err(invalid(format!("{} does not allocate", allocator.name())));
                }
                if self.context != context {
                    put_context(&mut self.sink.buffer, context);
                    self.context = context;
                    self.current = u32::MAX;
                }
                self.switch_to(thread)?;
                self.call(thread, stack)?;
                self.record(allocator, address);
                put_varint(&mut self.sink.buffer, size);
                self.ends_with_memory = false;
            }
            Event::Deallocation {
                thread,
                allocator,
                address,
                size,
            } => {
                if !allocator.is_free() {
                    return Err(invalid(format!("{} does not free", allocator.name())));
                }
                self.switch_to(thread)?;
                self.record(allocator, address);
                if allocator == Allocator::Munmap {
                    put_varint(&mut self.sink.buffer, size);
                }
                self.ends_with_memory = false;
            }
            Event::Memory { at_ms, rss } => self.memory(at_ms, rss),
        }
        Ok(())
    }

    #[inline]
    fn switch_to(&mut self, thread: ThreadId) -> io::Result<()> {
        if self.current != thread.0 {
            let tid = *self
                .tids
                .get(thread.0 as usize)
                .ok_or_else(|| unknown("thread", thread.0))?;
            put_context_switch(&mut self.sink.buffer, tid);
            self.current = thread.0;
        }
        Ok(())
    }

    /// Writes the pops and pushes from the thread's stack to `stack`.
    #[inline]
    fn call(&mut self, thread: ThreadId, stack: StackId) -> io::Result<()> {
        let held = &mut self.stacks[thread.0 as usize];
        if *held == stack.0 {
            return Ok(());
        }
        let (mut from, mut to) = (*held, stack.0);
        let nodes = &self.nodes;
        let node = |at: u32| nodes[at as usize];
        if to as usize >= nodes.len() {
            return Err(unknown("call stack", to));
        }
        *held = to;
        self.pushes.clear();
        let mut pops = 0usize;
        while node(from).depth > node(to).depth {
            from = node(from).parent;
            pops += 1;
        }
        while node(to).depth > node(from).depth {
            self.pushes.push(node(to).code);
            to = node(to).parent;
        }
        while from != to {
            self.pushes.push(node(to).code);
            (from, to) = (node(from).parent, node(to).parent);
            pops += 1;
        }
        let out = &mut self.sink.buffer;
        while pops > 0 {
            let n = pops.min(16);
            out.push(tag::FRAME_POP | (n - 1) as u8);
            pops -= n;
        }
        for &code in self.pushes.iter().rev() {
            out.push(tag::FRAME_PUSH | 1); // an entry frame
            put_varint(out, u64::from(code));
            out.push(0); // instruction offset
        }
        Ok(())
    }

    /// Writes the part of an allocation record that all allocators have.
    #[inline]
    fn record(&mut self, allocator: Allocator, address: u64) {
        let packed = pack_address(address);
        let index = self.recent.find_or_add(packed);
        let out = &mut self.sink.buffer;
        let id = allocator.id();
        out.push(tag::ALLOCATION | index << 3 | if id < 8 { id } else { 0 });
        if index == MISS {
            put_signed(out, self.address.difference_to(packed));
        }
        if id >= 8 {
            out.push(id);
        }
    }

    fn memory(&mut self, at_ms: u64, rss: u64) {
        let out = &mut self.sink.buffer;
        out.push(tag::MEMORY_RECORD);
        put_varint(out, rss);
        put_varint(out, at_ms);
        self.last_memory = Some((at_ms, rss));
        self.ends_with_memory = true;
    }

    /// Writes the records that memray needs at the end of a capture to see all of it.
    fn close(&mut self, report: &Report) {
        if !self.ends_with_memory {
            let about = &report.about;
            let end = about.end_ms.saturating_sub(about.start_ms).max(0) as u64;
            let rss = report.timeline.last().map_or(0, |moment| moment.rss);
            let (at_ms, rss) = self
                .last_memory
                .map_or((end, rss), |(at, last)| (at.max(end), last));
            self.memory(at_ms, rss);
        }
        self.record(Allocator::Free, CLOSING_ADDRESS);
        self.sink.buffer.push(tag::TRAILER);
    }
}
