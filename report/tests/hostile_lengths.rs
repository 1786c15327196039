//! Tests captures of a few kilobytes that claim large lengths, or unpack to much: reading one must not take much memory.
//!
//! The test is a program of its own, because it measures the memory of the whole process (Linux).
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::io::Write;

use heapray_report::memray::{Version, read, write_all};
use heapray_report::model::Event;
use lz4_flex::frame::FrameEncoder;
use support::{skeleton, unpacked, without_extension};

/// Unpacked bytes of each capture.
const UNPACKED: usize = 48 << 20;
/// Memory that reading a capture may take.
const MOST_KB: u64 = 256 << 10;

/// Packs `head` and then `record` again and again.
fn bomb(head: &[u8], record: &[u8]) -> Vec<u8> {
    let mut encoder = FrameEncoder::new(Vec::new());
    encoder.write_all(head).unwrap();
    let chunk = record.repeat((1 << 20) / record.len());
    for _ in 0..UNPACKED / chunk.len() {
        encoder.write_all(&chunk).unwrap();
    }
    encoder.finish().unwrap()
}

/// Returns the maximum resident memory of the process, in kB.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

#[test]
fn claimed_lengths_and_repetitions_do_not_take_memory() {
    let mut packed = Vec::new();
    let no_events = std::iter::empty::<std::io::Result<Event>>();
    write_all(&skeleton(1), no_events, Version::V13, &mut packed).unwrap();
    let whole = unpacked(&packed);
    let mut body = without_extension(&packed);
    let extension = &whole[body.len()..];
    let ended = body.clone();
    assert_eq!(body.pop(), Some(1), "the end mark");
    body.extend([0x0C]);
    body.extend(100u64.to_le_bytes());

    // The extension up to its first list, which is the list of the packages' directories.
    let first_list = {
        let dir = b"/home/dev/.cargo/registry/src/index";
        let at = extension.windows(dir.len()).position(|w| w == dir).unwrap();
        at - 2
    };
    let claim = |from: &[u8]| [&ended[..], from, &varint(1 << 60)].concat();
    let captures = [
        ("generations of images", bomb(&body, &[6])),
        ("a call stack without an end", bomb(&body, &[0x41, 1, 0])),
        ("native frames", bomb(&body, &[5, 2, 0])),
        ("readings of memory", bomb(&body, &[2, 1, 1])),
        (
            "the same code object",
            bomb(&body, &[0x0E, 1, b'f', 0, b'g', 0, 0, 0]),
        ),
        ("texts", bomb(&claim(&extension[..first_list]), &[0])),
        ("frees of nothing", bomb(&body, &[0x85])),
    ];
    for (what, capture) in captures {
        assert!(capture.len() < 2 << 20, "{what}: {} bytes", capture.len());
        let before = most_memory();
        let found = read(&capture[..]).unwrap();
        assert!(!found.complete, "{what}");
        println!("{what}: {:?}", found.report.conditions.notes.last());
        if let (Some(before), Some(after)) = (before, most_memory()) {
            assert!(after - before < MOST_KB, "{what}: {} kB", after - before);
        }
    }
}
