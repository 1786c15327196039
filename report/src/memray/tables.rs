//! Definitions in a capture: strings, frames, the call tree, threads. Both readers fill these tables.

use std::collections::HashMap;
use std::io::Read;

use super::calls::Calls;
use super::codec::Running;
use super::limit::{Budget, in_list, in_map};
use super::source::{Decoded, LONGEST, Source, damaged};
use super::{PRODUCER_THREAD, calls, line_table, names};
use crate::hash::FastMap;
use crate::model::{
    Frame, FrameId, Place, Report, StackId, StackNode, Stacks, StrId, Strings, Thread, ThreadId,
};
use std::sync::Arc;

/// Larger than any capture's number; a capture with more is damaged.
pub(super) const MOST_STACKS: usize = 1 << 26;
const MOST_THREADS: usize = 1 << 24;

/// Largest memory of each of these, not counting the bytes of a text: here, in the index, and in other tables with its
/// number.
const STRING: u64 = in_list::<Arc<str>>() + in_map::<(Arc<str>, StrId)>() + 32;
const FRAME: u64 = in_list::<(Frame, Place)>() + in_map::<(Frame, FrameId)>();
const PLACE: u64 = in_map::<((u64, u64), FrameId)>();
const CODE_OBJECT: u64 = in_map::<(u64, CodeObject)>();
const STACK: u64 = in_list::<StackNode>() + in_map::<(u64, StackId)>() + calls::A_STACK;
/// Includes the call stack and the last allocations that the events' reader and the ledger keep of each thread.
const THREAD: u64 = in_list::<Thread>() + in_map::<(u64, ThreadId)>() + 256;

#[derive(Debug)]
struct CodeObject {
    function: StrId,
    file: StrId,
    first_line: i32,
    line_table: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) budget: Budget,
    python_version: i32,
    /// Set if heapray wrote this capture, so that its special names and addresses can be decoded.
    pub(super) ours: bool,
    pub(super) producer: Option<String>,
    pub(super) strings: Strings,
    pub(super) frames: Vec<Frame>,
    pub(super) stacks: Stacks,
    pub(super) threads: Vec<Thread>,
    last_line: Running,
    code_objects: HashMap<u64, CodeObject>,
    frame_ids: HashMap<Frame, FrameId>,
    /// The frame of each code object that counts as another one's.
    joined: FastMap<u64, FrameId>,
    /// Frames by code object and instruction offset.
    places: FastMap<(u64, u64), FrameId>,
    thread_ids: FastMap<u64, ThreadId>,
    calls: Calls,
    most_stacks: usize,
    most_threads: usize,
}

impl Tables {
    pub(super) fn new(python_version: i32, budget: Budget) -> Self {
        Tables {
            budget,
            python_version,
            most_stacks: MOST_STACKS,
            most_threads: MOST_THREADS,
            ..Tables::default()
        }
    }

    /// Takes over the call tree that an earlier reading of the same capture found, `known`. From then on a stack that is not in
    /// it, or a thread beyond those of that reading, is damage: the report of that reading has neither.
    pub(super) fn expect(&mut self, known: Tables) -> Decoded<()> {
        self.budget.take(known.stacks.len() as u64 * STACK)?;
        self.budget.take(known.joined.len() as u64 * PLACE)?;
        self.most_stacks = known.stacks.len();
        self.most_threads = known.threads.len();
        self.stacks = known.stacks;
        self.joined = known.joined;
        Ok(())
    }

    /// Lets `code` have the frame of another code object from now on.
    pub(super) fn join(&mut self, code: u32, frame: FrameId) -> Decoded<()> {
        self.budget.take(PLACE)?;
        self.joined.insert(u64::from(code), frame);
        self.places.insert((u64::from(code), 0), frame);
        Ok(())
    }

    /// Returns the handle of `text`.
    pub(super) fn intern(&mut self, text: &str) -> Decoded<StrId> {
        let known = self.strings.len();
        let id = self.strings.intern(text);
        if self.strings.len() > known {
            self.budget.take(STRING + text.len() as u64)?;
        }
        Ok(id)
    }

    /// Reads the body of a CODE_OBJECT record (section 3.3).
    pub(super) fn read_code_object<R: Read>(&mut self, source: &mut Source<R>) -> Decoded<()> {
        let id = source.varint()?;
        let function = self.read_name(source)?;
        let file = self.read_name(source)?;
        let first_line = source.delta(&mut self.last_line)? as i32;
        let length = source.varint()?;
        if length > LONGEST {
            return damaged(format!("a line table of {length} bytes"));
        }
        let line_table = source.bytes(length)?;
        self.budget.take(line_table.capacity() as u64 + 32)?;
        let known = self.code_objects.insert(
            id,
            CodeObject {
                function,
                file,
                first_line,
                line_table,
            },
        );
        if known.is_none() {
            self.budget.take(CODE_OBJECT)?;
        }
        if self.ours {
            // Its only frame is made at once, so that frames keep their order in the file.
            self.frame(id, 0)?;
        }
        Ok(())
    }

