//! Common parts of both writers: the LZ4 frame, code objects, thread numbers.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

use super::codec::{Running, put_cstr, put_signed, put_varint};
use super::signpost::Signpost;
use super::{CONTEXT_THREADS, PRODUCER_THREAD, context_number, names, tag};
use crate::model::{ContextId, Frame, Report, StrId, Thread};

/// Bytes that are collected before they are packed.
const CHUNK: usize = 64 << 10;

/// Compressed output. Records are appended to `buffer`.
pub(super) struct Sink<W: Write> {
    pub(super) buffer: Vec<u8>,
    frame: FrameEncoder<Counted<W>>,
    /// Bytes that were packed so far.
    packed: u64,
}

/// Output that counts its bytes.
struct Counted<W> {
    out: W,
    written: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns an LZ4 frame. Each block has a checksum, so that the data before damage can be trusted.
fn frame<W: Write>(out: Counted<W>) -> FrameEncoder<Counted<W>> {
    let info = FrameInfo::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Independent)
        .block_checksums(true);
    FrameEncoder::with_frame_info(info, out)
}

impl<W: Write> Sink<W> {
    pub(super) fn new(out: W) -> Self {
        Sink {
            buffer: Vec::with_capacity(CHUNK + (CHUNK >> 2)),
            frame: frame(Counted { out, written: 0 }),
            packed: 0,
        }
    }

    /// Returns the bytes of the unpacked capture so far.
    pub(super) fn position(&self) -> u64 {
        self.packed + self.buffer.len() as u64
    }

    /// Packs the buffer if there is enough in it.
    #[inline]
    pub(super) fn pack_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= CHUNK {
            self.pack()?;
        }
        Ok(())
    }

    fn pack(&mut self) -> io::Result<()> {
        self.frame.write_all(&self.buffer)?;
        self.packed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the LZ4 frame and begins another. Returns the byte of the output at which the new one begins.
    pub(super) fn next_frame(mut self) -> io::Result<(Self, u64)> {
        self.pack()?;
        let out = self.frame.finish()?;
        let begins = out.written;
        let sink = Sink {
            frame: frame(out),
            ..self
        };
        Ok((sink, begins))
    }

    /// Ends the capture with `signpost`, which is outside of all frames.
    pub(super) fn finish(mut self, signpost: &Signpost) -> io::Result<()> {
        self.pack()?;
        let mut out = self.frame.finish()?;
        out.write_all(&signpost.to_bytes())?;
        out.flush()
    }
}

/// Writes the thread's number and, if it has one, its name.
pub(super) fn put_thread(out: &mut Vec<u8>, tid: u64, name: &str) {
    put_context_switch(out, tid);
    if !name.is_empty() {
        out.push(tag::THREAD_RECORD);
        put_cstr(out, &names::to_capture(name));
    }
}

#[inline]
pub(super) fn put_context_switch(out: &mut Vec<u8>, tid: u64) {
    out.push(tag::CONTEXT_SWITCH);
    out.extend_from_slice(&tid.to_le_bytes());
}

/// Writes the context of the next allocations. The number of their thread must follow.
#[inline]
pub(super) fn put_context(out: &mut Vec<u8>, context: ContextId) {
    put_context_switch(out, u64::from(CONTEXT_THREADS) << 32 | u64::from(context.0));
}

/// Names the producer and every thread.
pub(super) fn put_threads(out: &mut Vec<u8>, report: &Report, apart: &[Thread], tids: &[u64]) {
    let producer: Cow<'_, str> = if report.about.producer.is_empty() {
        "heapray".into()
    } else {
        names::in_one_line(&report.about.producer)
    };
    put_thread(out, PRODUCER_THREAD, &producer);
    for (thread, &tid) in report.threads.iter().chain(apart).zip(tids) {
        put_thread(out, tid, report.strings.get(thread.name));
    }
}

/// Returns a number for each thread: the operating system's, unless that is taken (it reuses numbers) or has a meaning in
/// memray (0 and 2^64 - 1, section 3.1) or here.
pub(super) fn thread_numbers(report: &Report, apart: &[Thread]) -> Vec<u64> {
    let mut taken = HashSet::from([0, u64::MAX, PRODUCER_THREAD]);
    let mut spare = 1u64 << 32;
    report
        .threads
        .iter()
        .chain(apart)
        .map(|thread| {
            let mut tid = thread.tid;
            while context_number(tid).is_some() || !taken.insert(tid) {
                spare += 1;
                tid = spare;
            }
            tid
        })
        .collect()
}

/// Code objects, one per distinct frame (section 3.3), whose first line is the frame's. Frames that differ in the full names
/// of their functions, or in the addresses of code without lines, are distinct, although they have the same name in the
/// capture.
#[derive(Debug)]
pub(super) struct CodeObjects {
    /// Number of each frame's code object, from 1.
    pub(super) ids: Vec<u32>,
    pub(super) count: u32,
    last_line: Running,
}

/// Line table of a code object with one line: one code unit, no columns, the first line.
pub(super) const ONE_LINE: [u8; 2] = [0xE8, 0x00];

impl CodeObjects {
    /// Writes the code objects of all frames of `report`.
    pub(super) fn write<W: Write>(report: &Report, sink: &mut Sink<W>) -> io::Result<Self> {
        let mut objects = CodeObjects {
            ids: Vec::with_capacity(report.frames.len()),
            count: 0,
            last_line: Running::default(),
        };
        let mut known: HashMap<(Frame, StrId, Option<u64>), u32> =
            HashMap::with_capacity(report.frames.len());
        let full_names = report.full_names.iter().copied();
        let full_names = full_names.chain(std::iter::repeat(StrId::EMPTY));
        for (number, (frame, full_name)) in report.frames.iter().zip(full_names).enumerate() {
            let key = (*frame, full_name, report.own_address(number));
            let id = match known.get(&key) {
                Some(&id) => id,
                None => {
                    let function = report.strings.get(frame.function);
                    let file = report.strings.get(frame.file);
                    let id = objects.add(&mut sink.buffer, function, file, frame.line);
                    known.insert(key, id);
                    sink.pack_if_full()?;
                    id
                }
            };
            objects.ids.push(id);
        }
        Ok(objects)
    }

    /// Writes one more code object and returns its number.
    pub(super) fn add(&mut self, out: &mut Vec<u8>, function: &str, file: &str, line: u32) -> u32 {
        self.count += 1;
        out.push(tag::CODE_OBJECT);
        put_varint(out, u64::from(self.count));
        put_cstr(out, &names::to_capture(function));
        put_cstr(out, &names::to_capture(file));
        put_signed(out, self.last_line.difference_to(i64::from(line) as u64));
        put_varint(out, ONE_LINE.len() as u64);
        out.extend_from_slice(&ONE_LINE);
        self.count
    }
}
