//! Tests that Python's `pstats`, snakeviz and gprof2dot open heapray's files and find the same figures.
#![cfg(all(heapray_native, target_env = "gnu"))]

use std::env;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cpu_samples::sampled;
use crate::support::turn;
use heapray::cpu_profile::{self, SortBy, Stats};

/// Prints the calls, own and cumulative seconds of each function, as the tools read them.
const SCRIPT: &str = r#"
import contextlib, io, json, pstats, subprocess, sys
path = sys.argv[1]
stats = pstats.Stats(path)
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    stats = pstats.Stats(path)
    stats.sort_stats("tottime").print_stats()
    stats.print_callers()
    stats.print_callees()
    pstats.Stats(path).add(path).strip_dirs().sort_stats("ncalls").print_stats(5)
browser = subprocess.run([sys.executable, "-m", "pstats", path], input="sort cumtime\nstats 5\nquit\n", capture_output=True, text=True)
from snakeviz.stats import json_stats, table_rows
dot = subprocess.run([sys.executable, "-m", "gprof2dot", "-f", "pstats", path, "-n", "0", "-e", "0"], capture_output=True, text=True)
print(json.dumps({
    "functions": {key[2]: [key[1], *row[:4]] for key, row in stats.stats.items()},
    "total": stats.total_tt,
    "printed": printed.getvalue(),
    "browser": browser.stdout + browser.stderr,
    "rows": len(table_rows(stats)),
    "snakeviz": json_stats(stats),
    "dot": dot.stdout,
    "dot_errors": dot.stderr,
}))
"#;

fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/python/bin/python");
    own.is_file().then_some(own)
}

#[inline(never)]
fn leaf(ms: u64) -> u64 {
    let now = || Duration::from_nanos(heapray::capture::arch::thread_cpu_ns());
    let end = now() + Duration::from_millis(ms);
    let mut sum = 0u64;
    while now() < end {
        sum = (0..20_000u64).fold(sum, |sum, n| black_box(sum).wrapping_add(n));
    }
    sum
}

#[inline(never)]
fn middle(ms: u64) -> u64 {
    leaf(ms) ^ black_box(3)
}

fn profile() -> Stats {
    let profile = |time: Duration| {
        let ms = time.as_millis() as u64;
        cpu_profile::run(|| middle(ms) ^ leaf(ms / 3)).1
    };
    let has_middle = |stats: &Stats| stats.functions().any(|f| f.name.ends_with("::middle"));
    sampled(profile, has_middle).sort_by(SortBy::Own)
}

#[test]
fn python_tools_find_the_same_figures() {
    let _turn = turn();
    let Some(python) = python() else {
        let reason = "there is no target/tools/python (scripts/install-test-tools makes it)";
        assert!(env::var_os("CI").is_none(), "{reason}");
        println!("skipped: python_tools_find_the_same_figures, because {reason}");
        return;
    };
    let stats = profile();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cpu.pstats");
    stats.dump(&path).unwrap();
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(&path)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();

    let names: Vec<&str> = stats.functions().map(|f| f.name.as_str()).collect();
    for function in stats.functions() {
        let theirs = &found["functions"][&function.name];
        // If functions of several files have the same name, the script's table has only one of them.
        if names.iter().filter(|name| **name == function.name).count() > 1 {
            continue;
        }
        assert_eq!(theirs[0], function.line);
        assert_eq!(theirs[2], function.cumulative.samples);
        // A number in JSON may differ in its last digit.
        for (theirs, ours) in [
            (&theirs[3], function.own),
            (&theirs[4], function.cumulative),
        ] {
            assert!((theirs.as_f64().unwrap() - ours.ns as f64 / 1e9).abs() < 1e-12);
        }
    }
    let total = found["total"].as_f64().unwrap();
    assert!((total - stats.total().ns as f64 / 1e9).abs() < 1e-6);
    for (tool, what) in [
        ("printed", "Ordered by: internal time"),
        ("printed", "cpu_profile_tools::middle"),
        ("browser", "cpu_profile_tools::leaf"),
        ("snakeviz", "cpu_profile_tools::leaf"),
        ("dot", "cpu_profile_tools::middle"),
        ("dot", "digraph"),
    ] {
        // snakeviz's output is a structure.
        let text = match &found[tool] {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        assert!(
            text.contains(what),
            "{tool}: {text} {}",
            found["dot_errors"]
        );
    }
    assert_eq!(found["rows"].as_u64().unwrap() as usize, names.len());
}
