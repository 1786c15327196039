//! Makes the first corpus: `cargo run --example seeds -- CORPUS_DIR [CAPTURE…]`.
//!
//! It writes captures of a small made-up service with our own writers: of both kinds, both versions, packed and bare (a
//! fuzzer cannot change compressed blocks in a useful way). It adds the given captures, such as memray's own.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use heapray_report::Report;
use heapray_report::memray::{Ledger, Version, write_aggregated, write_all};
use heapray_report::model::{
    About, Allocator, ContextId, Event, Frame, FrameId, StackId, Thread, ThreadId,
};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let Some(corpus) = arguments.next() else {
        return Err(io::Error::other("usage: seeds CORPUS_DIR [CAPTURE…]"));
    };
    let corpus = Path::new(&corpus);
    fs::create_dir_all(corpus)?;
    for version in [Version::V12, Version::V13] {
        let (report, events) = service();
        let number = version.number();
        let mut all = Vec::new();
        write_all(&report, events.into_iter().map(Ok), version, &mut all)?;
        put(corpus, &format!("all-{number}"), &all)?;
        let mut aggregated = Vec::new();
        write_aggregated(&report, version, &mut aggregated)?;
        put(corpus, &format!("aggregated-{number}"), &aggregated)?;
    }
    for path in arguments {
        let path = Path::new(&path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        put(corpus, &name, &fs::read(path)?)?;
    }
    Ok(())
}

/// Writes a capture as it is, and unpacked.
fn put(corpus: &Path, name: &str, capture: &[u8]) -> io::Result<()> {
    fs::write(corpus.join(name), capture)?;
    let mut bare = Vec::new();
    let mut frames = lz4_flex::frame::FrameDecoder::new(capture);
    if frames.read_to_end(&mut bare).is_ok() {
        // heapray's extension has its own frame; memray's captures have no second frame.
        let _ = frames.read_to_end(&mut bare);
        fs::write(corpus.join(format!("{name}-bare")), bare)?;
    }
    Ok(())
}

/// Returns the report and events of a service: two threads, a few call stacks, every allocator, a leak, a mapping that is
/// cut in pieces.
fn service() -> (Report, Vec<Event>) {
    let mut report = Report {
        about: About {
            command_line: "service --listen 0.0.0.0".into(),
            pid: 7,
            start_ms: 1_700_000_000_000,
            end_ms: 1_700_000_009_000,
            library_dir: "/rustc/0123/library".into(),
            package_dirs: vec!["/home/dev/.cargo/registry/src/index-1949".into()],
            source_dirs: vec!["src".into()],
            producer: "heapray".into(),
            python_allocator: 3,
            ..About::default()
        },
        ..Report::default()
    };
    for (tid, name) in [(7, "main"), (8, "worker")] {
        let name = report.strings.intern(name);
        report.threads.push(Thread {
            tid,
            name,
            threads: 1,
        });
    }
    let stacks = stacks(&mut report);
    let events = events(&stacks);
    let mut ledger = Ledger::default();
    for event in &events {
        ledger.enter(event);
    }
    ledger.close(&mut report);
    (report, events)
}

fn stacks(report: &mut Report) -> Vec<StackId> {
    let names = [
        ("main", "src/main.rs", 3),
        ("service::serve", "src/serve.rs", 20),
        (
            "<alloc::vec::Vec<u8>>::push",
            "/rustc/0123/library/alloc/src/vec/mod.rs",
            99,
        ),
        (
            "bytes::grow",
            "/home/dev/.cargo/registry/src/index-1949/bytes-1.0.0/src/lib.rs",
            8,
        ),
    ];
    for (function, file, line) in names {
        let function = report.strings.intern(function);
        let file = report.strings.intern(file);
        report.frames.push(Frame {
            function,
            file,
            line,
        });
    }
    [&[0][..], &[0, 1], &[0, 1, 2], &[0, 3], &[0, 1, 3, 2]]
        .iter()
        .map(|frames| {
            let root = StackId::EMPTY;
            frames
                .iter()
                .fold(root, |at, &n| report.stacks.child(at, FrameId(n)))
        })
        .collect()
}

fn events(stacks: &[StackId]) -> Vec<Event> {
    let gets = Allocator::ALL
        .into_iter()
        .filter(|allocator| !allocator.is_free());
    let mut events = Vec::new();
    for (n, allocator) in (0..).zip(gets.cycle().take(40)) {
        let thread = ThreadId(n as u32 % 2);
        let address = 0x7f00_0000_0000 + n * 0x10_0000;
        events.push(Event::Allocation {
            context: ContextId::NONE,
            thread,
            allocator,
            address,
            size: 16 + n * n,
            stack: stacks[n as usize % stacks.len()],
        });
        if n % 3 == 0 {
            let (allocator, size) = match allocator {
                Allocator::Mmap => (Allocator::Munmap, 8),
                _ => (Allocator::Free, 0),
            };
            events.push(Event::Deallocation {
                thread,
                allocator,
                address,
                size,
            });
        }
        if n % 10 == 9 {
            events.push(Event::Memory {
                at_ms: n * 10,
                rss: 4096 * n,
            });
        }
    }
    events
}
