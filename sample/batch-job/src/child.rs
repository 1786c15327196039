//! The part of the job that runs in its own process, which is a child in the memory log.

use std::error::Error;
use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

/// Starts this program once more and waits for it.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    let status = Command::new(std::env::current_exe()?)
        .arg("child")
        // The child's memory is in this process's log.
        .env_remove("MEMRAY_PROFILER_MEMORY_LOG")
        .env_remove("MEMRAY_PROFILER")
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the child ended with {status}").into())
    }
}

/// Keeps 64 MiB for half a second.
pub(crate) fn work() {
    let mut held = vec![0_u8; 64 << 20];
    held.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::thread::sleep(Duration::from_millis(500));
    black_box(held);
}
