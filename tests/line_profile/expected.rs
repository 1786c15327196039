//! Helpers that compare tables with the expected ones.

use std::path::Path;

use heapray::__private::line_profile::testing;

/// Returns readings of 10 MiB, 11 MiB, and so on.
fn rising() -> impl Iterator<Item = u64> {
    (10..200).map(|mib| mib << 20)
}

/// Runs `work` with [rising](rising) readings and compares its output.
#[track_caller]
pub(crate) fn check<R>(name: &str, work: impl FnOnce() -> R) -> R {
    let outcome = testing::run(rising(), work);
    compare(name, &outcome.printed);
    outcome.result
}

#[track_caller]
pub(crate) fn compare(name: &str, printed: &str) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/line_profile/expected");
    let path = dir.join(name).with_extension("txt");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, printed).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(printed, expected, "{name}\n{printed}");
}
