//! Reads an event log back, by positioned reads, while it may still be written to.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::LogEntry;
use super::block::{HEADER, Header, invalid};
use super::codec::{self, Memory};

/// The entries of a log, oldest first.
///
/// Whatever the file holds, it never panics and needs less than half a megabyte. It ends after the first error; entries before
/// that are right, since a block is checked before its first entry is given out.
#[derive(Debug)]
pub struct LogReader {
    file: Arc<File>,
    at: u64,
    bytes: u64,
    memory: Memory,
    stored: Vec<u8>,
    records: Vec<u8>,
    /// How much of `records` was given out.
    next: usize,
    events_left: u32,
    failed: bool,
}

impl LogReader {
    /// Reads the first `bytes` bytes of `file`.
    #[must_use]
    pub fn new(file: Arc<File>, bytes: u64) -> LogReader {
        LogReader {
            file,
            at: 0,
            bytes,
            memory: Memory::default(),
            stored: Vec::new(),
            records: Vec::new(),
            next: 0,
            events_left: 0,
            failed: false,
        }
    }

    fn read(&mut self) -> io::Result<Option<LogEntry>> {
        while self.events_left == 0 {
            if self.next != self.records.len() {
                return Err(invalid("a block has more than its events"));
            }
            if self.at == self.bytes {
                return Ok(None);
            }
            self.read_block()?;
        }
        let mut rest = &self.records[self.next..];
        let entry = codec::decode(&mut self.memory, &mut rest)?;
        self.next = self.records.len() - rest.len();
        self.events_left -= 1;
        Ok(Some(entry))
    }

    fn read_block(&mut self) -> io::Result<()> {
        let left = self.bytes - self.at;
        let mut head = [0; HEADER];
        if left < HEADER as u64 {
            return Err(torn());
        }
        self.file.read_exact_at(&mut head, self.at).map_err(cut)?;
        let header = Header::decode(&head)?;
        if left - (HEADER as u64) < header.stored as u64 {
            return Err(torn());
        }
        self.stored.resize(header.stored, 0);
        self.file
            .read_exact_at(&mut self.stored, self.at + HEADER as u64)
            .map_err(cut)?;
        if !Header::is_whole(&head, &self.stored) {
            return Err(invalid("a block's checksum is wrong"));
        }
        if header.compressed {
            self.records.resize(header.raw, 0);
            let raw = lz4_flex::block::decompress_into(&self.stored, &mut self.records)
                .map_err(|_| invalid("a block cannot be decompressed"))?;
            self.records.truncate(raw);
        } else {
            std::mem::swap(&mut self.records, &mut self.stored);
        }
        if self.records.len() != header.raw {
            return Err(invalid("a block has another length than it says"));
        }
        self.at += (HEADER + header.stored) as u64;
        self.next = 0;
        self.events_left = header.events;
        self.memory.clear();
        Ok(())
    }
}

impl Iterator for LogReader {
    type Item = io::Result<LogEntry>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let entry = self.read().transpose();
        self.failed = matches!(entry, Some(Err(_)));
        entry
    }
}

impl std::iter::FusedIterator for LogReader {}

fn torn() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the event log ends within a block",
    )
}

/// The file is shorter than its owner said, or cannot be read.
fn cut(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        torn()
    } else {
        error
    }
}
