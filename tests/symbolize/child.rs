//! Tests with the program's own file stripped, split, deleted or replaced: copies of this test program are changed and run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{io, thread};

use heapray::symbolize::{ReportOptions, resolve};

use crate::process::{Shown, has_tool, here, modules, stack_frames, stack_table};

/// Set in the child: what to do with its own file first.
const ROLE: &str = "HEAPRAY_TEST_CHILD";

/// The line at which the function below makes its call.
const KNOWN_LINE: u32 = line!() + 4;

#[inline(never)]
fn known_function() -> Vec<u64> {
    std::hint::black_box(here())
}

/// The frames and notes that the child has printed.
#[derive(Debug, Default)]
struct Seen {
    frames: Vec<Shown>,
    notes: Vec<String>,
}

impl Seen {
    fn frame_of_known_function(&self) -> &Shown {
        &self.frames[0]
    }
}

/// Works only as a child of the tests below, which read its output.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let modules = modules();
    let own = std::env::current_exe().unwrap();
    match role.as_str() {
        "delete" => std::fs::remove_file(&own).unwrap(),
        "replace" => {
            std::fs::copy("/bin/true", own.with_extension("new")).unwrap();
            std::fs::rename(own.with_extension("new"), &own).unwrap();
        }
        _ => {}
    }
    let stack = known_function();
    let resolved = resolve(&stack_table(modules, &[stack]), &ReportOptions::default());
    let report = resolved.report;
    for (function, file, line) in stack_frames(&report, report.sites[0].stack) {
        println!("frame\t{function}\t{file}\t{line}");
    }
    for note in &report.conditions.notes {
        println!("note\t{note}");
    }
}

/// Runs `program` as the child.
fn run(program: &Path, role: &str) -> Seen {
    let mut command = Command::new(program);
    command
        .args(["--exact", "child::child", "--nocapture", "--test-threads=1"])
        .env(ROLE, role);
    let output = loop {
        match command.output() {
            // Another test's child was forked while this program was copied, and still has the copy open.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => thread::yield_now(),
            output => break output.unwrap(),
        }
    };
    assert!(output.status.success(), "{output:?}");
    let mut seen = Seen::default();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            // The harness prints the test's name without a line feed.
            [first, function, file, line] if first.ends_with("frame") => {
                let frame = (function.to_owned(), file.to_owned(), line.parse().unwrap());
                seen.frames.push(frame);
            }
            [first, note] if first.ends_with("note") => seen.notes.push(note.to_owned()),
            _ => {}
        }
    }
    assert!(
        !seen.frames.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    seen
}

/// A directory. It is removed when the value is dropped.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let dir =
            std::env::temp_dir().join(format!("heapray-symbolize-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir.canonicalize().unwrap())
    }

    /// Makes a copy of this program.
    pub(crate) fn program(&self) -> PathBuf {
        let copy = self.0.join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        copy
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn objcopy(args: &[&str], files: &[&Path]) {
    let status = Command::new("objcopy")
        .args(args)
        .args(files)
        .status()
        .unwrap();
    assert!(status.success(), "objcopy {args:?}");
}

fn assert_known(seen: &Seen) {
    let (function, file, line) = seen.frame_of_known_function();
    assert_eq!(function, "symbolize::child::known_function", "{seen:#?}");
    assert!(file.ends_with("tests/symbolize/child.rs"), "{file}");
    assert_eq!(*line, KNOWN_LINE);
    assert!(seen.notes.is_empty(), "{:?}", seen.notes);
}

#[test]
fn an_unchanged_copy_resolves() {
    let scratch = Scratch::new("copy");
    assert_known(&run(&scratch.program(), "plain"));
}

#[test]
fn a_program_whose_file_was_deleted_resolves() {
    let scratch = Scratch::new("deleted");
    let program = scratch.program();
    assert_known(&run(&program, "delete"));
    assert!(!program.exists());
}

#[test]
fn a_program_whose_file_was_replaced_resolves() {
    let scratch = Scratch::new("replaced");
    assert_known(&run(&scratch.program(), "replace"));
}

#[test]
fn a_stripped_program_shows_offsets_from_which_another_tool_finds_the_function() {
    if !has_tool("objcopy") || !has_tool("addr2line") {
        return;
    }
    let scratch = Scratch::new("stripped");
    let program = scratch.program();
    objcopy(&["--strip-all"], &[&program]);
    let seen = run(&program, "plain");
    assert!(
        seen.notes.iter().any(|note| note.contains("stripped")),
        "{seen:#?}"
    );
    let (function, file, line) = seen.frame_of_known_function();
    assert_eq!((file.as_str(), *line), (program.to_str().unwrap(), 0));
    let offset = function.strip_prefix("program+").unwrap();
    let output = Command::new("addr2line")
        .args(["-f", "-C", "-e"])
        .arg(std::env::current_exe().unwrap())
        .arg(offset)
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.starts_with("symbolize::child::known_function"),
        "{output}"
    );
    assert!(
        output
            .trim_end()
            .ends_with(&format!("child.rs:{KNOWN_LINE}")),
        "{output}"
    );
}

#[test]
fn a_program_without_debug_information_has_names() {
    if !has_tool("objcopy") {
        return;
    }
    let scratch = Scratch::new("names");
    let program = scratch.program();
    objcopy(&["--strip-debug"], &[&program]);
    let seen = run(&program, "plain");
    let (function, file, line) = seen.frame_of_known_function();
    assert_eq!(function, "symbolize::child::known_function");
    assert_eq!((file.as_str(), *line), (program.to_str().unwrap(), 0));
    let note = seen.notes.iter().find(|note| note.contains("debug = 1"));
    assert!(
        note.is_some_and(|note| note.contains("no debug information")),
        "{seen:#?}"
    );
}

#[test]
fn a_debug_link_is_followed() {
    if !has_tool("objcopy") {
        return;
    }
    let scratch = Scratch::new("link");
    let program = scratch.program();
    let debug = scratch.0.join("program.debug");
    objcopy(
        &["--only-keep-debug", "--compress-debug-sections=zlib"],
        &[&program, &debug],
    );
    let link = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&["--strip-all", &link], &[&program]);
    assert_known(&run(&program, "plain"));

    // A debug file of another program must not name this one's functions.
    std::fs::copy("/bin/true", &debug).unwrap();
    let seen = run(&program, "plain");
    assert!(
        seen.frame_of_known_function().0.starts_with("program+0x"),
        "{seen:#?}"
    );
}
