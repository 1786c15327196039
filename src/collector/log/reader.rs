//! Reads an event log back, by positioned reads, while it may still be written to.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::LogEntry;
use super::block::{HEADER, Header, invalid};
use super::codec::{self, Memory};
use super::names::Names;
use crate::collector::pairs;
use crate::collector::snapshot::EventLog;

/// Reader of the entries of a log, oldest first.
///
/// It never panics, whatever the file contains, and needs less than half a megabyte. It ends after the first error. Entries
/// before the error are right, since a block is checked before its first entry is returned.
#[derive(Debug)]
pub struct LogReader {
    log: EventLog,
    at: u64,
    memory: Memory,
    stored: Vec<u8>,
    records: Vec<u8>,
    /// Bytes of `records` whose entries were returned.
    next: usize,
    events_left: u32,
    /// Names that were found between events, if they are wanted.
    names: Option<Names>,
    failed: bool,
}

impl LogReader {
    /// Makes a reader of `log`.
    #[must_use]
    pub fn new(log: EventLog) -> LogReader {
        LogReader {
            log,
            at: 0,
            memory: Memory::default(),
            stored: Vec::new(),
            records: Vec::new(),
            next: 0,
            events_left: 0,
            names: None,
            failed: false,
        }
    }

    /// Reads `file` to its last whole block: the log of a process that did not live to end it. Returns the whole part of the
    /// log, and the meaning of its numbers.
    ///
    /// Names need a few times as much memory as they take in the file. No length in the file is trusted.
    ///
    /// # Errors
    /// The file cannot be read, or does not begin with a block. A torn end behind whole blocks is not an error.
    pub fn recover(file: Arc<File>) -> io::Result<(EventLog, Names)> {
        LogReader::recover_within(file, usize::MAX)
    }

    /// Does what [`recover`](Self::recover) does, with at most `most` call stacks.
    ///
    /// # Errors
    /// The same as [`recover`](Self::recover), and [`io::ErrorKind::OutOfMemory`] if there are more call stacks.
    pub(crate) fn recover_within(file: Arc<File>, most: usize) -> io::Result<(EventLog, Names)> {
        let bytes = file.metadata()?.len();
        let mut whole = EventLog {
            file,
            bytes: 0,
            events: 0,
            pairs: Arc::default(),
        };
        let mut reader = LogReader::new(EventLog {
            bytes,
            ..whole.clone()
        });
        reader.names = Some(Names::none());
        while reader.at < bytes {
            match reader.read_block() {
                Ok(()) => {
                    whole.bytes = reader.at;
                    whole.events += u64::from(reader.events_left);
                }
                Err(error) if whole.bytes == 0 => return Err(error),
                Err(_) => break,
            }
            let stacks = reader.names.as_ref().map_or(0, |names| names.nodes.len());
            if stacks > most {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
        }
        let mut names = reader.names.unwrap_or_else(Names::none);
        whole.pairs = Arc::new(std::mem::take(&mut names.pairs));
        Ok((whole, names))
    }

    /// Returns the file that is read.
    #[cfg(test)]
    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.log.file)
    }

    fn read(&mut self) -> io::Result<Option<LogEntry>> {
        while self.events_left == 0 {
            if self.next != self.records.len() {
                return Err(invalid("a block has more than its events"));
            }
            if self.at == self.log.bytes {
                return Ok(None);
            }
            self.read_block()?;
        }
        let mut rest = &self.records[self.next..];
        let mut entry = codec::decode(&mut self.memory, &mut rest)?;
        self.split(&mut entry);
        self.next = self.records.len() - rest.len();
        self.events_left -= 1;
        Ok(Some(entry))
    }

    /// Replaces the entry of a thread in a context by the thread and the context.
    #[inline]
    fn split(&self, entry: &mut LogEntry) {
        match entry {
            LogEntry::Allocation {
                thread, context, ..
            } => (*thread, *context) = pairs::parts(&self.log.pairs, *thread),
            LogEntry::Deallocation { thread, .. } => {
                *thread = pairs::parts(&self.log.pairs, *thread).0;
            }
            LogEntry::Memory { .. } => {}
        }
    }

    /// Reads the next block of events, and the names before it if they are wanted.
    fn read_block(&mut self) -> io::Result<()> {
        let header = self.read_any_block()?;
        self.next = 0;
        self.events_left = header.events;
        if header.names {
            if let Some(names) = &mut self.names {
                names.learn(&self.records)?;
            }
            self.next = self.records.len();
        }
        self.memory.clear();
        Ok(())
    }

    /// Reads the next block into `records`.
    fn read_any_block(&mut self) -> io::Result<Header> {
        let left = self.log.bytes - self.at;
        let mut head = [0; HEADER];
        if left < HEADER as u64 {
            return Err(torn());
        }
        self.log
            .file
            .read_exact_at(&mut head, self.at)
            .map_err(cut)?;
        let header = Header::decode(&head)?;
        if left - (HEADER as u64) < header.stored as u64 {
            return Err(torn());
        }
        self.stored.resize(header.stored, 0);
        self.log
            .file
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
        Ok(header)
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

/// Returns the error that the file is shorter than its owner said, or cannot be read.
fn cut(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        torn()
    } else {
        error
    }
}
