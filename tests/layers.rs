//! The direction of things: the capture knows nobody, and what runs in a hook imports only `core`, atomics and `libc`.
#![allow(clippy::unwrap_used)] // a test's failure

use std::path::{Path, PathBuf};

/// Parts of `src/capture` that never run in a hook and say so at their head.
const OUTSIDE_OF_HOOKS: [&str; 10] = [
    "mod.rs",
    "cpu/handler.rs",
    "cpu/sampler.rs",
    "modules/",
    "hook/patching/got.rs",
    "hook/patching/loader.rs",
    "hook/patching/pages.rs",
    "hook/portable.rs",
    "arch/portable.rs",
    "process.rs",
];

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The code of a file without comments and without what only tests see.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text
        .split("#[cfg(test)]")
        .next()
        .unwrap()
        .split("#[cfg(all(test")
        .next()
        .unwrap()
        .to_owned();
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn sources(of: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(of);
    let mut found = Vec::new();
    files(&root, &mut found);
    // Tests and models, which nothing else sees, may know whom they like.
    found.retain(|path| !path.ends_with("loom_tests.rs") && !path.ends_with("tests.rs"));
    assert!(!found.is_empty());
    found
        .iter()
        .map(|path| {
            (
                path.strip_prefix(&root)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned(),
                code(path),
            )
        })
        .collect()
}

#[test]
fn the_capture_knows_nobody() {
    for (file, code) in sources("capture") {
        for other in [
            "collector",
            "session",
            "symbolize",
            "store",
            "profiler",
            "endpoints",
            "config",
            "flight_recorder",
            "capture_scope",
            "scope",
            "line_profile",
            "memory_log",
            "cpu_profile",
            "parallel_profile",
        ] {
            assert!(
                !code.contains(&format!("crate::{other}")),
                "src/capture/{file} imports crate::{other}"
            );
        }
        assert!(
            !code.contains("heapray_report"),
            "src/capture/{file} imports the report"
        );
    }
}

#[test]
fn what_runs_in_a_hook_imports_only_core_and_libc() {
    let mut hot = 0;
    for (file, code) in sources("capture") {
        let outside = OUTSIDE_OF_HOOKS.iter().any(|part| file.starts_with(part));
        if outside {
            continue;
        }
        hot += 1;
        for forbidden in [
            "std::", "alloc::", "Vec<", "Box<", "String", "format!", "println!", "Mutex", "gimli",
        ] {
            assert!(
                !code.contains(forbidden),
                "src/capture/{file}, which runs in hooks, names `{forbidden}`"
            );
        }
    }
    assert!(hot > 10);
}

#[test]
fn nobody_knows_the_endpoints_but_the_facade() {
    for part in [
        "capture",
        "collector",
        "symbolize",
        "config",
        "store",
        "flight_recorder",
        "capture_scope",
        "line_profile",
        "cpu_profile",
        "parallel_profile",
    ] {
        for (file, code) in sources(part) {
            assert!(
                !code.contains("crate::endpoints"),
                "src/{part}/{file} imports crate::endpoints"
            );
        }
    }
}
