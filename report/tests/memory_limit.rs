//! Tests captures with gigabytes of everything that a reader keeps: each is refused before it takes more memory than the
//! reader is allowed.
//!
//! The test is a program of its own, because it measures the memory of the whole process (Linux).
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::io::{self, Read};

use heapray_report::memray::{MemoryLimit, ReadError, Version, read_within, write_all};
use heapray_report::model::{Allocator, ContextId, Event, StackId, ThreadId};
use heapray_report::views::{IntervalOptions, Intervals, at_moment};
use support::{skeleton, unpacked, without_extension};

/// The reader's memory limit, and the growth that the process is allowed.
const LIMIT: u64 = 48 << 20;
const MOST: u64 = LIMIT + (32 << 20);

/// Reads `head` and then the results of `record` for 0, 1, 2, … without end.
struct Endless<'a> {
    chunk: Vec<u8>,
    at: usize,
    next: u64,
    record: &'a dyn Fn(u64, &mut Vec<u8>),
}

impl Read for Endless<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() {
            self.chunk.clear();
            self.at = 0;
            while self.chunk.len() < 64 << 10 {
                (self.record)(self.next, &mut self.chunk);
                self.next += 1;
            }
        }
        let n = out.len().min(self.chunk.len() - self.at);
        out[..n].copy_from_slice(&self.chunk[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// Returns the maximum resident memory of the process since the last call, in bytes.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kb: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    // This resets the maximum to the present resident memory.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    Some(kb << 10)
}

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Returns the bytes of `capture` before `text`.
fn up_to<'a>(capture: &'a [u8], text: &[u8]) -> &'a [u8] {
    let at = capture.windows(text.len()).position(|w| w == text);
    &capture[..at.unwrap()]
}

type Record = Box<dyn Fn(u64, &mut Vec<u8>)>;

#[test]
fn a_capture_that_grows_without_end_in_any_part_is_refused_within_the_limit() {
    let mut packed = Vec::new();
    let no_events = std::iter::empty::<io::Result<Event>>();
    write_all(&skeleton(1), no_events, Version::V13, &mut packed).unwrap();
    let whole = unpacked(&packed);
    let ended = without_extension(&packed);
    let extension = &whole[ended.len()..];
    let mut body = ended.clone();
    assert_eq!(body.pop(), Some(1), "the end mark");
    body.extend([0x0C]);
    body.extend(100u64.to_le_bytes());
    let directories = up_to(&body, b"/home/dev/.cargo").to_vec();
    let mut texts = ended.clone();
    let list = up_to(extension, b"/home/dev/.cargo");
    texts.extend(&list[..list.len() - 2]);
    varint(&mut texts, 1 << 16);
    let mut image = body.clone();
    image.extend([6, 7, b'x', 0]);
    varint(&mut image, 1 << 60);
    image.extend(0u64.to_le_bytes());

    let name = |n: u64, out: &mut Vec<u8>| out.extend(format!("{n:x}\0").bytes());
    let captures: [(&str, &[u8], Record); 13] = [
        (
            "live blocks",
            &body,
            Box::new(|_, out| out.extend([0xFE, 2, 1])),
        ),
        (
            "live blocks of 4 GiB",
            &body,
            Box::new(|_, out| out.extend([0xFE, 2, 0x80, 0x80, 0x80, 0x80, 0x10])),
        ),
        (
            "mappings",
            &body,
            Box::new(|_, out| out.extend([0xF8, 2, 14, 8])),
        ),
        (
            "sizes",
            &body,
            Box::new(|n, out| {
                out.extend([0xFE, 2]);
                varint(out, n + 4096);
                out.extend([0x85]); // freed at once
            }),
        ),
        (
            "names",
            &body,
            Box::new(move |n, out| {
                out.extend([0x0E, 1]);
                name(n, out);
                out.extend([b'f', 0, 0, 0]);
            }),
        ),
        (
            "code objects with tables",
            &body,
            Box::new(|n, out| {
                out.push(0x0E);
                varint(out, n);
                out.extend([b'f', 0, b'f', 0, 0, 100]);
                out.extend([1; 100]);
            }),
        ),
        (
            "call stacks",
            &body,
            Box::new(|n, out| {
                for bit in 0..24 {
                    out.extend([0x41, 1 + (n >> bit & 1) as u8, 0]);
                }
                out.extend([0x1F, 0x17]);
            }),
        ),
        (
            "deep call stacks",
            &body,
            Box::new(|n, out| {
                if n.is_multiple_of(1 << 20) {
                    out.push(0x0C);
                    out.extend((n + 1000).to_le_bytes());
                }
                out.extend([0x41, 1, 0]);
            }),
        ),
        (
            "threads",
            &body,
            Box::new(|n, out| {
                out.push(0x0C);
                out.extend((n + 1000).to_le_bytes());
            }),
        ),
        (
            "native frames",
            &body,
            Box::new(|_, out| out.extend([5, 2, 0])),
        ),
        (
            "segments of an image",
            &image,
            Box::new(|n, out| {
                out.push(8);
                out.extend(n.to_le_bytes());
                out.push(1);
            }),
        ),
        (
            "directories in the header",
            &directories,
            Box::new(|_, out| {
                out.extend([b'x'; 100_000]);
                out.push(0);
            }),
        ),
        (
            "texts in the extension",
            &texts,
            Box::new(|_, out| {
                varint(out, 100_000);
                out.extend([b'x'; 100_000]);
            }),
        ),
    ];
    let limit = MemoryLimit(LIMIT);
    for (what, head, record) in &captures {
        let input = || Endless {
            chunk: head.to_vec(),
            at: 0,
            next: 0,
            record,
        };
        most_memory();
        let before = most_memory();
        let refused = read_within(input(), limit);
        assert!(matches!(refused, Err(ReadError::TooLarge(_))), "{what}");
        println!("{what}: {}", refused.unwrap_err());
        if let (Some(before), Some(after)) = (before, most_memory()) {
            // Memory of the case before may have been given back meanwhile.
            let more = after.saturating_sub(before);
            println!("  {} MiB", more >> 20);
            assert!(more < MOST, "{what}: {more} bytes");
        }
    }

    // The same blocks, read for the heap at a moment.
    let report = skeleton(1);
    let blocks = || {
        (1u64..).map(|n| {
            Ok::<_, ReadError>(Event::Allocation {
                context: ContextId::NONE,
                thread: ThreadId(0),
                allocator: Allocator::Malloc,
                address: n * 16,
                size: 1,
                stack: StackId(1),
            })
        })
    };
    let options = IntervalOptions {
        memory: limit,
        ..IntervalOptions::default()
    };
    let before = most_memory();
    let refused = Intervals::of(&report, blocks(), options).unwrap_err();
    assert!(matches!(refused, ReadError::TooLarge(_)));
    let refused = at_moment(&report, blocks(), u64::MAX, limit).unwrap_err();
    assert!(matches!(refused, ReadError::TooLarge(_)));
    if let (Some(before), Some(after)) = (before, most_memory()) {
        let more = after.saturating_sub(before);
        assert!(more < MOST, "{more} bytes");
    }
}
