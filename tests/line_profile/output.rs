//! Tests of the reports' destination: standard output, or a file to which several processes append. Each test starts
//! children.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::process::only;

#[heapray::profile(full_report = false)]
fn short(text: &str) -> usize {
    text.len()
}

#[heapray::profile]
fn long(n: u32) -> u32 {
    let next = n + 1;
    next + 1
}

#[heapray::profile(sum = true)]
fn summed(n: u32) -> u32 {
    n + 1
}

/// Runs a child's part. In the test's own process, it does nothing.
#[test]
fn child() {
    match std::env::var(ROLE).as_deref() {
        Ok("once") => {
            assert_eq!(short("abc"), 3);
        }
        Ok("often") => {
            for n in 0..200 {
                assert_eq!(long(n), n + 2);
            }
        }
        Ok("summed") => {
            assert_eq!(summed(1) + summed(2), 5);
            std::process::exit(7);
        }
        _ => {}
    }
}

/// Set in a child: its part.
const ROLE: &str = "HEAPRAY_TEST_ROLE";

fn spawn(what: &str, variables: &[(&str, &Path)]) -> Command {
    let mut command = only("output::child");
    command
        .env(ROLE, what)
        .env_remove("MEMRAY_PROFILER_FUNCTION_FILE")
        .env_remove("COMPSS_PROFILING_FILE")
        .envs(variables.iter().copied());
    command
}

fn run(what: &str, variables: &[(&str, &Path)]) -> (Output, String) {
    let output = spawn(what, variables).output().unwrap();
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    (output, stdout)
}

fn scratch(name: &str) -> PathBuf {
    let name = format!("line-profile-{name}-{}", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(std::fs::remove_file(&path));
    path
}

fn line() -> String {
    format!("{} short ", file!())
}

#[test]
fn reports_go_to_standard_output() {
    let (output, stdout) = run("once", &[]);
    assert!(output.status.success());
    assert!(
        stdout.contains(&line()) && stdout.contains(" MiB\n"),
        "{stdout}"
    );
}

#[test]
fn reports_go_to_the_file_of_a_variable_and_heaprays_comes_first() {
    let (ours, theirs) = (scratch("ours"), scratch("theirs"));
    let (_, stdout) = run("once", &[("COMPSS_PROFILING_FILE", &theirs)]);
    assert!(!stdout.contains(&line()), "{stdout}");
    let both: [(&str, &Path); 2] = [
        ("COMPSS_PROFILING_FILE", &theirs),
        ("MEMRAY_PROFILER_FUNCTION_FILE", &ours),
    ];
    run("once", &both);
    run("once", &both);
    for (path, lines) in [(ours, 2), (theirs, 1)] {
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text.lines()
                .filter(|text| text.starts_with(&line()))
                .count(),
            lines
        );
        assert_eq!(text.lines().count(), lines);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn several_processes_append_whole_reports() {
    let path = scratch("shared");
    let children: Vec<_> = (0..4)
        .map(|_| {
            let mut command = spawn("often", &[("MEMRAY_PROFILER_FUNCTION_FILE", &path)]);
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let reports: Vec<&str> = text.split_terminator("\n\n\n").collect();
    assert_eq!(reports.len(), 4 * 200);
    for report in reports {
        let rows: Vec<&str> = report.lines().collect();
        assert_eq!(rows.len(), 9, "{report}");
        assert!(rows[0].starts_with("Filename: ") && rows[8].ends_with("  }"));
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_file_that_cannot_be_written_is_reported_once_and_does_no_harm() {
    let nowhere = Path::new("/nowhere/at/all");
    let (output, stdout) = run("often", &[("MEMRAY_PROFILER_FUNCTION_FILE", nowhere)]);
    assert!(output.status.success());
    assert_eq!(stdout.matches("Filename: ").count(), 200);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.matches("/nowhere/at/all").count(), 1, "{stderr}");
}

#[test]
fn sums_are_printed_when_the_process_exits() {
    let (output, stdout) = run("summed", &[]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(stdout.matches("Filename: ").count(), 1, "{stdout}");
    assert!(stdout.contains("           2       n + 1\n"), "{stdout}");
    assert!(stdout.contains("# 2 calls\n"), "{stdout}");
}
