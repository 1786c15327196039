//! The workloads as a shared library that Python calls, because memray profiles Python processes.

use std::ffi::{CStr, c_char, c_int};

use heapray_bench_workloads::{Unprofiled, run};

/// Runs the workload that `arguments` (separated by spaces) name. Returns 0 on success.
///
/// # Safety
///
/// `arguments` ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapray_bench_run(arguments: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let arguments = unsafe { CStr::from_ptr(arguments) }.to_string_lossy();
    let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
    match run(&arguments, || Ok(Unprofiled)) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("error: {error}");
            1
        }
    }
}
