//! A recorded session in virtual time: of a program of known truth, or of a few lines of a test.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // each test file uses its part

use std::collections::HashMap;

use heapray_report::Report;
use heapray_report::memray::Ledger;
use heapray_report::model::{
    About, Allocator, ContextId, Event, Frame, FrameId, StackId, Thread, ThreadId,
};
use heapray_report::views::{Leak, Leaks, leaks};
use leak_programs::{Operation, Program};

/// Milliseconds between two readings of memory, as Heapray makes them.
const READING_MS: u64 = 10;

pub struct Session {
    report: Report,
    ledger: Ledger,
    /// All events, if they are kept.
    events: Option<Vec<Event>>,
    stacks: HashMap<String, StackId>,
    now_ms: u64,
    next_address: u64,
}

impl Session {
    pub fn new() -> Session {
        let mut report = Report {
            about: About {
                command_line: "shop --serve".into(),
                pid: 42,
                package_dirs: vec!["/home/dev/.cargo/registry/src/index-1949".into()],
                producer: "heapray".into(),
                python_allocator: 3,
                ..About::default()
            },
            ..Report::default()
        };
        for tid in 1..=8 {
            let name = report.strings.intern(&format!("worker-{tid}"));
            report.threads.push(Thread {
                tid,
                name,
                threads: 1,
            });
        }
        let mut session = Session {
            report,
            ledger: Ledger::default(),
            events: None,
            stacks: HashMap::new(),
            now_ms: 0,
            next_address: 4096,
        };
        session.enter(Event::Memory { at_ms: 0, rss: 0 });
        session
    }

    /// Keeps the events, for a capture that has them.
    pub fn with_events() -> Session {
        let mut session = Session::new();
        session.events = Some(vec![Event::Memory { at_ms: 0, rss: 0 }]);
        session
    }

    /// Runs `program` to its end.
    pub fn run(mut self, program: &Program) -> Session {
        let mut addresses: HashMap<u64, u64> = HashMap::new();
        for step in program.steps() {
            self.advance_to(step.at_ms);
            let thread = ThreadId(u32::from(step.thread));
            let (block, resized) = match step.operation {
                Operation::Free { block } => (block, None),
                Operation::Allocate { block, site, bytes } => {
                    (block, Some((Allocator::Malloc, site, bytes)))
                }
                Operation::Resize { block, site, bytes } => {
                    (block, Some((Allocator::Realloc, site, bytes)))
                }
            };
            if let Some(old) = addresses.remove(&block) {
                self.free_by(thread, old);
            }
            if let Some((allocator, site, bytes)) = resized {
                let address = self.allocate_by(thread, allocator, site.name(), bytes);
                addresses.insert(block, address);
            }
        }
        self.advance_to(program.duration_ms());
        self
    }

    /// Lets the time pass until `ms` after the start.
    pub fn advance_to(&mut self, ms: u64) {
        while ms >= self.now_ms + READING_MS {
            self.now_ms += READING_MS;
            let at_ms = self.now_ms;
            self.enter(Event::Memory { at_ms, rss: 0 });
        }
    }

    /// Allocates a block in the function `name`, and returns its address.
    pub fn allocate(&mut self, name: &str, bytes: u64) -> u64 {
        self.allocate_by(ThreadId(0), Allocator::Malloc, name, bytes)
    }

    pub fn free(&mut self, address: u64) {
        self.free_by(ThreadId(0), address);
    }

    /// Serves a request each 10 ms until `ms` after the start: a buffer of a kilobyte, and what `request` does.
    pub fn serve_until(&mut self, ms: u64, mut request: impl FnMut(&mut Session, u64)) {
        while self.now_ms < ms {
            let buffer = self.allocate("shop::buffer", 1000);
            request(self, self.now_ms);
            self.free(buffer);
            self.advance_to(self.now_ms + READING_MS);
        }
    }

    pub fn finish(self) -> Report {
        self.finish_with_events().0
    }

    pub fn finish_with_events(mut self) -> (Report, Vec<Event>) {
        self.ledger.close(&mut self.report);
        self.report.about.end_ms = self.now_ms as i64;
        (self.report, self.events.unwrap_or_default())
    }

    fn allocate_by(
        &mut self,
        thread: ThreadId,
        allocator: Allocator,
        name: &str,
        bytes: u64,
    ) -> u64 {
        let stack = match self.stacks.get(name) {
            Some(&stack) => stack,
            None => self.add_stack(name),
        };
        self.next_address += 16;
        self.enter(Event::Allocation {
            context: ContextId::NONE,
            thread,
            allocator,
            address: self.next_address,
            size: bytes,
            stack,
        });
        self.next_address
    }

    fn free_by(&mut self, thread: ThreadId, address: u64) {
        self.enter(Event::Deallocation {
            thread,
            allocator: Allocator::Free,
            address,
            size: 0,
        });
    }

    fn enter(&mut self, event: Event) {
        self.ledger.enter(&event);
        if let Some(events) = &mut self.events {
            events.push(event);
        }
    }

    /// Adds the call stack of `name`: `main`, plumbing of a runtime, the function, and a vector.
    fn add_stack(&mut self, name: &str) -> StackId {
        let tokio = "/home/dev/.cargo/registry/src/index-1949/tokio-1.5.0/src/task.rs";
        let own_file = format!("src/{}.rs", name.rsplit("::").nth(1).unwrap_or("main"));
        let line = 10 + self.stacks.len() as u32;
        let path = [
            ("shop::main", "src/main.rs", 3),
            ("tokio::runtime::block_on", tokio, 80),
            ("tokio::task::poll", tokio, 81),
            ("tokio::task::poll_future", tokio, 82),
            (name, &*own_file, line),
            (
                "alloc::vec::Vec::with_capacity",
                "/rustc/0123/library/alloc/src/vec/mod.rs",
                482,
            ),
        ];
        let report = &mut self.report;
        let stack = path
            .into_iter()
            .fold(StackId::EMPTY, |parent, (function, file, line)| {
                let frame = Frame {
                    function: report.strings.intern(function),
                    file: report.strings.intern(file),
                    line,
                };
                let known = report.frames.iter().position(|&known| known == frame);
                let id = known.unwrap_or_else(|| {
                    report.frames.push(frame);
                    report.frames.len() - 1
                });
                report.stacks.child(parent, FrameId(id as u32))
            });
        self.stacks.insert(name.to_owned(), stack);
        stack
    }
}

/// Returns the function of a leak.
pub fn function<'a>(report: &'a Report, leak: &Leak) -> &'a str {
    let frame = report.frames[leak.frame.0 as usize];
    report.strings.get(frame.function)
}

/// Returns the functions that leak, the likeliest first.
pub fn accused(report: &Report) -> Vec<String> {
    let leaks = leaks(report);
    assert!(matches!(leaks, Leaks::Ranked(_)), "{leaks:?}");
    let list = leaks.list().iter();
    list.map(|leak| function(report, leak).to_owned()).collect()
}
