//! Messages that a session sends by itself, and the check for memory that runs short.

use std::fmt;
use std::fs;
use std::sync::Arc;

use super::figures::{Figures, Publisher};
use crate::capture::memory;
use crate::flight_recorder::{TriggerKind, Watch};
use crate::os::process;

/// Message about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The event log was given up, for this reason. Recording goes on; the report will have sums only.
    LogGivenUp(String),
    /// Recording has ended, for this reason. The events until then can be reported, and the session be stopped.
    RecordingEnded(TriggerKind, String),
    /// There is no room for further call stacks: new ones are cut nearer to the root, or summed up, for this reason. Sums
    /// stay exact.
    StacksCut(String),
    /// The flight recorder wants a report of this moment. Recording goes on.
    Triggered(TriggerKind, String),
    /// Memory is running short: the flight recorder may want a report soon.
    Approaching,
}

/// Receiver of a session's messages. It runs on the collector's thread: it must be quick, and never wait for the session.
pub struct Observer {
    tell: Box<dyn Fn(Notice) + Send>,
    watch: Option<Watch>,
    figures: Arc<Figures>,
}

impl Observer {
    /// Makes an observer that calls `tell`.
    pub fn new(tell: impl Fn(Notice) + Send + 'static) -> Observer {
        Observer {
            tell: Box::new(tell),
            watch: None,
            figures: Arc::default(),
        }
    }

    /// Has the flight recorder watch memory as long as the session runs.
    #[must_use]
    pub(crate) fn watching(mut self, watch: Watch) -> Observer {
        self.watch = Some(watch);
        self
    }

    /// Has the session publish its figures in `figures`.
    #[must_use]
    pub(crate) fn publishing(mut self, figures: Arc<Figures>) -> Observer {
        self.figures = figures;
        self
    }

    pub(super) fn publisher(&self) -> Publisher {
        Publisher::new(Arc::clone(&self.figures))
    }

    pub(super) fn take_watch(&mut self) -> Option<Watch> {
        self.watch.take()
    }

    /// Makes an observer that ignores all messages.
    #[must_use]
    pub fn nobody() -> Observer {
        Observer::new(|_| {})
    }

    pub(super) fn tell(&self, notice: Notice) {
        (self.tell)(notice);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// Memory that must be left besides three times the size of the tables. The tables may double, and a report of all
/// allocations has tables of its own for the live blocks. Symbolization uses this memory.
const SPARE: u64 = 64 << 20;

/// Check whether the tables have room to grow, where a limit on the process's memory matters.
///
/// A table that cannot grow would end the service: Rust aborts a process that has no memory for a `Vec`. So the collector
/// checks before each pass, and stops in time.
#[derive(Debug)]
pub struct Headroom {
    /// Set if the kernel does not overcommit memory (`vm.overcommit_memory` is 2).
    strict: bool,
}

impl Headroom {
    /// Reads the settings that do not change.
    #[must_use]
    pub fn new() -> Headroom {
        let policy = fs::read_to_string("/proc/sys/vm/overcommit_memory");
        Headroom {
            strict: policy.is_ok_and(|policy| policy.trim() == "2"),
        }
    }

    /// Returns the reason why tables of `bytes` bytes should not grow any more, or `None` if they may.
    #[must_use]
    pub fn shortage(&self, bytes: impl FnOnce() -> u64) -> Option<String> {
        if !self.strict && !process::memory_is_limited() {
            return None;
        }
        let wanted = 3 * bytes() + SPARE;
        (!memory::could_map(wanted as usize)).then(|| {
            format!(
                "the limit on this process's memory (RLIMIT_AS, RLIMIT_DATA or vm.overcommit_memory) leaves less than \
                 {} MiB for the profiler's tables",
                wanted >> 20
            )
        })
    }
}

impl Default for Headroom {
    fn default() -> Headroom {
        Headroom::new()
    }
}
