//! What the profiler says on standard error where nothing collects a log: each line once, and none where it is off.

use crate::support::Dir;
use crate::support::process::{is_alone, only, passed, test_name};

/// Returns what a process that calls `init` writes on standard error, a line of heapray's each.
fn lines(test: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let dir = Dir::new("announced");
    let mut command = only(test);
    command.env("MEMRAY_PROFILER_DIR", &dir.0);
    command.envs(variables.iter().copied());
    let output = passed(command);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = text.lines().filter(|line| line.starts_with("heapray: "));
    lines.map(str::to_owned).collect()
}

#[test]
fn recording_and_misspelt_settings_are_announced_without_a_log() {
    let test = test_name!();
    if is_alone(test) {
        heapray::init();
        heapray::init();
        heapray::profiler().shutdown().unwrap();
        return;
    }
    let found = lines(
        test,
        &[
            ("MEMRAY_PROFILER", "on"),
            ("MEMRAY_PROFILER_SAMPEL", "1"),
            ("MEMRAY_PROFILER_FUNCTION_FILE", "x"),
        ],
    );
    let [misspelt, recording] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        misspelt,
        "heapray: MEMRAY_PROFILER_SAMPEL is not a setting and changes nothing: did you mean MEMRAY_PROFILER_SAMPLE?"
    );
    let expected = "heapray: recording every allocation";
    assert!(recording.starts_with(expected), "{recording}");
    if cfg!(feature = "http") {
        assert!(
            recording.contains("/api/v1/profiler/memray/"),
            "{recording}"
        );
    }
    let found = lines(
        test,
        &[("MEMRAY_PROFILER", "off"), ("MEMRAY_PROFILER_SAMPEL", "1")],
    );
    assert!(found.is_empty(), "{found:?}");
}
