//! Appends events to the log's file, until the limit or an error ends it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::LogEntry;
use super::block::{FULL, HEADER, Header, MOST};
use super::codec::{self, LONGEST, Memory, Record};
use super::disk::Disk;
use super::names::{Known, Process, WrittenNames};
use crate::capture::event::{Kind, NodeId};
use crate::collector::snapshot::EventLog;

/// Number of blocks that are stored as they are after a block that hardly shrank, before compression is tried again.
const PLAIN_BLOCKS_BEFORE_RETRY: u32 = 15;

/// Smallest saving for which a block is compressed: one byte of so many. Records are short anyway, and compression costs
/// more than encoding them.
const WORTH: usize = 6;

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
    file: Arc<File>,
    disk: Disk,
    limit: u64,
    /// Bytes and events in the blocks of the file.
    bytes: u64,
    events: u64,
    given_up: Option<String>,
    memory: Memory,
    /// The block that is being filled: room for [`MOST`] bytes of records, and the number of bytes in use.
    records: Vec<u8>,
    used: usize,
    records_events: u32,
    /// A header and a payload, ready for the file.
    stored: Vec<u8>,
    /// Blocks to store without trying to compress them.
    plain_blocks: u32,
    names: WrittenNames,
}

impl LogWriter {
    /// Makes a log in `file`, which is written from its first byte on, to at most `limit` bytes.
    #[must_use]
    pub fn new(file: File, limit: u64) -> LogWriter {
        LogWriter {
            file: Arc::new(file),
            disk: Disk::new(),
            limit,
            bytes: 0,
            events: 0,
            given_up: None,
            memory: Memory::default(),
            records: vec![0; MOST],
            used: 0,
            records_events: 0,
            stored: Vec::new(),
            plain_blocks: 0,
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
        let rest = self.records.get_mut(self.used..)?;
        let room = rest.first_chunk_mut::<LONGEST>()?;
        Some((&mut self.memory, Record::new(room)))
    }

    #[inline(always)]
    fn end(&mut self, length: usize, events: u32) -> bool {
        self.used += length;
        self.records_events += events;
        self.used >= FULL
    }

    /// Writes what is new in `known`. Called before [`flush`](Self::flush), so that every number in the file has its name.
    pub(in crate::collector) fn write_names(&mut self, known: Known<'_>) {
        if self.given_up.is_some() {
            return;
        }
        let mut names = std::mem::replace(&mut self.names, WrittenNames::nothing());
        let result = names.write_new(known, &mut |names| self.write_block(names, 0));
        self.names = names;
        if let Err(reason) = result {
            self.give_up(reason);
        }
    }

    /// Ends the block, so that all entries up to now are in the file.
    pub fn flush(&mut self) {
        if self.used == 0 {
            return;
        }
        let records = std::mem::take(&mut self.records);
        let written = self.write_block(&records[..self.used], self.records_events);
        self.records = records;
        if let Err(reason) = written {
            self.give_up(reason);
            return;
        }
        self.events += u64::from(self.records_events);
        self.used = 0;
        self.records_events = 0;
        self.memory.clear();
    }

    /// Returns the part in the file, up to the last [`flush`](Self::flush), or `None` if the log was given up. The log does
    /// not know its pairs of threads and contexts.
    #[must_use]
    pub fn written(&self) -> Option<EventLog> {
        self.given_up.is_none().then(|| EventLog {
            file: Arc::clone(&self.file),
            bytes: self.bytes,
            events: self.events,
            pairs: Arc::default(),
        })
    }

    /// Returns the reason why the log was given up, if it was.
    #[must_use]
    pub fn given_up(&self) -> Option<&str> {
        self.given_up.as_deref()
    }

    /// Gives the log up for the caller's reason. The first reason stays.
    pub fn give_up(&mut self, reason: String) {
        self.given_up.get_or_insert(reason);
        self.records = Vec::new();
        self.used = 0;
        self.stored = Vec::new();
    }

    /// Returns the bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let buffers = self.records.capacity() + self.stored.capacity() + self.names.memory_bytes();
        (buffers + self.memory.memory_bytes()) as u64
    }

    /// Writes a block of `events` events, or of names if there are none.
    fn write_block(&mut self, records: &[u8], events: u32) -> Result<(), String> {
        self.compress(records, events);
        let end = self.bytes + self.stored.len() as u64;
        if end > self.limit {
            return Err(format!("its limit of {} bytes is reached", self.limit));
        }
        self.disk
            .write(|| self.file.write_all_at(&self.stored, self.bytes))?;
        self.bytes = end;
        Ok(())
    }

    /// Fills `stored` from `records`.
    fn compress(&mut self, records: &[u8], events: u32) {
        let raw = records.len();
        self.stored.clear();
        let mut compressed = None;
        if self.plain_blocks > 0 {
            self.plain_blocks -= 1;
        } else {
            self.stored
                .resize(HEADER + lz4_flex::block::get_maximum_output_size(raw), 0);
            compressed = lz4_flex::block::compress_into(records, &mut self.stored[HEADER..])
                .ok()
                .filter(|&stored| stored <= raw - raw / WORTH);
            if compressed.is_none() {
                self.plain_blocks = PLAIN_BLOCKS_BEFORE_RETRY;
            }
        }
        match compressed {
            Some(stored) => self.stored.truncate(HEADER + stored),
            None => {
                self.stored.resize(HEADER, 0);
                self.stored.extend_from_slice(records);
            }
        }
        let header = Header {
            stored: self.stored.len() - HEADER,
            raw,
            events,
            compressed: compressed.is_some(),
            names: events == 0,
        };
        let (head, payload) = self.stored.split_at_mut(HEADER);
        head.copy_from_slice(&header.encode(payload));
    }
}
