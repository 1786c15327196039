//! What a session tells without being asked, and when it has to: where memory runs short.

use std::fmt;
use std::fs;

use crate::capture::memory;
use crate::flight_recorder::{TriggerKind, Watch};
use crate::os::process;

/// What has happened to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The event log was given up, for this reason. Recording goes on; the report will hold sums only.
    LogGivenUp(String),
    /// Recording has ended, for this reason. What was seen until then can be asked for, and the session be stopped.
    RecordingEnded(TriggerKind, String),
    /// Call stacks have no room left: new ones are cut nearer to the root, or summed up, for this reason. Sums stay exact.
    StacksCut(String),
    /// The flight recorder wants a report of this moment. Recording goes on.
    Triggered(TriggerKind, String),
    /// Memory's end comes closer: the flight recorder may want a report soon.
    Approaching,
}

/// Whoever is told. Called on the collector's thread: it must be quick, and never wait for the session.
pub struct Observer {
    tell: Box<dyn Fn(Notice) + Send>,
    watch: Option<Watch>,
}

impl Observer {
    /// Calls `tell`.
    pub fn new(tell: impl Fn(Notice) + Send + 'static) -> Observer {
        Observer {
            tell: Box::new(tell),
            watch: None,
        }
    }

    /// Has the flight recorder look after memory as long as the session runs.
    #[must_use]
    pub(crate) fn watching(mut self, watch: Watch) -> Observer {
        self.watch = Some(watch);
        self
    }

    pub(super) fn take_watch(&mut self) -> Option<Watch> {
        self.watch.take()
    }

    /// Tells nobody.
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

/// What must be left to be mapped beside three times what the tables hold: they may double, and a report of all
/// allocations keeps books of its own over what is live. Symbols are looked up in this.
const SPARE: u64 = 64 << 20;

/// Whether the tables have room to grow, where the process's memory is limited by more than what there is.
///
/// A table that cannot grow would take the service with it: Rust ends a process that has no memory for a `Vec`. So the
/// collector looks before each pass, and stops in time.
#[derive(Debug)]
pub struct Headroom {
    /// The kernel hands out no more than it has (`vm.overcommit_memory` is 2).
    strict: bool,
}

impl Headroom {
    /// Looks up what does not change.
    #[must_use]
    pub fn new() -> Headroom {
        let policy = fs::read_to_string("/proc/sys/vm/overcommit_memory");
        Headroom {
            strict: policy.is_ok_and(|policy| policy.trim() == "2"),
        }
    }

    /// Why tables of `bytes` bytes should not grow any more; `None` if they may.
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
