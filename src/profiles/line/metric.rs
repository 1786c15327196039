//! Takes readings.

use super::function::Metric;
use super::lines::Reading;
use crate::capture::scope::{Entered, NoExactSession, Scope, ScopeSums, session};
use crate::os::memory;

/// Way in which a call is measured, as decided at its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Resident memory, as requested.
    Resident,
    /// The heap: the session of this number records every allocation.
    Heap(u32),
    /// Resident memory, because the heap was requested and no session sees it.
    Instead(NoExactSession),
    /// Resident memory, because there was no memory for a scope.
    NoMemory,
}

/// Returns a call's metric, and its scope if it needs one.
pub(super) fn begin(metric: Metric) -> (Source, Option<Entered>) {
    match (metric, session()) {
        (Metric::Rss, _) => (Source::Resident, None),
        (Metric::Heap, Err(reason)) => (Source::Instead(reason), None),
        (Metric::Heap, Ok(number)) => match Scope::new() {
            Some(scope) => (Source::Heap(number), Some(scope.enter())),
            None => (Source::NoMemory, None),
        },
    }
}

/// Takes a reading now, as control leaves `line`.
#[inline]
#[cfg_attr(not(feature = "__test"), allow(unused_variables))]
pub(super) fn read(scope: Option<&Entered>, line: u32) -> Reading {
    #[cfg(feature = "__test")]
    if let Some(bytes) = super::testing::scripted(line) {
        let allocations = scope.map_or(0, |scope| scope.figures().allocations);
        return Reading { bytes, allocations };
    }
    match scope {
        Some(scope) => {
            let ScopeSums {
                live, allocations, ..
            } = scope.figures();
            Reading {
                bytes: live,
                allocations,
            }
        }
        None => Reading {
            bytes: memory::resident().unwrap_or(0),
            allocations: 0,
        },
    }
}

/// Returns what the reader of a report must know about its figures.
pub(super) fn note(source: Source) -> Option<&'static str> {
    match source {
        Source::Resident => None,
        Source::Heap(number) if session() == Ok(number) => None,
        Source::Heap(_) => Some("recording ended during the call: later frees are missing"),
        Source::Instead(NoExactSession::NotRecording) => Some(
            "no session records allocations (MEMRAY_PROFILER=true starts one): this is the process's resident memory, \
             not the call's heap",
        ),
        Source::Instead(NoExactSession::Sampling) => Some(
            "the session records samples only (MEMRAY_PROFILER_SAMPLE=0 records every allocation): this is the \
             process's resident memory, not the call's heap",
        ),
        Source::NoMemory => {
            Some("there was no memory to follow allocations: this is the process's resident memory")
        }
    }
}
