//! The log's file: blocks are compressed and appended, until the limit or an error ends it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::block::{HEADER, Header};
use crate::collector::snapshot::EventLog;

/// Number of blocks that are stored as they are after a block that hardly shrank, before compression is tried again.
const PLAIN_BLOCKS_BEFORE_RETRY: u32 = 15;

/// Smallest saving for which a block is compressed: one byte of so many. Records are short anyway, and compression costs
/// more than encoding them.
const WORTH: usize = 6;

/// A file of blocks.
#[derive(Debug)]
pub(super) struct LogFile {
    file: Arc<File>,
    limit: u64,
    /// Bytes and events in the blocks of the file.
    bytes: u64,
    events: u64,
    /// Room for a header, and a payload that was compressed.
    stored: Vec<u8>,
    /// Blocks to store without trying to compress them.
    plain_blocks: u32,
}

impl LogFile {
    /// Makes a log in `file`, which is written from its first byte on, to at most `limit` bytes.
    pub(super) fn new(file: File, limit: u64) -> LogFile {
        LogFile {
            file: Arc::new(file),
            limit,
            bytes: 0,
            events: 0,
            stored: Vec::new(),
            plain_blocks: 0,
        }
    }

    /// Returns the log up to the last block. It does not know its pairs of threads and contexts.
    pub(super) fn written(&self) -> EventLog {
        EventLog {
            file: Arc::clone(&self.file),
            bytes: self.bytes,
            events: self.events,
            pairs: Arc::default(),
        }
    }

    /// Returns the bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.stored.capacity()
    }

    /// Appends a block of `events` events, or of names if there are none. `block` is room for its header, and its records.
    ///
    /// # Errors
    /// The reason why the log ends here: its limit, or the write's error.
    pub(super) fn append(&mut self, block: &mut [u8], events: u32) -> Result<(), String> {
        let raw = block.len() - HEADER;
        let compressed = self.compress(&block[HEADER..]);
        let stored = match compressed {
            Some(length) => &mut self.stored[..HEADER + length],
            None => block,
        };
        let (head, payload) = stored.split_at_mut(HEADER);
        let header = Header {
            stored: payload.len(),
            raw,
            events,
            compressed: compressed.is_some(),
            names: events == 0,
        };
        head.copy_from_slice(&header.encode(payload));
        let end = self.bytes + stored.len() as u64;
        if end > self.limit {
            return Err(format!("its limit of {} bytes is reached", self.limit));
        }
        self.file
            .write_all_at(stored, self.bytes)
            .map_err(|error| describe(&error))?;
        self.bytes = end;
        self.events += u64::from(events);
        Ok(())
    }

    /// Compresses records into `stored`, behind the room for a header. Returns their length there, or `None` if it is not
    /// worth it.
    fn compress(&mut self, records: &[u8]) -> Option<usize> {
        if self.plain_blocks > 0 {
            self.plain_blocks -= 1;
            return None;
        }
        let most = HEADER + lz4_flex::block::get_maximum_output_size(records.len());
        if self.stored.len() < most {
            self.stored.resize(most, 0);
        }
        let compressed = lz4_flex::block::compress_into(records, &mut self.stored[HEADER..])
            .ok()
            .filter(|&length| length <= records.len() - records.len() / WORTH);
        if compressed.is_none() {
            self.plain_blocks = PLAIN_BLOCKS_BEFORE_RETRY;
        }
        compressed
    }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full".into(),
        io::ErrorKind::FileTooLarge => "the file is larger than the system allows".into(),
        _ => format!("its file cannot be written: {error}"),
    }
}
