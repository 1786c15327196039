//! Helpers: captures, complete and broken, and the command.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // each test file uses a part of it

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use heapray_report::Report;
use heapray_report::memray::{Ledger, Version, write_aggregated, write_all};
use heapray_report::model::{
    About, Allocator, Context, ContextId, Event, Frame, FrameId, StackId, Thread, ThreadId,
};

/// Returns the command, without the machine's own settings.
pub fn heapray() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapray"));
    command
        .stdin(Stdio::null())
        .env_remove("MEMRAY_PROFILER_TOKEN")
        .env_remove("NO_COLOR")
        // Names that were found before, of the tests alone.
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("COLUMNS", "100");
    command
}

/// Runs the command to its end.
pub fn run(arguments: &[&str]) -> Output {
    heapray().args(arguments).output().unwrap()
}

/// Runs the command with `input` on standard input.
pub fn run_with(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = heapray()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may stop reading before the end.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

pub fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A folder for captures. It is removed when the value is dropped.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns a file's path as an argument.
    pub fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn put(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.name(name)
    }

    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }
}

/// Makes a packed capture with every event, as heapray writes it.
pub fn all() -> Vec<u8> {
    let (report, events) = service(1);
    let mut capture = Vec::new();
    write_all(
        &report,
        events.into_iter().map(Ok),
        Version::V13,
        &mut capture,
    )
    .unwrap();
    capture
}

/// Makes an aggregated capture of a service that keeps `times` as much memory.
pub fn aggregated(times: u64) -> Vec<u8> {
    let (report, _) = service(times);
    let mut capture = Vec::new();
    write_aggregated(&report, Version::V13, &mut capture).unwrap();
    capture
}

/// Makes a capture with every event of a service that works for 20 seconds, and keeps blocks of a tenth of its requests.
pub fn leaking() -> Vec<u8> {
    let (mut report, _) = service(1);
    let (thread, allocator) = (ThreadId(0), Allocator::Malloc);
    let (work, leak) = (stack(&mut report, &[0]), stack(&mut report, &[0, 1]));
    let mut events = Vec::new();
    for n in 0..2000u64 {
        let address = 0x7f00_0000_0000 + n * 0x1_0000;
        let (size, stack) = if n % 10 == 0 {
            (2000, leak)
        } else {
            (1000, work)
        };
        events.push(Event::Allocation {
            context: ContextId::NONE,
            thread,
            allocator,
            address,
            size,
            stack,
        });
        if stack == work {
            events.push(Event::Deallocation {
                thread,
                allocator: Allocator::Free,
                address,
                size: 0,
            });
        }
        let (at_ms, rss) = (n * 10, 1 << 20);
        events.push(Event::Memory { at_ms, rss });
    }
    let mut ledger = Ledger::default();
    for event in &events {
        ledger.enter(event);
    }
    ledger.close(&mut report);
    report.about.end_ms = report.about.start_ms + 20_000;
    let mut capture = Vec::new();
    let events = events.into_iter().map(Ok);
    write_all(&report, events, Version::V13, &mut capture).unwrap();
    capture
}

/// Makes a capture like [`all`], of a service that keeps `times` as much memory: 7 of its 13 live blocks are of `GET /a`, and
/// the others of `GET /b`.
pub fn by_route(times: u64) -> Vec<u8> {
    let (mut report, mut events) = service(times);
    let labels = [None, Some("GET /a"), Some("GET /b")].map(|route| {
        let labels = route.map(|route| ("route".to_owned(), route.to_owned()));
        Context {
            labels: labels.into_iter().collect(),
            ..Context::default()
        }
    });
    report.contexts = labels.to_vec();
    let contexts = events.iter_mut().filter_map(|event| match event {
        Event::Allocation { context, .. } => Some(context),
        _ => None,
    });
    for (n, context) in (0..).zip(contexts) {
        *context = ContextId(2 - n % 2);
    }
    let mut ledger = Ledger::default();
    for event in &events {
        ledger.enter(event);
    }
    ledger.close(&mut report);
    let mut capture = Vec::new();
    let events = events.into_iter().map(Ok);
    write_all(&report, events, Version::V13, &mut capture).unwrap();
    capture
}

/// Adds a call stack of `frames`, the root first.
fn stack(report: &mut Report, frames: &[u32]) -> StackId {
    frames.iter().fold(StackId::EMPTY, |at, &frame| {
        report.stacks.child(at, FrameId(frame))
    })
}

/// Unpacks a capture.
pub fn bare(capture: &[u8]) -> Vec<u8> {
    let mut bare = Vec::new();
    let mut frames = lz4_flex::frame::FrameDecoder::new(capture);
    for _ in ["memray's records", "what heapray adds"] {
        frames.read_to_end(&mut bare).unwrap();
    }
    bare
}

/// Makes a service with two threads, three call stacks, a leak, temporary blocks, and a reading of memory every 10 ms.
fn service(times: u64) -> (Report, Vec<Event>) {
    let mut report = Report {
        about: About {
            command_line: "leaky --serve".into(),
            pid: 42,
            start_ms: 1_700_000_000_000,
            end_ms: 1_700_000_000_400,
            package_dirs: vec!["/home/dev/.cargo/registry/src/index-1949".into()],
            source_dirs: vec!["src".into()],
            producer: "heapray".into(),
            python_allocator: 3,
            ..About::default()
        },
        ..Report::default()
    };
    for (tid, name) in [(42, "main"), (43, "worker")] {
        let name = report.strings.intern(name);
        report.threads.push(Thread {
            tid,
            name,
            threads: 1,
        });
    }
    let frames = [
        ("leaky::main", "src/main.rs", 3),
        ("leaky::cache::keep", "src/cache.rs", 20),
        (
            "<script>alert(1)</script>",
            "/home/dev/.cargo/registry/src/index-1949/tokio-1.0.0/src/lib.rs",
            7,
        ),
    ];
    for (function, file, line) in frames {
        let function = report.strings.intern(function);
        let file = report.strings.intern(file);
        report.frames.push(Frame {
            function,
            file,
            line,
        });
    }
    let stacks = [&[0][..], &[0, 1], &[0, 2]].map(|frames| stack(&mut report, frames));
    let mut events = Vec::new();
    for n in 0..40u64 {
        let thread = ThreadId((n % 2) as u32);
        let address = 0x7f00_0000_0000 + n * 0x10_0000;
        let allocator = Allocator::Malloc;
        let stack = stacks[(n % 3) as usize];
        let size = 1000 * times;
        events.push(Event::Allocation {
            context: ContextId::NONE,
            thread,
            allocator,
            address,
            size,
            stack,
        });
        if n % 3 != 1 {
            let allocator = Allocator::Free;
            events.push(Event::Deallocation {
                thread,
                allocator,
                address,
                size: 0,
            });
        }
        events.push(Event::Memory {
            at_ms: n * 10,
            rss: 1 << 20,
        });
    }
    let mut ledger = Ledger::default();
    for event in &events {
        ledger.enter(event);
    }
    ledger.close(&mut report);
    (report, events)
}
