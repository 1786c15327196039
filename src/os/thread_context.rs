//! The trace of the calling thread, as another library shares it: OpenTelemetry's thread context
//! (<https://github.com/open-telemetry/opentelemetry-specification/blob/main/oteps/profiles/4947-thread-ctx.md>).

use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;

use crate::capture::thread::Busy;
use crate::capture::trace::TraceContext;

/// The beginning of a thread's record.
#[repr(C)]
struct Record {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    /// 1 unless the record is being written.
    valid: u8,
}

/// The place of a thread's pointer to its record.
type Place = *const *const Record;

thread_local! {
    /// That of the calling thread, once it was looked up.
    static PLACE: Cell<Place> = const { Cell::new(ptr::null()) };
}

/// Returns the trace that the calling thread works for. `None` if no library shares it, which is looked up when the process
/// calls this for the first time.
pub(crate) fn trace() -> Option<TraceContext> {
    static IS_SHARED: OnceLock<bool> = OnceLock::new();
    if !IS_SHARED.get_or_init(|| !look_up().is_null()) {
        return None;
    }
    let known = PLACE.get();
    let place = if known.is_null() { look_up() } else { known };
    PLACE.set(place);
    if place.is_null() {
        return None;
    }
    // SAFETY: by OpenTelemetry's contract the symbol is a thread-local pointer. This is the calling thread's own, which lives
    // as long as the thread; so does the library, which may not be unloaded.
    let record = unsafe { place.read() };
    if record.is_null() {
        return None;
    }
    // SAFETY: by the same contract the pointer is null or that of a record, which begins with these fields. The calling thread
    // alone changes the pointer and the record, and does neither now. No field needs an alignment.
    let record = unsafe { record.read() };
    if record.valid != 1 {
        return None;
    }
    TraceContext::from_bytes(record.trace_id, record.span_id)
}

/// Returns the calling thread's place, or null.
fn look_up() -> Place {
    let _busy = Busy::enter();
    // SAFETY: the name is a C string. Not called in a hook: `dlsym` may lock and allocate. For a thread-local symbol it returns
    // the address of the calling thread's variable.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"otel_thread_ctx_v1".as_ptr()) };
    symbol.cast()
}
