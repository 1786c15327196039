//! Loads heapray into a program that does not use it: `LD_PRELOAD=libheapray_preload.so MEMRAY_PROFILER=true program`.
//!
//! For tests only. It records from before `main`, and writes the report when the process exits.

/// Runs before the program's own constructors, and before its `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    heapray::init();
    // SAFETY: a function that lives as long as the process: what is preloaded is not unloaded.
    unsafe { libc::atexit(end) };
}

extern "C" fn end() {
    // If the profiler is disabled, or this is a forked child, there is nothing to write.
    if let Err(error) = heapray::shutdown() {
        let text = format!("heapray: {error}\n");
        if std::env::var_os("MEMRAY_PROFILER").is_some() {
            // SAFETY: the text is as long as told. (The program's standard error may be locked by now.)
            unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
        }
    }
}
