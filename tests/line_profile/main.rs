//! The tables of `#[heapray::profile]`, exactly, for every shape of code: readings come from a script.
//!
//! What is expected stands in `expected/`, a file a test; `UPDATE_EXPECTED=1` writes them anew, to be looked at.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
// Their shape is what the functions are for.
#![allow(
    clippy::boxed_local,
    clippy::let_and_return,
    clippy::needless_lifetimes,
    clippy::type_complexity,
    clippy::useless_vec
)]

mod asynchronous;
mod behaviour;
mod formats;
mod functions;
mod shapes;
mod theirs;

use std::path::Path;

use heapray::__private::line_profile::testing;

/// Readings of 10 MiB, 11 MiB, and so on.
fn rising() -> impl Iterator<Item = u64> {
    (10..200).map(|mib| mib << 20)
}

/// Runs `work` with [rising](rising) readings and compares what it prints.
#[track_caller]
fn check<R>(name: &str, work: impl FnOnce() -> R) -> R {
    let outcome = testing::run(rising(), work);
    compare(name, &outcome.printed);
    outcome.result
}

#[track_caller]
fn compare(name: &str, printed: &str) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/line_profile/expected");
    let path = dir.join(name).with_extension("txt");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, printed).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(printed, expected, "{name}\n{printed}");
}
