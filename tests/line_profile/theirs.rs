//! Tests that memory_profiler itself prints the same bytes for the same readings.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use heapray::__private::line_profile::testing;

#[heapray::profile(semantics = "memory_profiler")]
fn with_one_decimal(rounds: u32) -> usize {
    let mut kept = Vec::new();

    // Grows and shrinks.
    for round in 0..rounds {
        if round % 3 == 0 {
            kept.clear();
            continue;
        }
        kept.push(round);
    }
    let sum: u32 = kept
        .iter()
        .map(|n| {
            let doubled = n * 2;
            doubled
        })
        .sum();
    while kept.pop().is_some() {}
    sum as usize + "wide: äöü".len()
}

#[heapray::profile(semantics = "memory_profiler", precision = 3)]
fn with_three_decimals(rounds: u32) -> u32 {
    let mut sum = 0;
    for round in 0..rounds {
        let twice = round * 2;
        sum += twice;
    }
    sum
}

/// Returns multiples of a page around `middle`, among them all ties at one decimal (quarters of a MiB).
fn readings(seed: u64, middle: u64) -> Vec<u64> {
    let mut state = seed;
    let step = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (middle + (state >> 50)) * 4096
    };
    std::iter::repeat_with(step).take(500).collect()
}

/// Returns Python's output, or `None` if Python is not installed.
fn theirs(source: &str, first: u32, precision: u32, trace: &[(u32, u64)]) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/tools/python/bin/python");
    if !python.exists() {
        assert!(std::env::var_os("CI").is_none(), "no {}", python.display());
        println!(
            "skipped: {} is not there (scripts/install-test-tools)",
            python.display()
        );
        return None;
    }
    let lines = 1 + trace.iter().map(|(line, _)| line).max().unwrap() - first;
    let job = serde_json::json!({
        "file": source, "first": first, "count": lines, "precision": precision, "readings": trace,
    });
    let mut child = Command::new(python)
        .arg(root.join("tests/line_profile/theirs.py"))
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(job.to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tables_are_memory_profilers_byte_for_byte() {
    for seed in 1..4 {
        // Up to 64 MiB above 0, and above 2 GiB, where the columns get wide.
        for middle in [0, 1 << 19] {
            for (precision, function) in [(1, true), (3, false)] {
                let outcome = testing::run(readings(seed, middle), || {
                    if function {
                        with_one_decimal(9);
                    } else {
                        with_three_decimals(9);
                    }
                });
                let (first, _) = outcome.readings[0];
                let Some(theirs) = theirs(file!(), first, precision, &outcome.readings) else {
                    return;
                };
                assert!(theirs.lines().count() > 8);
                assert_eq!(outcome.printed, theirs);
            }
        }
    }
}