    fn read_name<R: Read>(&mut self, source: &mut Source<R>) -> Decoded<StrId> {
        let name = source.cstr()?;
        if self.ours {
            self.intern(&names::from_capture(&name))
        } else {
            self.intern(&name)
        }
    }

    /// Returns the frame of an instruction. For a code object that was not defined, returns a frame without names, as in
    /// memray.
    #[inline]
    pub(super) fn frame(&mut self, code: u64, offset: i64) -> Decoded<FrameId> {
        if let Some(&frame) = self.places.get(&(code, offset as u64)) {
            return Ok(frame);
        }
        let frame = self.resolve(code, offset);
        // heapray writes separate code objects for frames of equal names if their full names differ.
        let id = if self.ours {
            let own = self.add_frame(frame)?;
            self.joined.get(&code).copied().unwrap_or(own)
        } else {
            self.intern_frame(frame)?
        };
        self.budget.take(PLACE)?;
        self.places.insert((code, offset as u64), id);
        Ok(id)
    }

    /// Returns the stack of `parent` with a call of `code` at `offset`.
    #[inline]
    pub(super) fn call(&mut self, parent: StackId, code: u64, offset: i64) -> Decoded<StackId> {
        let (Ok(short_code), Ok(short_offset)) = (u32::try_from(code), i32::try_from(offset))
        else {
            let frame = self.frame(code, offset)?;
            return self.child(parent, frame);
        };
        if let Some(stack) = self.calls.find(parent, short_code, short_offset) {
            return Ok(stack);
        }
        let frame = self.frame(code, offset)?;
        let stack = self.child(parent, frame)?;
        self.calls.remember(parent, short_code, short_offset, stack);
        Ok(stack)
    }

    /// Returns whether the capture itself defines a code object of that number, in heapray's way: one frame.
    pub(super) fn defines(&self, code: u32) -> bool {
        self.places.contains_key(&(u64::from(code), 0))
    }

    fn resolve(&self, code: u64, offset: i64) -> Frame {
        let Some(object) = self.code_objects.get(&code) else {
            return Frame::default();
        };
        let line = line_table::line(
            self.python_version,
            &object.line_table,
            object.first_line,
            offset,
        );
        Frame {
            function: object.function,
            file: object.file,
            line: if self.ours {
                line as u32
            } else {
                line.max(0) as u32
            },
        }
    }

    /// Returns the handle of a frame with these names.
    pub(super) fn intern_frame(&mut self, frame: Frame) -> Decoded<FrameId> {
        if let Some(&known) = self.frame_ids.get(&frame) {
            return Ok(known);
        }
        let id = self.add_frame(frame)?;
        self.frame_ids.insert(frame, id);
        Ok(id)
    }

    fn add_frame(&mut self, frame: Frame) -> Decoded<FrameId> {
        self.budget.take(FRAME)?;
        self.frames.push(frame);
        Ok(FrameId(self.frames.len() as u32 - 1))
    }

    /// Returns the stack of `parent` with `frame` called from it.
    #[inline]
    pub(super) fn child(&mut self, parent: StackId, frame: FrameId) -> Decoded<StackId> {
        let known = self.stacks.len();
        let stack = self.stacks.child(parent, frame);
        if stack.0 as usize > self.most_stacks {
            return damaged("more call stacks than there can be");
        }
        if self.stacks.len() > known {
            self.budget.take(STACK)?;
        }
        Ok(stack)
    }

    /// Returns the thread of memray's number `tid`, or `None` for the one that only names the producer.
    pub(super) fn thread(&mut self, tid: u64) -> Decoded<Option<ThreadId>> {
        if tid == PRODUCER_THREAD {
            return Ok(None);
        }
        if let Some(&thread) = self.thread_ids.get(&tid) {
            return Ok(Some(thread));
        }
        if self.threads.len() >= self.most_threads {
            return damaged("more threads than there can be");
        }
        self.budget.take(THREAD)?;
        let thread = ThreadId(self.threads.len() as u32);
        self.threads.push(Thread {
            tid,
            name: StrId::EMPTY,
            threads: 1,
        });
        self.thread_ids.insert(tid, thread);
        Ok(Some(thread))
    }

    /// Reads the body of a THREAD_RECORD about `thread`.
    pub(super) fn read_thread_name<R: Read>(
        &mut self,
        thread: Option<ThreadId>,
        source: &mut Source<R>,
    ) -> Decoded<()> {
        match thread {
            Some(thread) => {
                let name = self.read_name(source)?;
                self.threads[thread.0 as usize].name = name;
            }
            None => {
                self.producer = Some(source.cstr()?);
                self.ours = true;
            }
        }
        Ok(())
    }

    /// Begins a new call tree and returns the old one.
    pub(super) fn forget_stacks(&mut self) -> Stacks {
        self.calls = Calls::default();
        std::mem::take(&mut self.stacks)
    }

    /// Moves the tables into `report`.
    pub(super) fn give_to(self, report: &mut Report) {
        report.about.producer = self.producer.unwrap_or_else(|| "memray".into());
        report.strings = self.strings;
        report.frames = self.frames;
        report.stacks = self.stacks;
        report.stacks.shrink_to_fit();
        report.threads = self.threads;
    }
}
