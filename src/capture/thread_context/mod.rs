//! The trace of a thread, as another library shares it: OpenTelemetry's thread context
//! (<https://github.com/open-telemetry/opentelemetry-specification/blob/main/oteps/profiles/4947-thread-ctx.md>).
//!
//! A thread's place is looked up outside of hooks, which may then read it.

mod library;

use core::ptr;

pub(super) use self::library::{is_shared, look_up_library};
use super::trace::TraceContext;

/// The beginning of a thread's record.
#[repr(C)]
#[derive(Clone, Copy)]
struct Record {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    /// 1 unless the record is being written.
    valid: u8,
}

/// The place of a thread's pointer to its record.
type Place = *const *const Record;

/// Reads the trace that the owner of a state works for.
#[derive(Debug)]
pub(super) struct ThreadContext {
    /// Null until it was looked up, and if there is none.
    place: Place,
    /// The last trace that was [noticed](ThreadContext::notice) in a run.
    noticed: Option<TraceContext>,
}

impl ThreadContext {
    /// That of no thread.
    pub(super) const NONE: ThreadContext = ThreadContext {
        place: ptr::null(),
        noticed: None,
    };

    /// Looks the place up, unless it is known. Called by the thread itself, not in a hook, and busy.
    pub(super) fn follow(&mut self) {
        if self.place.is_null() {
            self.place = library::look_up().cast();
        }
    }

    /// Keeps the trace that the thread works for now, if there is one. Called by the thread itself.
    #[inline(always)]
    pub(super) fn notice(&mut self) {
        if !self.place.is_null() {
            self.notice_shared();
        }
    }

    #[cold]
    fn notice_shared(&mut self) {
        if let Some(trace) = self.now() {
            self.noticed = Some(trace);
        }
    }

    /// Replaces the trace that was kept. Returns it.
    pub(super) fn replace(&mut self, trace: Option<TraceContext>) -> Option<TraceContext> {
        core::mem::replace(&mut self.noticed, trace)
    }

    /// Returns the trace that the thread works for now. Called by the thread itself.
    pub(super) fn now(&self) -> Option<TraceContext> {
        // SAFETY: by OpenTelemetry's contract the symbol is a thread-local pointer. The place is null or that of the calling
        // thread, which lives as long as the thread and the library, and `keep_loaded` keeps that.
        let record = unsafe { self.place.as_ref()? };
        // SAFETY: by the same contract the pointer is null or that of a record, which begins with these fields. Only the
        // calling thread changes pointer and record, and does neither now, unless it was interrupted: then `valid` is not 1.
        // No field needs an alignment.
        let record = unsafe { *record.as_ref()? };
        (record.valid == 1)
            .then(|| TraceContext::from_bytes(record.trace_id, record.span_id))
            .flatten()
    }
}
