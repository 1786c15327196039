//! The programs as a shared library, for profilers of another language's processes: memray runs them inside of Python.

#[path = "../src/process.rs"]
mod process;
#[path = "../src/schedule.rs"]
mod schedule;

use leak_programs::Program;
use std::ffi::{CStr, c_char};
use std::time::Duration;

/// Executes the program `name` so that it takes `seconds`. Returns whether there is a program of that name.
///
/// # Safety
///
/// `name` is a text that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn run_program(name: *const c_char, seconds: f64) -> bool {
    // SAFETY: as the caller promises.
    let name = unsafe { CStr::from_ptr(name) };
    let program = name.to_str().ok().and_then(Program::named);
    let real = Duration::try_from_secs_f64(seconds).ok();
    let (Some(program), Some(real)) = (program, real) else {
        return false;
    };
    process::run(&program, real);
    true
}
