//! The workload `server` for as long as it takes to push some profiles: what a profiler costs that is always on.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use heapray_bench_workloads::{Result, largest_child_of, resident};

use crate::contenders::Contender;
use crate::plan::Case;
use crate::process::Done;
use crate::server::Service;
use crate::sink::Sink;

/// From one look at the service's child processes to the next. They live for some tenths of a second.
const LOOK: Duration = Duration::from_millis(20);

/// Measures a contender: `seconds` after the first profile, with one profile each `interval` seconds.
///
/// # Errors
///
/// A contender that pushes has pushed nothing: its figures would be those of a profiler that does nothing.
pub(crate) fn measure(contender: &Contender, case: &Case) -> Result<Done> {
    let options = case.options();
    let interval = options.number("interval", 10)?;
    let duration = Duration::from_secs(options.number("seconds", 2 * interval)?);
    let sink = Sink::start()?;
    let mut service = Service::start(&contender.with(&[
        ("{sink}", sink.address().to_string()),
        ("{interval}", interval.to_string()),
    ]))?;
    let children = Children::watch(service.pid());
    // The first profile is due in this time. It costs more than the others where names are kept for those.
    service.warm(Duration::from_secs(interval + 1))?;
    let before = sink.received();
    let times = service.load(duration)?;
    let after = sink.received();
    let memory = resident(service.pid())?;
    service.add("rss_end", memory.now as f64);
    service.add("rss_anonymous", memory.anonymous as f64);
    service.add("rss_most", memory.most as f64);
    service.add("children_most", children.most() as f64);
    let count = (after.pushes - before.pushes) as f64;
    if count > 0.0 {
        let pushing = times.profiler - times.recording + times.children;
        service.add("pushed", count);
        service.add("push_bytes", (after.bytes - before.bytes) as f64 / count);
        service.add("push_cpu_ns", pushing.as_nanos() as f64 / count);
    } else if contender.pushes() {
        return Err(format!(
            "no profile was pushed in {} s, {} before",
            duration.as_secs(),
            before.pushes
        )
        .into());
    }
    service.finish()
}

/// Watches the child processes of a service.
#[derive(Debug)]
struct Children {
    thread: JoinHandle<u64>,
    /// Dropped when it is enough.
    enough: mpsc::Sender<()>,
}

impl Children {
    fn watch(pid: u32) -> Children {
        let (enough, is_enough) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut most = 0;
            while is_enough.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                most = most.max(largest_child_of(pid));
            }
            most
        });
        Children { thread, enough }
    }

    /// Returns the bytes of the largest child process that was seen.
    fn most(self) -> u64 {
        drop(self.enough);
        self.thread.join().unwrap_or(0)
    }
}
