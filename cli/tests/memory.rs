//! Tests of `heapray memory`: recorded programs, also beside `mprof run`, and plots of good and bad files.
#![allow(clippy::unwrap_used)] // clippy knows only functions marked as tests

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heapray_report::memory_log::{MemoryLog, Reading};
use support::{Folder, err, heapray, out, run};

fn read(path: &Path) -> MemoryLog {
    MemoryLog::read(&fs::read(path).unwrap()[..]).unwrap()
}

#[test]
fn the_exit_code_is_the_programs_and_signals_are_passed_on() {
    let folder = Folder::new();
    let log = folder.name("x.dat");
    for (program, code) in [
        (&["sh", "-c", "exit 0"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["sh", "-c", "kill -TERM $$"], 143),
        (&["/nowhere/x"], 127),
        (&["/etc"], 126),
    ] {
        let mut command = heapray();
        command
            .args(["memory", "run", "-f", "-o", &log, "--"])
            .args(program);
        let output = command.output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{program:?}: {}",
            err(&output)
        );
        // A program that ends at once may leave no reading, and then no file.
        let file = Path::new(&log);
        assert!(
            !file.exists() || !read(file).memory.is_empty(),
            "{program:?}"
        );
        assert!(
            !(126..=127).contains(&code) || !file.exists(),
            "{program:?}"
        );
    }
    // The program's output is passed on unchanged.
    let script = "sleep 0.3; printf %s \"$*\"";
    let output = run(&[
        "memory", "run", "-f", "-o", &log, "sh", "-c", script, "sh", "--json", "hello",
    ]);
    assert_eq!(out(&output), "--json hello");
    assert!(err(&output).contains(&log));
    // A secret argument is passed on, but not written to the file.
    let output = run(&[
        "memory", "run", "-f", "-o", &log, "sh", "-c", script, "sh", "--token", "s3cret",
    ]);
    assert_eq!(out(&output), "--token s3cret");
    let written = std::fs::read_to_string(&log).unwrap();
    assert!(
        written.contains("sh --token (hidden)") && !written.contains("s3cret"),
        "{written}"
    );
    let output = run(&["memory", "run", "-o", &log, "true"]);
    assert_eq!(
        (
            output.status.code(),
            err(&output).contains("overwrite it with -f")
        ),
        (Some(1), true)
    );
    assert_eq!(
        run(&["memory", "run", "-T", "0", "true"]).status.code(),
        Some(64)
    );

    for signal in ["TERM", "INT", "HUP", "USR1"] {
        let mut command = heapray();
        let script = format!(
            "trap 'echo got it; exit 42' {signal}; echo ready; while :; do sleep 0.05; done"
        );
        command.args(["memory", "run", "-f", "-o", &log, "sh", "-c", &script]);
        let mut running = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let sent = Command::new("kill")
            .args(["-s", signal, &running.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(lines.next().unwrap().unwrap(), "got it", "{signal}");
        assert_eq!(running.wait().unwrap().code(), Some(42), "{signal}");
    }
}

#[test]
fn the_file_has_the_name_that_mprof_would_give_it_and_the_whole_run() {
    let folder = Folder::new();
    let mut command = heapray();
    command.args([
        "memory",
        "run",
        "-M",
        "-C",
        "-T",
        "0.01",
        "sh",
        "-c",
        "sleep 0.4 & wait",
    ]);
    assert!(
        command
            .current_dir(folder.root())
            .output()
            .unwrap()
            .status
            .success()
    );
    let [name] = &folder.files()[..] else {
        panic!()
    };
    assert!(name.starts_with("mprofile_") && name.len() == 27, "{name}");
    let log = read(&folder.path(name));
    assert_eq!(log.command.unwrap(), "sh -c 'sleep 0.4 & wait'");
    assert_eq!(log.children.len(), 1);
    let child = &log.children[0];
    let with = |reading: &&Reading| {
        child
            .readings
            .iter()
            .find(|other| other.at == reading.at)
            .copied()
    };
    // At its start, a child has no memory of its own.
    let mut both = log
        .memory
        .iter()
        .filter_map(|reading| Some((reading, with(&reading)?)));
    assert!(both.any(|(memory, child)| memory.mib > child.mib && child.mib > 0.1));
}

const GOOD: &str = "CMDLINE ./job --size 3\nMEM 10 100\nMEM 30 102\nMEM 20 104\nCHLD 7 5 101\nCHLD 7 9 103\n\
                    FUNC job::load<A&B> 10 100.5 35 103.5 0\nFUNC job::parse 12 101 13 103.2 1\n";

#[test]
fn plots_are_svg_png_and_text() {
    let folder = Folder::new();
    let file = folder.put("x.dat", GOOD.as_bytes());
    for (options, name) in [
        (&[][..], "plot"),
        (&["--flame"], "flame"),
        (&["--slope", "-t", "a <title>", "-w", "0,2"], "window"),
        (&["--no-functions"], "plain"),
    ] {
        let (svg, png) = (
            folder.name(&format!("{name}.svg")),
            folder.name(&format!("{name}.png")),
        );
        for picture in [&svg, &png] {
            let mut arguments = vec!["memory", "plot", &file, "-o", picture];
            arguments.extend(options);
            let output = run(&arguments);
            assert!(output.status.success(), "{}", err(&output));
        }
        let text = fs::read_to_string(&svg).unwrap();
        assert!(text.contains("child 7") && text.contains("memory used (in MiB)"));
        assert_eq!(
            text.contains("job::load&lt;A&amp;B&gt; 3.000s"),
            name != "plain"
        );
        assert_eq!(text.contains("a &lt;title&gt;"), name == "window");
        assert_eq!(text.contains("./job --size 3"), name != "window");
        assert_eq!(text.contains(" slope "), name == "window");
        let png = fs::read(png).unwrap();
        assert!(
            png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 8_000,
            "{}",
            png.len()
        );
    }
    for (columns, colour) in [("40", "never"), ("100", "never"), ("100", "always")] {
        let mut command = heapray();
        command
            .args(["memory", "plot", &file, "--color", colour])
            .env("COLUMNS", columns);
        let text = out(&command.output().unwrap());
        assert_eq!(text.contains('\x1b'), colour == "always");
        assert!(
            text.contains("peak 35.0 MiB after 3.5 s") && text.contains("child 7, peak 9.0 MiB"),
            "{text}"
        );
        assert!(
            text.contains("job::load<A&B> 3.000 s") && text.contains("› job::parse 2.200 s"),
            "{text}"
        );
        let width: usize = columns.parse().unwrap();
        if colour == "never" {
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
        }
    }
    let second = folder.put("y.dat", GOOD.as_bytes());
    let several = run(&[
        "memory",
        "plot",
        &file,
        &second,
        "-o",
        &folder.name("both.svg"),
    ]);
    assert!(several.status.success());
    let text = fs::read_to_string(folder.path("both.svg")).unwrap();
    assert!(text.contains("y.dat") && !text.contains("job::load"));
    let bad = run(&["memory", "plot", &file, "-o", &folder.name("x.gif")]);
    assert!(bad.status.code() == Some(64) && err(&bad).contains(".svg or .png"));
}

#[test]
fn bad_files_are_reported_with_line_and_reason() {
    let folder = Folder::new();
    for (text, problem) in [
        ("MEM 1 2\n\nMEM 1 2\n", "line 2: it is empty"),
        (
            "MEM 1 2\nMEM one 2\nMEM 1 2\n",
            "line 2: the memory in MiB is \"one\", which is not a number",
        ),
        (
            "FUNC my f 1 2 3 4 0\n",
            "line 1: the memory in MiB is \"f\"",
        ),
        ("CMDLINE x\n", "there is no reading of memory in it"),
        ("", "there is no reading of memory in it"),
        ("\u{7f}ELF\n", "line 1: there is no blank"),
    ] {
        let file = folder.put("bad.dat", text.as_bytes());
        let output = run(&["memory", "plot", &file]);
        assert_eq!(output.status.code(), Some(2), "{text:?}");
        assert!(
            err(&output).contains(problem) && err(&output).contains("bad.dat"),
            "{}",
            err(&output)
        );
    }
    // One of many that has no reading is left out, and named.
    let empty = folder.put("empty.dat", b"CMDLINE x\n");
    let good = folder.put(
        "good.dat",
        b"MEM 1 1795278525.7620\nMEM 2 1795278525.8620\n",
    );
    let output = run(&["memory", "plot", &empty, &good]);
    assert!(output.status.success() && out(&output).contains("peak 2.0 MiB"));
    let told = err(&output);
    assert!(
        told.contains("empty.dat is left out: there is no reading"),
        "{told}"
    );
    let output = run(&["memory", "plot", &empty, &empty]);
    assert_eq!(output.status.code(), Some(2));
    // The file of a killed mprof is drawn up to its last complete line.
    let cut = folder.put(
        "cut.dat",
        b"MEM 1 1795278525.7620\nMEM 2 1795278525.8620\nMEM 3 179",
    );
    let output = run(&["memory", "plot", &cut]);
    assert_eq!(output.status.code(), Some(2));
    assert!(out(&output).contains("peak 2.0 MiB") && err(&output).contains("line 3: it ends"));
    assert_eq!(
        run(&["memory", "plot", &folder.name("none.dat")])
            .status
            .code(),
        Some(1)
    );
}

/// Finds memory_profiler's command, or returns the reason why it is missing.
fn mprof() -> Result<PathBuf, String> {
    let named = std::env::var_os("HEAPRAY_MPROF").map(PathBuf::from);
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/python/bin/mprof");
    let found = named.into_iter().chain([ours]).find(|path| path.is_file());
    found.ok_or_else(|| "there is no mprof: scripts/install-test-tools installs it".into())
}

#[test]
fn heapray_memory_and_mprof_run_measure_the_same_for_a_program() {
    let mprof = match mprof() {
        Ok(mprof) => mprof,
        Err(reason) => {
            assert!(std::env::var_os("CI").is_none(), "{reason}");
            println!("skipped: {reason}");
            return;
        }
    };
    // Mebibytes of the process and of its child.
    let python = mprof.with_file_name("python");
    // The script is one line: mprof would write a newline into its own file, and could not read the file.
    let script = "import os, time; child = os.fork(); block = b'x' * ((40 if child else 90) << 20); time.sleep(1.5); \
                  os.waitpid(child, 0) if child else os._exit(0)";
    let plateau = |readings: &[Reading]| {
        let peak = readings
            .iter()
            .map(|reading| reading.mib)
            .fold(0.0, f64::max);
        let upper = readings
            .iter()
            .map(|reading| reading.mib)
            .filter(|mib| *mib > peak * 0.9);
        let mut upper: Vec<f64> = upper.collect();
        upper.sort_by(f64::total_cmp);
        upper[upper.len() / 2]
    };
    for options in [
        &[][..],
        &["--include-children"],
        &["--multiprocess"],
        &["-M", "-C"],
    ] {
        let folder = Folder::new();
        let [ours, theirs] = ["ours.dat", "theirs.dat"].map(|name| folder.name(name));
        let mut command = heapray();
        command
            .args(["memory", "run"])
            .args(options)
            .args(["-o", &ours, "--"]);
        assert!(
            command
                .arg(&python)
                .args(["-c", script])
                .status()
                .unwrap()
                .success()
        );
        let mut command = Command::new(&mprof);
        command
            .args(["run", "--nopython"])
            .args(options)
            .args(["-o", &theirs]);
        let run = command
            .arg(&python)
            .args(["-c", script])
            .stdout(Stdio::null())
            .status();
        assert!(run.unwrap().success());
        let [ours, theirs] = [ours, theirs].map(|file| read(Path::new(&file)));
        assert_eq!(ours.children.len(), theirs.children.len(), "{options:?}");
        let mut pairs = vec![(plateau(&ours.memory), plateau(&theirs.memory))];
        let children = ours.children.iter().zip(&theirs.children);
        pairs.extend(children.map(|(a, b)| (plateau(&a.readings), plateau(&b.readings))));
        for (our, their) in pairs {
            // The pages of two runs of an interpreter differ by some hundred kilobytes.
            assert!(
                (our - their).abs() <= their * 0.02 + 1.0,
                "{options:?}: {our} and {their} MiB"
            );
        }
        assert_eq!(ours.command, theirs.command);
    }
}
