//! Writes an aggregated capture with many call sites, for measuring: `many_sites OUT [SITES]`, 100,000 by default.
//!
//! The call tree is like that of a service: eight frames deep, a few branches at each level, names of ordinary length.
//! heapray-report's example `capture_speed` writes a capture with many events.
#![allow(missing_docs)]

use std::fs::File;
use std::io::{self, BufWriter};

use heapray_report::Report;
use heapray_report::memray::{Version, write_aggregated};
use heapray_report::model::{
    About, Allocator, ContextId, Frame, FrameId, Site, StackId, Tally, Thread, ThreadId,
};

const DEPTH: u64 = 8;
const FUNCTIONS: u64 = 5000;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        return Err(io::Error::other("usage: many_sites OUT [SITES]"));
    };
    let sites = arguments.next().map_or(Ok(100_000), |n| n.parse());
    let report = service(sites.map_err(io::Error::other)?);
    write_aggregated(&report, Version::V13, BufWriter::new(File::create(path)?))
}

fn service(sites: u64) -> Report {
    let mut report = Report {
        about: About {
            command_line: "service".into(),
            pid: 1,
            producer: "heapray".into(),
            python_allocator: 3,
            ..About::default()
        },
        ..Report::default()
    };
    let name = report.strings.intern("main");
    let (tid, threads) = (1, 1);
    report.threads.push(Thread { tid, name, threads });
    for n in 0..FUNCTIONS {
        let function = format!("service::module_{}::handler_{n}", n % 97);
        let function = report.strings.intern(&function);
        let file = report.strings.intern(&format!("src/module_{}.rs", n % 97));
        let line = n as u32 % 900;
        report.frames.push(Frame {
            function,
            file,
            line,
        });
    }
    for site in 0..sites {
        // The digits of the site's number are its path through the tree, from the root: siblings share all but the last.
        let frame = |level: u64| {
            let way = site / 7u64.pow((DEPTH - 1 - level) as u32);
            FrameId(((way * 31 + level * 611) % FUNCTIONS) as u32)
        };
        let stack = (0..DEPTH).fold(StackId::EMPTY, |at, level| {
            report.stacks.child(at, frame(level))
        });
        let count = 1 + site % 5;
        let bytes = count * (16 + site % 4000);
        let tally = Tally { count, bytes };
        report.sites.push(Site {
            context: ContextId::NONE,
            thread: ThreadId(0),
            stack,
            allocator: Allocator::Malloc,
            allocated: tally,
            high_water: tally,
            live: tally,
            temporary: Tally::default(),
            oldest_live_ms: None,
        });
        report.totals.allocated += tally;
        report.totals.high_water += tally;
        report.totals.live += tally;
    }
    report
}
