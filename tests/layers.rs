//! Tests of the imports in `src`, against one table of the layers. Code that runs in a hook imports only `core`, atomics and
//! `libc`.
//!
//! The tests are a program of their own, because they read the sources and link nothing of the crate.
#![allow(clippy::unwrap_used)] // tests may panic

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Parts of `src/capture` that never run in a hook, and say so in their first comment.
const OUTSIDE_OF_HOOKS: [&str; 10] = [
    "mod.rs",
    "cpu/handler.rs",
    "cpu/sampler.rs",
    "modules/",
    "thread_context/library.rs",
    "hook/got.rs",
    "hook/loader.rs",
    "hook/pages.rs",
    "hook/portable.rs",
    "arch/portable.rs",
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

/// Returns the code of a file without comments and tests.
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
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let root = src.join(of);
    let mut found = Vec::new();
    if root.is_dir() {
        files(&root, &mut found);
        found.retain(|path| path.extension().is_some_and(|it| it == "rs"));
    } else {
        found.push(root.with_extension("rs"));
    }
    // Tests and models may import any module.
    found.retain(|path| !path.ends_with("loom_tests.rs") && !path.ends_with("tests.rs"));
    assert!(!found.is_empty());
    found
        .iter()
        .map(|path| {
            (
                path.strip_prefix(if root.is_dir() { &root } else { &src })
                    .unwrap()
                    .to_string_lossy()
                    .into_owned(),
                code(path),
            )
        })
        .collect()
}

/// The layers of `src`, lowest first, each with its imports from the crate, which must be above it in this table.
const MAY_IMPORT: [(&str, &[&str]); 21] = [
    ("announce", &[]),
    ("hex", &[]),
    ("nearest", &[]),
    ("capture", &[]),
    ("alloc", &["capture"]),
    ("contexts", &["capture"]),
    ("os", &["capture"]),
    ("flight_recorder", &["capture", "os"]),
    ("config", &["flight_recorder", "nearest"]),
    ("client", &["os"]),
    ("push", &["client", "config", "os"]),
    ("bucket", &["capture", "client", "config", "os"]),
    (
        "collector",
        &["capture", "contexts", "flight_recorder", "os"],
    ),
    (
        "symbolize",
        &["capture", "collector", "config", "hex", "os"],
    ),
    (
        "session",
        &[
            "capture",
            "collector",
            "config",
            "flight_recorder",
            "os",
            "symbolize",
        ],
    ),
    ("memory_log", &["announce", "capture", "config", "os"]),
    (
        "profiler",
        &[
            "announce",
            "bucket",
            "capture",
            "client",
            "collector",
            "config",
            "contexts",
            "flight_recorder",
            "hex",
            "memory_log",
            "os",
            "push",
            "session",
            "symbolize",
        ],
    ),
    ("helper", &["os", "profiler", "symbolize"]),
    (
        "profiles",
        &[
            "announce",
            "capture",
            "collector",
            "memory_log",
            "os",
            "profiler",
            "session",
            "symbolize",
        ],
    ),
    (
        "metrics",
        &[
            "capture",
            "collector",
            "contexts",
            "flight_recorder",
            "os",
            "profiler",
        ],
    ),
    (
        "endpoints",
        &[
            "announce",
            "capture",
            "config",
            "contexts",
            "hex",
            "memory_log",
            "metrics",
            "nearest",
            "os",
            "profiler",
            "symbolize",
        ],
    ),
];

/// Returns the names after `crate::` in a file's code, alone or in braces.
fn imports(code: &str) -> BTreeSet<String> {
    let name = |text: &str| -> String {
        let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
        text.trim_start().chars().take_while(is_part).collect()
    };
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        let mut depth = 1;
        let mut item = String::new();
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => found.extend(Some(name(&std::mem::take(&mut item)))),
                _ => item.push(c),
            }
            if depth == 0 {
                break;
            }
        }
        found.insert(name(&item));
    }
    found.remove("");
    found
}

/// Returns a line for each import of a layer that is not in the table.
fn violations(room: &str, files: &[(String, String)]) -> Vec<String> {
    let allowed = MAY_IMPORT.iter().find(|(name, _)| *name == room);
    let (_, allowed) = allowed.unwrap_or_else(|| panic!("src/{room} is not in the table"));
    let mut wrong = Vec::new();
    for (file, code) in files {
        for other in imports(code) {
            if other != room && !allowed.contains(&other.as_str()) {
                wrong.push(format!("src/{room}/{file} imports crate::{other}"));
            }
        }
    }
    wrong
}

