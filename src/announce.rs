//! One line for the people who run the service: in the service's log, or on standard error as long as nothing collects a
//! log. `init` is called before everything else, and a service may have no log at all.

use std::fmt::Display;
use std::io::Write as _;

/// Announces something that is as it should be.
#[cfg(feature = "http")]
pub(crate) fn info(line: impl Display) {
    if !printed(&line) {
        tracing::info!("{line}");
    }
}

/// Prints a line that the log has in a form of its own, if nothing collects a log.
pub(crate) fn where_nothing_logs(line: impl Display) {
    printed(&line);
}

/// Announces something that somebody may want to change.
pub(crate) fn warn(line: impl Display) {
    if !printed(&line) {
        tracing::warn!("{line}");
    }
}

/// Announces a failure.
pub(crate) fn error(line: impl Display) {
    if !printed(&line) {
        tracing::error!("{line}");
    }
}

/// Prints `line` if nothing collects a log. Returns whether it did.
fn printed(line: &impl Display) -> bool {
    let is_needed = !tracing::dispatcher::has_been_set();
    if is_needed {
        // `eprintln` panics where standard error is closed. The line is lost then, and nothing else.
        let _ = writeln!(std::io::stderr(), "heapray: {line}");
    }
    is_needed
}
