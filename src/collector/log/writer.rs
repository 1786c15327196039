//! Encodes events into blocks, and puts these into the queue of the log's file.

use std::fs::File;
use std::mem;
#[cfg(test)]
use std::sync::mpsc::Receiver;

use super::LogEntry;
use super::block::{BUFFER, FULL, HEADER, MOST};
use super::codec::{self, LONGEST, Memory, Record};
use super::names::{Known, Process, WrittenNames};
use super::queue::{PendingLog, Queue};
use crate::capture::event::{Kind, NodeId};
use crate::collector::snapshot::EventLog;

const _: () = assert!(
    FULL + 2 * LONGEST <= MOST,
    "a block that is not full has room for a record"
);

/// Writes an event log.
///
/// It never fails. At the size limit, or when the file cannot be written, the log is given up for good. The written part
/// stays as it is, and the file's owner removes it.
#[derive(Debug)]
pub struct LogWriter {
    queue: Queue,
    memory: Memory,
    /// The block that is being filled, as [`BUFFER`] says, and the number of bytes in use: those of the header too.
    block: Vec<u8>,
    used: usize,
    block_events: u32,
    names: WrittenNames,
}

impl LogWriter {
    /// Makes a log in `file`, which is written from its first byte on, to at most `limit` bytes. What the disk has not taken
    /// yet has at most `memory` bytes.
    #[must_use]
    pub fn new(file: File, limit: u64, memory: u64) -> LogWriter {
        LogWriter {
            queue: Queue::start(file, limit, memory),
            memory: Memory::default(),
            block: vec![0; BUFFER],
            used: HEADER,
            block_events: 0,
            names: WrittenNames::nothing(),
        }
    }

    /// Adds the process that the log belongs to, for a reader after a crash.
    #[must_use]
    pub fn of_process(mut self, process: Process) -> LogWriter {
        self.names.set_process(process);
        self
    }

    /// Appends an entry, or does nothing if the log was given up. Returns whether the block is full now. A full block needs
    /// its names, and must be [flushed](Self::flush) before the next entry.
    pub fn push(&mut self, entry: &LogEntry) -> bool {
        let Some((memory, mut record)) = self.begin() else {
            return false;
        };
        codec::encode(memory, entry, &mut record);
        let length = record.length();
        self.end(length, 1)
    }

    /// Does what [`push`](Self::push) does, for an allocation.
    pub(in crate::collector) fn push_allocation(
        &mut self,
        thread: u32,
        kind: Kind,
        address: u64,
        size: u64,
        node: NodeId,
    ) -> bool {
        let Some((memory, mut record)) = self.begin() else {
            return false;
        };
        codec::encode_allocation(memory, (thread, node, kind), address, size, &mut record);
        let length = record.length();
        self.end(length, 1)
    }

    /// Does what [`push`](Self::push) does, for an allocation that its thread frees at once.
    #[inline(always)]
    pub(in crate::collector) fn push_short_lived(
        &mut self,
        thread: u32,
        kind: Kind,
        address: u64,
        size: u64,
        node: NodeId,
    ) -> bool {
        let Some((memory, mut record)) = self.begin() else {
            return false;
        };
        codec::encode_allocation(memory, (thread, node, kind), address, size, &mut record);
        codec::encode_free_at_once(&mut record);
        let length = record.length();
        self.end(length, 2)
    }

    /// Does what [`push`](Self::push) does, for a free.
    pub(in crate::collector) fn push_free(&mut self, thread: u32, address: u64) -> bool {
        let Some((memory, mut record)) = self.begin() else {
            return false;
        };
        codec::encode_free(memory, thread, address, &mut record);
        let length = record.length();
        self.end(length, 1)
    }

    /// Returns the place of the next record, or `None` if the log was given up.
    #[inline(always)]
    fn begin(&mut self) -> Option<(&mut Memory, Record<'_>)> {
        // A log that was given up has no room at all.
        let rest = self.block.get_mut(self.used..)?;
        let room = rest.first_chunk_mut::<LONGEST>()?;
        Some((&mut self.memory, Record::new(room)))
    }

    #[inline(always)]
    fn end(&mut self, length: usize, events: u32) -> bool {
        self.used += length;
        self.block_events += events;
        self.used >= HEADER + FULL
    }

    /// Writes what is new in `known`. Called before [`flush`](Self::flush), so that every number in the file has its name.
    pub(in crate::collector) fn write_names(&mut self, known: Known<'_>) {
        if self.queue.given_up().is_none() {
            let queue = &mut self.queue;
            self.names.write_new(known, &mut |names| {
                queue.put([&[0; HEADER], names].concat(), 0);
            });
        }
    }

    /// Ends the block. All entries up to now are on their way to the file.
    pub fn flush(&mut self) {
        if self.used > HEADER {
            let mut block = mem::take(&mut self.block);
            block.truncate(self.used);
            self.queue.put(block, self.block_events);
            self.used = HEADER;
            self.block_events = 0;
            self.memory.clear();
        }
        if self.given_up().is_some() {
            self.block = Vec::new();
        } else if self.block.is_empty() {
            self.block = self.queue.buffer();
        }
    }

    /// Returns a promise of the part up to the last [`flush`](Self::flush). The log does not know its pairs of threads and
    /// contexts.
    pub fn pending(&mut self) -> PendingLog {
        self.queue.ask()
    }

    /// Returns the part up to the last [`flush`](Self::flush), or `None` if the log was given up. Waits until it is in the
    /// file.
    #[must_use]
    pub fn written(&mut self) -> Option<EventLog> {
        self.pending().wait().ok()
    }

    /// Returns the bytes of the file, which may not have all blocks yet. 0 if the log was given up.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.given_up().map_or_else(|| self.queue.bytes(), |_| 0)
    }

    /// Returns the reason why the log was given up, if it was.
    #[must_use]
    pub fn given_up(&self) -> Option<&str> {
        self.queue.given_up()
    }

    /// Gives the log up for the caller's reason. The first reason stays.
    pub fn give_up(&mut self, reason: String) {
        self.queue.give_up(reason);
        self.flush();
    }

    /// Returns the CPU time of compressing and writing blocks up to now, in nanoseconds. It is that of a thread of its own.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.queue.cpu_ns()
    }

    /// Has the log wait until the other end is dropped, as if the disk did not answer.
    #[cfg(test)]
    pub(in crate::collector) fn stall(&mut self, until: Receiver<()>) {
        self.queue.stall(until);
    }

    /// Returns the bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let buffers = self.block.capacity() + self.queue.memory_bytes() + self.names.memory_bytes();
        (buffers + self.memory.memory_bytes()) as u64
    }
}