fn rooms() -> Vec<String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let entries = std::fs::read_dir(src).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.trim_end_matches(".rs").to_owned()
    };
    entries.map(name).filter(|name| name != "lib").collect()
}

#[test]
fn every_import_is_of_a_lower_layer() {
    for (at, (room, allowed)) in MAY_IMPORT.iter().enumerate() {
        for other in *allowed {
            let above = MAY_IMPORT[..at].iter().any(|(name, _)| name == other);
            assert!(above, "{room} may import {other}, which is not above it");
        }
    }
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for room in rooms() {
        let files = sources(&room);
        wrong.extend(violations(&room, &files));
        let names = files.iter().flat_map(|(_, code)| imports(code));
        used.extend(names.map(|name| (room.clone(), name)));
    }
    assert_eq!(wrong, Vec::<String>::new());
    for (room, allowed) in MAY_IMPORT {
        for other in allowed {
            let is_used = used.contains(&(room.to_owned(), (*other).to_owned()));
            assert!(is_used, "{room} does not import {other} any more");
        }
    }
    for (file, code) in sources("capture") {
        assert!(
            !code.contains("heapray_report"),
            "src/capture/{file} imports the report"
        );
    }
}

#[test]
fn an_import_of_a_higher_layer_is_found() {
    let planted = |code: &str| violations("collector", &[("x.rs".to_owned(), code.to_owned())]);
    assert_eq!(planted("use crate::capture::{clock, record};"), [""; 0]);
    assert_eq!(
        planted("use crate::session::Session;"),
        ["src/collector/x.rs imports crate::session"]
    );
    assert_eq!(
        planted("use crate::{capture::{clock, record}, os, profiler::Core};"),
        ["src/collector/x.rs imports crate::profiler"]
    );
    assert_eq!(
        planted("let at = crate::endpoints::BASE;"),
        ["src/collector/x.rs imports crate::endpoints"]
    );
}

/// The modules of `src/capture`, lowest first: each imports only modules above it in this list.
const CAPTURE: [&str; 32] = [
    "arch",
    "shared",
    "metered",
    "trace",
    "thread_context",
    "event",
    "clock",
    "control",
    "memory",
    "sys",
    "failure",
    "call_tree",
    "modules",
    "unwind",
    "ring",
    "meter",
    "state",
    "scope_blocks",
    "local",
    "thread",
    "room",
    "context",
    "sampling",
    "scope",
    "record",
    "run",
    "thread_end",
    "fork",
    "signal",
    "untracked",
    "cpu",
    "hook",
];

/// The only exception: `modules::refresh` prepares the unwinder, for callers without a session.
const RUNS_BACK: (&str, &str) = ("modules", "unwind");

/// Returns a line for each import of a module of the capture that is not above it in the list.
fn capture_violations(files: &[(String, String)]) -> Vec<String> {
    let place = |name: &str| CAPTURE.iter().position(|known| *known == name);
    let mut wrong = Vec::new();
    for (file, code) in files {
        let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let module = path.split('/').next().unwrap();
        // `src/capture/mod.rs` may import all modules.
        if module == "mod" {
            continue;
        }
        let to_capture = "super::".repeat(path.split('/').count());
        let code = code.replace(&to_capture, "crate::");
        let at = place(module).unwrap_or_else(|| panic!("{module} is not in the list"));
        for other in imports(&code.replace("crate::capture::", "crate::")) {
            let runs_back = place(&other).is_some_and(|other| other > at);
            if runs_back && (module, &*other) != RUNS_BACK {
                wrong.push(format!("src/capture/{file} imports {other}"));
            }
        }
    }
    wrong
}

#[test]
fn every_import_in_the_capture_is_of_a_lower_module() {
    assert_eq!(capture_violations(&sources("capture")), [""; 0]);
    let planted =
        |file: &str, code: &str| capture_violations(&[(file.to_owned(), code.to_owned())]);
    assert_eq!(
        planted("thread.rs", "use super::{memory, record};"),
        ["src/capture/thread.rs imports record"]
    );
    assert_eq!(
        planted(
            "ring/slot.rs",
            "super::super::thread::number(); super::thread;"
        ),
        ["src/capture/ring/slot.rs imports thread"]
    );
}

#[test]
fn code_that_runs_in_a_hook_imports_only_core_and_libc() {
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
