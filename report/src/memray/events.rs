//! Reads the all-allocations body: the events of a capture, in order (capture format, section 3).

use std::io::{Read, Seek};

use super::codec::{Running, unpack_address};
use super::error::ReadError;
use super::graft::SameNames;
use super::header::{ALL_ALLOCATIONS, Header};
use super::ledger::Sink;
use super::limit::{Budget, MemoryLimit, TooLarge, in_list};
use super::native::Native;
use super::recent::{MISS, Recent};
use super::shortcut::Shortcut;
use super::source::{Decoded, Source, Stop, damaged};
use super::tables::Tables;
use super::{CLOSING_ADDRESS, context_number, tag};
use crate::model::{Allocator, ContextId, Event, StackId, ThreadId};

/// Opens a capture to read its events. Their handles are those of the report that [`read`](super::read) makes of the same
/// bytes.
///
/// # Errors
/// The same as of [`read`](super::read), and [`ReadError::NoEvents`] for an aggregated capture.
pub fn events<R: Read>(input: R) -> Result<Events<R>, ReadError> {
    events_within(input, MemoryLimit::default())
}

/// Does what [`events`] does, within `limit`.
///
/// # Errors
/// The same as of [`events`].
pub fn events_within<R: Read>(input: R, limit: MemoryLimit) -> Result<Events<R>, ReadError> {
    let mut source = Source::new(input).map_err(ReadError::Io)?;
    let mut budget = Budget::new(limit);
    let header = Header::read(&mut source, &mut budget)?;
    if header.format != ALL_ALLOCATIONS {
        return Err(ReadError::NoEvents);
    }
    Ok(Events::new(source, header, budget))
}

/// Opens a capture to read its events, from the start of an input that can seek. Their handles are those of the report that
/// [`read_file`](super::read_file) makes of the same bytes.
///
/// # Errors
/// The same as of [`events`], and an error if the input cannot be set to its start.
pub fn events_of_file<R: Read + Seek>(input: R) -> Result<Events<R>, ReadError> {
    events_of_file_within(input, MemoryLimit::default())
}

/// Does what [`events_of_file`] does, within `limit`.
///
/// # Errors
/// The same as of [`events_of_file`].
pub fn events_of_file_within<R: Read + Seek>(
    input: R,
    limit: MemoryLimit,
) -> Result<Events<R>, ReadError> {
    events_of_file_as(input, limit, SameNames::default())
}

/// Does what [`events_of_file_within`] does, for a report of [`read_file_as`](super::read_file_as) with the same `same_names`.
///
/// # Errors
/// The same as of [`events`].
pub fn events_of_file_as<R: Read + Seek>(
    mut input: R,
    limit: MemoryLimit,
    same_names: SameNames,
) -> Result<Events<R>, ReadError> {
    let shortcut = Shortcut::take(&mut input, limit, same_names);
    input.rewind().map_err(ReadError::Io)?;
    let mut events = events_within(input, limit)?;
    if let Some(Shortcut { tables, .. }) = shortcut
        && events.tables.expect(tables).is_err()
    {
        return Err(TooLarge { limit }.into());
    }
    Ok(events)
}

/// Events of a capture. They end where the capture does, or where it cannot be read further: see [`Events::problem`]. They
/// fail only if the input fails.
#[derive(Debug)]
pub struct Events<R: Read> {
    pub(super) source: Source<R>,
    pub(super) header: Header,
    pub(super) tables: Tables,
    native: Native,
    recent: Recent,
    address: Running,
    current: Option<ThreadId>,
    context: ContextId,
    threads: Vec<CallStack>,
    /// The kind of the record that is being read, and its position.
    record: &'static str,
    record_at: u64,
    /// Position at which memory was last checked.
    weighed_at: u64,
    ended: bool,
    pub(super) problem: Option<String>,
}

/// Call stack of a thread.
#[derive(Debug, Default)]
struct CallStack {
    /// The call stack at each depth, so that frames are removed without a walk up the tree.
    path: Vec<StackId>,
    /// Number of outermost frames that are not shown: the shown stack begins below them.
    hide: usize,
}

impl CallStack {
    /// Returns the stack that is shown: the hidden frames if there are no others.
    #[inline]
    fn stack(&self) -> StackId {
        self.path.last().copied().unwrap_or(StackId::EMPTY)
    }
}

/// Largest depth of a stack: the largest thread stacks of systems have room for about as many frames.
const DEEPEST: usize = 1 << 20;

