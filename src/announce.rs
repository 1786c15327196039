//! One line for the people who run the service: in the service's log, or on standard error as long as nothing collects a
//! log. `init` is called before everything else, and a service may have no log at all.

use std::fmt::Display;
use std::io::Write as _;

/// Announces something that is as it should be.
pub(crate) fn info(line: impl Display) {
    if tracing::dispatcher::has_been_set() {
        tracing::info!("{line}");
    } else {
        print(line);
    }
}

/// Announces something that somebody may want to change.
pub(crate) fn warn(line: impl Display) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!("{line}");
    } else {
        print(line);
    }
}

/// Announces a failure.
pub(crate) fn error(line: impl Display) {
    if tracing::dispatcher::has_been_set() {
        tracing::error!("{line}");
    } else {
        print(line);
    }
}

fn print(line: impl Display) {
    // `eprintln` panics where standard error is closed. The line is lost then, and nothing else.
    let _ = writeln!(std::io::stderr(), "heapray: {line}");
}
