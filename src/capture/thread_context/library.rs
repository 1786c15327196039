//! The library that shares the traces of threads. Runs outside of hooks.

use core::ffi::{CStr, c_int, c_void};
use std::ffi::CString;
use std::sync::OnceLock;

/// Whether a library shares traces, once that was looked up.
static IS_SHARED: OnceLock<bool> = OnceLock::new();

/// Returns whether a library shares traces, if that was looked up before.
#[inline]
pub(in crate::capture) fn is_shared() -> Option<bool> {
    IS_SHARED.get().copied()
}

/// Looks up whether a library shares traces. Not in a hook, and the thread is busy.
pub(in crate::capture) fn look_up_library() -> bool {
    *IS_SHARED.get_or_init(|| {
        let place = look_up();
        !place.is_null() && keep_loaded(place)
    })
}

/// Returns the place of the calling thread's pointer to its record, or null.
pub(super) fn look_up() -> *const c_void {
    // SAFETY: the name is a C string. Not called in a hook: `dlsym` may lock and allocate. For a thread-local symbol it returns
    // the address of the calling thread's variable.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"otel_thread_ctx_v1".as_ptr()) };
    symbol.cast_const()
}

/// Keeps the library that `place` is a variable of from being unloaded. Returns false if there is no such library.
fn keep_loaded(place: *const c_void) -> bool {
    let Some(name) = library(place) else {
        return false;
    };
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the name is a C string. Nothing is loaded that is not loaded already, so no initializer runs.
    let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
    !handle.is_null()
}

/// Returns the name of the library, or program, whose thread-local variables are around `place`.
fn library(place: *const c_void) -> Option<CString> {
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
        let mut variables = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_TLS);
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
