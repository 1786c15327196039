//! The trace of a thread, as another library shares it: OpenTelemetry's thread context
//! (<https://github.com/open-telemetry/opentelemetry-specification/blob/main/oteps/profiles/4947-thread-ctx.md>).
//!
//! A thread's place is looked up outside of hooks, which may then read it.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use std::ffi::CString;
use std::sync::OnceLock;

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
            self.place = look_up();
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

/// Whether a library shares traces, once that was looked up.
static IS_SHARED: OnceLock<bool> = OnceLock::new();

/// Returns whether a library shares traces, if that was looked up before.
#[inline]
pub(super) fn is_shared() -> Option<bool> {
    IS_SHARED.get().copied()
}

/// Looks up whether a library shares traces. Not in a hook, and the thread is busy.
pub(super) fn look_up_library() -> bool {
    *IS_SHARED.get_or_init(|| {
        let place = look_up();
        !place.is_null() && keep_loaded(place)
    })
}

/// Returns the calling thread's place, or null.
fn look_up() -> Place {
    // SAFETY: the name is a C string. Not called in a hook: `dlsym` may lock and allocate. For a thread-local symbol it returns
    // the address of the calling thread's variable.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"otel_thread_ctx_v1".as_ptr()) };
    symbol.cast()
}

/// Keeps the library that `place` is a variable of from being unloaded. Returns false if there is no such library.
fn keep_loaded(place: Place) -> bool {
    let Some(name) = library(place) else {
        return false;
    };
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the name is a C string. Nothing is loaded that is not loaded already, so no initializer runs.
    let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
    !handle.is_null()
}

/// Returns the name of the library, or program, whose thread-local variables are around `place`.
fn library(place: Place) -> Option<CString> {
    struct Search {
        place: usize,
        name: Option<CString>,
    }
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid `info`; `data` is the search below, exclusively.
        let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
        if info.dlpi_tls_data.is_null() || info.dlpi_phdr.is_null() || info.dlpi_name.is_null() {
            return 0;
        }
        // SAFETY: the loader's program headers, `dlpi_phnum` of them. The module stays loaded during the callback.
        let headers =
            unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let mut variables = headers.iter().filter(|header| header.p_type == libc::PT_TLS);
        let start = info.dlpi_tls_data.addr();
        let is_here = |length| (start..start.saturating_add(length)).contains(&search.place);
        if !variables.any(|header| is_here(header.p_memsz as usize)) {
            return 0;
        }
        // SAFETY: the loader's name, a C string, while the module stays loaded.
        search.name = Some(unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned());
        1
    }
    let mut search = Search {
        place: place.addr(),
        name: None,
    };
    // SAFETY: `each` expects the search, which outlives the call, and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut search).cast()) };
    search.name
}
