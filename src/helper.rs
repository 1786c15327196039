//! What this program does as its own helper process ([`os::helper`](crate::os::helper)), and the constructor that makes it
//! one.

use std::panic::catch_unwind;

use crate::os::helper::{self, Job};
use crate::os::process::exit_at_once;
use crate::{profiler, symbolize};

/// Called by the loader before `main`, in every program that contains heapray. The number puts it after the standard
/// library's own constructor (99) and before all that the program has: those of a C++ library may do anything.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the loader calls each function of this section once, on the only thread, after the libraries that this program
// uses have been set up. `construct` needs no more than that: it takes no arguments, does not unwind, and uses only the
// parts of the standard library that work without `main` (the environment, files, memory).
#[unsafe(link_section = ".init_array.00100")]
static CONSTRUCTOR: extern "C" fn() = construct;

/// Does a helper's job, and ends. In any other process it only notes that it was called.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))] // no constructor
extern "C" fn construct() {
    if !helper::is_helper() {
        helper::is_constructed(construct as *const () as usize);
        return;
    }
    // An error is that of a conversation which the service has ended. A panic was printed, if there is where to.
    let done = catch_unwind(|| {
        let _ = serve();
    });
    exit_at_once(i32::from(done.is_err()));
}

fn serve() -> std::io::Result<()> {
    let mut service = helper::begin()?;
    match service.job {
        Job::Names => symbolize::serve_names(&mut service),
        Job::Outputs => profiler::serve_outputs(service),
    }
}