impl<R: Read> Iterator for Events<R> {
    type Item = Result<Event, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut next = Next(None);
        match self.step_to(&mut next) {
            Ok(_) => next.0.map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

/// Sink for one event.
struct Next(Option<Event>);

impl Sink for Next {
    #[inline(always)]
    fn allocation(
        &mut self,
        thread: ThreadId,
        context: ContextId,
        allocator: Allocator,
        address: u64,
        size: u64,
        stack: StackId,
    ) {
        self.0 = Some(Event::Allocation {
            thread,
            context,
            allocator,
            address,
            size,
            stack,
        });
    }

    #[inline(always)]
    fn deallocation(&mut self, thread: ThreadId, allocator: Allocator, address: u64, size: u64) {
        self.0 = Some(Event::Deallocation {
            thread,
            allocator,
            address,
            size,
        });
    }

    #[inline(always)]
    fn reading(&mut self, at_ms: u64, rss: u64) {
        self.0 = Some(Event::Memory { at_ms, rss });
    }

    /// The memory of what is made of an event is counted elsewhere.
    fn memory(&self) -> u64 {
        0
    }
}

impl<R: Read> Events<R> {
    pub(super) fn new(source: Source<R>, header: Header, budget: Budget) -> Self {
        Events {
            tables: Tables::new(header.python_version, budget),
            source,
            header,
            native: Native::default(),
            recent: Recent::default(),
            address: Running::default(),
            current: None,
            context: ContextId::NONE,
            threads: Vec::new(),
            record: "record",
            record_at: 0,
            weighed_at: 0,
            ended: false,
            problem: None,
        }
    }

    /// Returns why the events ended before the end of the capture, if they did.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Passes all remaining events to `sink`.
    pub(super) fn drain(&mut self, sink: &mut impl Sink) -> Result<(), ReadError> {
        while self.step_to(sink)? {}
        Ok(())
    }

    /// Passes the next event to `sink`. Returns false at the end.
    #[inline]
    fn step_to(&mut self, sink: &mut impl Sink) -> Result<bool, ReadError> {
        if self.ended {
            return Ok(false);
        }
        match self.step(sink) {
            Ok(true) => return Ok(true),
            Ok(false) => self.ended = true,
            Err(stop) => {
                self.ended = true;
                if let Some(error) = self.stopped(stop) {
                    return Err(error);
                }
            }
        }
        Ok(false)
    }

    #[cold]
    fn stopped(&mut self, stop: Stop) -> Option<ReadError> {
        let (record, at) = (self.record, self.record_at);
        self.problem = Some(match stop {
            Stop::Io(error) => return Some(ReadError::Io(error)),
            Stop::TooLarge(error) => return Some(error.into()),
            Stop::Cut => format!(
                "the capture is cut short inside of the {record} at byte {at}: the rest is missing"
            ),
            Stop::Damaged(what) => format!(
                "the capture is damaged at byte {at}, in the {record}: {what}; the rest is ignored"
            ),
        });
        None
    }

    /// Passes the next event to `sink`. Returns false at the end of the capture.
    #[inline]
    fn step(&mut self, sink: &mut impl Sink) -> Decoded<bool> {
        loop {
            if self.source.buffer_at() != self.weighed_at {
                self.weighed_at = self.source.buffer_at();
                self.tables.budget.fits(sink.memory())?;
            }
            self.record_at = self.source.position();
            self.record = "record";
            let Some(tag) = self.source.peek()? else {
                self.problem = Some(format!(
                    "the capture ends at byte {} without its end mark: events may be missing",
                    self.record_at
                ));
                return Ok(false);
            };
            self.source.byte()?;
            if tag & tag::ALLOCATION != 0 {
                self.record = "allocation";
                if self.allocation(tag, sink)? {
                    return Ok(true);
                }
            } else if tag & tag::FRAME_PUSH != 0 {
                self.record = "frame push";
                self.push()?;
            } else if tag & tag::OBJECT_RECORD != 0 {
                self.record = "object record";
                self.object(tag)?;
            } else if tag & tag::FRAME_POP != 0 {
                self.record = "frame pop";
                self.pop(usize::from(tag & 15) + 1)?;
            } else if tag == tag::MEMORY_RECORD {
                self.record = "memory record";
                let rss = self.source.varint()?;
                let at_ms = self.source.varint()?;
                sink.reading(at_ms, rss);
                return Ok(true);
            } else if tag == tag::TRAILER {
                return Ok(false);
            } else {
                self.definition(tag)?;
            }
        }
    }

    fn definition(&mut self, tag: u8) -> Decoded<()> {
        match tag {
            tag::CONTEXT_SWITCH => {
                self.record = "context switch";
                let tid = self.source.u64()?;
                if self.tables.ours
                    && let Some(context) = context_number(tid)
                {
                    self.context = context;
                    return Ok(());
                }
                self.current = self.tables.thread(tid)?;
                while self.threads.len() < self.tables.threads.len() {
                    let hide = match self.header.skipped_frames {
                        frames if tid == self.header.main_tid => frames,
                        _ => 0,
                    };
                    self.threads.push(CallStack {
                        hide: usize::try_from(hide).unwrap_or(usize::MAX),
                        ..CallStack::default()
                    });
                }
                Ok(())
            }
            tag::THREAD_RECORD => {
                self.record = "thread record";
                self.tables.read_thread_name(self.current, &mut self.source)
            }
            tag::CODE_OBJECT => {
                self.record = "code object";
                self.tables.read_code_object(&mut self.source)
            }
            tag::NATIVE_TRACE_INDEX => {
                self.record = "native frame";
                self.native.read_node(&mut self.source, &mut self.tables)
            }
            tag::MEMORY_MAP_START => self.native.start_generation(&mut self.tables),
            tag::SEGMENT_HEADER => {
                self.record = "image";
                self.native.read_image(&mut self.source, &mut self.tables)
            }
            _ => damaged(format!("no record begins with {tag:#04x}")),
        }
    }

    /// Reads a frame, and the frames that follow directly.
    #[inline]
    fn push(&mut self) -> Decoded<()> {
        let Some(thread) = self.current else {
            return damaged("a frame before any thread");
        };
        let calls = &mut self.threads[thread.0 as usize];
        let mut stack = calls.stack();
        loop {
            let code = self.source.varint()?;
            let offset = self.source.signed()?;
            if calls.path.len() >= DEEPEST {
                return damaged("a call stack without an end");
            }
            if calls.path.len() == calls.hide {
                stack = StackId::EMPTY;
            }
            stack = self.tables.call(stack, code, offset)?;
            if calls.path.len() == calls.path.capacity() {
                let more = calls.path.len().max(4) as u64;
                self.tables.budget.take(more * in_list::<StackId>())?;
            }
            calls.path.push(stack);
            match self.source.at_hand() {
                Some(next) if next & !(tag::FRAME_PUSH - 1) == tag::FRAME_PUSH => {
                    self.record_at = self.source.position();
                    self.source.byte()?;
                }
                _ => return Ok(()),
            }
        }
    }

    #[inline]
    fn pop(&mut self, frames: usize) -> Decoded<()> {
        let Some(thread) = self.current else {
            return damaged("a frame before any thread");
        };
        let path = &mut self.threads[thread.0 as usize].path;
        match path.len().checked_sub(frames) {
            Some(left) => path.truncate(left),
            None => return damaged("more frames removed than there are"),
        }
        Ok(())
    }

    /// Reads an address as it is stored: without its low three bits.
    #[inline]
    fn packed_address(&mut self, index: u8) -> Decoded<u64> {
        if index != MISS {
            return Ok(self.recent.get(index));
        }
        let packed = self.source.delta(&mut self.address)?;
        self.recent.add(packed);
        Ok(packed)
    }

    /// Reads an allocation. Returns whether there was one: a block that the last record frees is not an allocation.
    #[inline]
    fn allocation(&mut self, tag: u8, sink: &mut impl Sink) -> Decoded<bool> {
        let packed = self.packed_address(tag >> 3 & 15)?;
        let address = if self.tables.ours {
            unpack_address(packed)
        } else {
            packed << 3
        };
        let id = match tag & 7 {
            0 => self.source.byte()?,
            id => id,
        };
        let Some(allocator) = Allocator::from_id(id) else {
            return damaged(format!("allocator {id}"));
        };
        let simple_free = matches!(allocator, Allocator::Free | Allocator::PymallocFree);
        let (mut native, mut size) = (0, 0);
        if !simple_free {
            if self.header.native_traces {
                native = self.source.delta(&mut self.native.last_node)?;
            }
            size = self.source.varint()?;
        } else if address == CLOSING_ADDRESS
            && matches!(self.source.peek()?, None | Some(tag::TRAILER))
        {
            return Ok(false);
        }
        let Some(thread) = self.current else {
            return damaged("an allocation before any thread");
        };
        if allocator.is_free() {
            sink.deallocation(thread, allocator, address, size);
            return Ok(true);
        }
        let mut stack = self.threads[thread.0 as usize].stack();
        if stack == StackId::EMPTY && native != 0 {
            let generation = self.native.generation();
            stack = self.native.stack(native, generation, &mut self.tables)?;
        }
        sink.allocation(thread, self.context, allocator, address, size, stack);
        Ok(true)
    }

    /// Reads a Python object's creation or deletion. It is not used here, but it may change the meaning of later records.
    fn object(&mut self, tag: u8) -> Decoded<()> {
        self.packed_address(tag >> 1 & 15)?;
        if self.header.native_traces && tag & 1 == 1 {
            self.source.delta(&mut self.native.last_node)?;
        }
        Ok(())
    }
}
