//! Tests that other tools open heapray's files and find the same figures: `go tool pprof`, speedscope in Chromium, and
//! memray, whose `transform` and `stats --json` are compared with heapray's.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

use heapray_report::Report;
use heapray_report::formats::{Format, Options};
use heapray_report::memray::{Version, read, write_all};
use heapray_report::model::{Allocator, ContextId, Event, Frame, FrameId, Module, Place, ThreadId};
use heapray_report::stats::{self, JsonOptions};
use heapray_report::views::{Measure, Unit, by_location};
use serde_json::Value;
use support::{Program, skeleton, stack, sum_up};

/// Finds a tool's command, or returns the reason why it is missing.
fn tool(variable: &str, name: &str, elsewhere: &[&str]) -> Result<PathBuf, String> {
    let named = env::var_os(variable).map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let in_path = env::split_paths(&path).map(|directory| directory.join(name));
    let elsewhere = elsewhere.iter().map(PathBuf::from);
    let mut candidates = named.into_iter().chain(in_path).chain(elsewhere);
    let found = candidates.find(|path| path.is_file());
    found.ok_or_else(|| format!("no {name} in {variable} or PATH"))
}

fn memray() -> Result<PathBuf, String> {
    let places = [
        "/opt/heapray-venv/bin/memray",
        "/opt/memray-venv/bin/memray",
    ];
    let found = tool("HEAPRAY_MEMRAY", "memray", &places)?;
    let output = Command::new(&found).arg("--version").output();
    let version = output.map_err(|e| format!("{} does not run: {e}", found.display()))?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    match version.starts_with("1.20.") {
        true => Ok(found),
        false => Err(format!("{} is {version}, not 1.20", found.display())),
    }
}

/// Expands to a tool's command. Without the tool the test is skipped, or fails if `CI` is set.
macro_rules! or_skip {
    ($tool:expr) => {
        match $tool {
            Ok(path) => path,
            Err(reason) => {
                assert!(env::var_os("CI").is_none(), "{reason}");
                println!("skipped: {}, because {reason}", stringify!($tool));
                return;
            }
        }
    };
}

fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{errors}");
    text
}

fn write(format: Format, report: &Report, options: &Options, path: &Path) {
    let mut out = BufWriter::new(File::create(path).unwrap());
    format.write(report, options, &mut out).unwrap();
}

/// Makes a service of three threads with several allocators. All sizes differ.
fn service() -> Program {
    let mut report = skeleton(3);
    report.frames[7].line = 700; // more than 2^31 is negative in memray
    let paths: [&[u32]; 7] = [
        &[0, 1, 2],
        &[0, 1, 4],
        &[0, 3],
        &[0, 1, 1, 2],
        &[6],
        &[0, 7],
        &[],
    ];
    let mut events = Vec::new();
    for n in 0..200u64 {
        // Each path has another number of calls, because memray breaks ties by the order of a hash map.
        let path = paths[(0..7).find(|i| n % 28 < (i + 1) * (i + 2) / 2).unwrap() as usize];
        events.push(Event::Allocation {
            context: ContextId::NONE,
            thread: ThreadId(n as u32 % 3),
            allocator: [Allocator::Malloc, Allocator::Calloc][n as usize / 7 % 2],
            address: 0x10_0000 * (1 + n),
            size: 1 << (n % 20),
            stack: stack(&mut report, path),
        });
        if n % 4 == 3 {
            events.push(Event::Deallocation {
                thread: ThreadId(0),
                allocator: Allocator::Free,
                address: 0x10_0000 * (n - 1),
                size: 0,
            });
        }
    }
    sum_up(&mut report, &events);
    Program { report, events }
}

/// Places the report's frames in this test program, at addresses of other functions. The third frame is inlined.
fn place_in(report: &mut Report, binary: &Path) {
    report.modules = vec![
        Module {
            path: "/lib/libc.so.6".into(),
            build_id: "0123456789abcdef".into(),
            start: 0x7f00_0000_0000,
            limit: 0x7f00_0010_0000,
            offset: 0x2_6000,
            ..Module::default()
        },
        Module {
            path: binary.to_str().unwrap().into(),
            build_id: String::new(),
            start: 0x5555_5560_0000,
            limit: 0x5555_5580_0000,
            offset: 0x10_0000,
            ..Module::default()
        },
    ];
    report.about.command_line = binary.to_str().unwrap().into();
    report.places = (0..report.frames.len() as u64)
        .map(|n| Place {
            module: Some(1),
            address: 0x5555_5560_0000 + 0x1000 * n,
            inlined: n == 2,
        })
        .collect();
    report.places[6].module = Some(0);
    report.places[6].address = 0x7f00_0000_1234;
}

/// Returns the bytes that each line allocated itself, from `pprof -top`.
fn top(pprof: &str) -> BTreeMap<String, u64> {
    let mut rows = pprof
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("flat"));
    assert!(rows.next().is_some(), "{pprof}");
    let flat = |line: &str| -> Option<(String, u64)> {
        let mut words = line.split_whitespace();
        let flat = words.next()?.trim_end_matches('B').parse().ok()?;
        let name: Vec<&str> = words.skip(4).collect();
        Some((name.join(" ").replace(" (inline)", ""), flat))
    };
    rows.filter_map(flat).filter(|row| row.1 > 0).collect()
}

/// Returns the same from heapray's own view.
fn by_line(report: &Report, measure: Measure, unit: Unit) -> BTreeMap<String, u64> {
    let mut lines = BTreeMap::new();
    for location in by_location(report) {
        let name = match location.frame {
            None => "<stack trace unavailable>".into(),
            Some(FrameId(frame)) => {
                let frame = report.frames[frame as usize];
                let [function, file] =
                    [frame.function, frame.file].map(|name| report.strings.get(name));
                match frame.line {
                    0 => format!("{function} {file}"),
                    line => format!("{function} {file}:{line}"),
                }
            }
        };
        let sum = unit.of(measure.of_sums(&location.sums));
        if sum > 0 {
            *lines.entry(name).or_default() += sum;
        }
    }
    lines
}

#[test]
fn pprof_finds_the_same_lines_and_sums_with_and_without_the_binary() {
    let go = or_skip!(tool("HEAPRAY_GO", "go", &["/usr/local/go/bin/go"]));
    let directory = directory("pprof");
    let binary = directory.join("leaky");
    fs::copy(env::current_exe().unwrap(), &binary).unwrap();
    let mut report = service().report;
    // pprof takes this name for C++ with template arguments.
    report.frames[4].function = report
        .strings
        .intern("<alloc::vec::Vec<T,A> as core::iter::Extend<(K, V)>>::extend::<{{closure}}(u8)>");
    report.frames[5] = Frame {
        function: report.strings.intern("named"),
        ..report.frames[5]
    };
    for placed in [false, true] {
        if placed {
            place_in(&mut report, &binary);
        }
        let file = directory.join(format!("placed-{placed}.pb.gz"));
        write(Format::Pprof, &report, &Options::default(), &file);
        for with_binary in [false, true] {
            for (index, measure, unit) in [
                (None, Measure::Live, Unit::Bytes),
                (Some("inuse_space"), Measure::Live, Unit::Bytes),
                (Some("inuse_objects"), Measure::Live, Unit::Count),
                (Some("peak_space"), Measure::HighWater, Unit::Bytes),
                (Some("peak_objects"), Measure::HighWater, Unit::Count),
            ] {
                let mut command = Command::new(&go);
                command
                    .args([
                        "tool",
                        "pprof",
                        "-top",
                        "-lines",
                        "-nodefraction=0",
                        "-nodecount=10000",
                    ])
                    .arg(match unit {
                        Unit::Bytes => "-unit=B",
                        Unit::Count => "-unit=count",
                    })
                    .args(index.map(|index| format!("-sample_index={index}")))
                    .env("PPROF_TMPDIR", &directory);
                if with_binary {
                    command.arg(&binary);
                }
                let theirs = top(&run(command.arg(&file)));
                let ours = by_line(&report, measure, unit);
                assert_eq!(
                    theirs, ours,
                    "{index:?}, places: {placed}, binary: {with_binary}"
                );
            }
        }
        let raw = |file| run(Command::new(&go).args(["tool", "pprof", "-raw"]).arg(file));
        let labelled = directory.join("labelled.pb.gz");
        let mut options = Options::default();
        options.pprof.labels = "thread,allocator".parse().unwrap();
        write(Format::Pprof, &report, &options, &labelled);
        let with_labels = raw(&labelled);
        assert!(
            with_labels.contains("allocator:[calloc] thread:[main]"),
            "{with_labels}"
        );
        let raw = raw(&file);
        assert!(!raw.contains("allocator:"), "{raw}");
        if placed {
            let mapping = "1: 0x555555600000/0x555555800000/0x100000";
            assert!(raw.contains(mapping), "{raw}");
            assert!(raw.contains("[FN][FL][LN][IN]"), "{raw}");
        }
    }
}

/// Finds Chromium and speedscope's own page.
fn speedscope() -> Result<(PathBuf, PathBuf), String> {
    let chromium = tool(
        "HEAPRAY_CHROMIUM",
        "chromium",
        &["/usr/bin/chromium-browser"],
    )?;
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools");
    let page = tests.join("node_modules/speedscope/dist/release/index.html");
    match page.is_file() {
        true => Ok((chromium, page)),
        false => Err("speedscope is not installed in report/tests/tools".into()),
    }
}

#[test]
fn speedscope_itself_opens_the_file() {
    let (chromium, page) = or_skip!(speedscope());
    let directory = directory("speedscope");
    let program = service();
    let mut seen = String::new();
    for by_thread in [false, true] {
        let options = Options {
            by_thread,
            title: Some("a </script><b>title".into()),
            ..Options::default()
        };
        let mut file = Vec::new();
        Format::Speedscope
            .write(&program.report, &options, &mut file)
            .unwrap();
        // speedscope's own command passes a file to its page like this.
        let script = directory.join("profile.js");
        let bytes: String = file.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        let script_text =
            format!("speedscope.loadFileFromBase64('x.speedscope.json', btoa('{bytes}'))");
        fs::write(&script, script_text).unwrap();
        seen = run(Command::new(&chromium)
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            .args([
                "--allow-file-access-from-files",
                "--virtual-time-budget=20000",
                "--dump-dom",
            ])
            .arg(format!(
                "--user-data-dir={}",
                directory.join("chromium").display()
            ))
            .arg(format!(
                "file://{}#localProfilePath={}",
                page.display(),
                script.display()
            )));
        let title = "<title>a &lt;/script&gt;&lt;b&gt;title - speedscope</title>";
        assert!(seen.contains(title), "{seen}");
    }
    assert!(seen.contains("high-water mark, bytes: main"), "{seen}");
}

/// Runs `memray transform FORMAT`.
fn transform(memray: &Path, format: &str, capture: &Path, out: &Path) -> String {
    run(Command::new(memray)
        .args(["transform", format, "-f", "-o"])
        .args([out, capture]));
    fs::read_to_string(out).unwrap()
}

/// Sums counts and sizes by call stack. memray adds up threads and allocators, and names only one of them.
fn csv_sums(text: &str) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut lines = text.lines();
    let columns = "allocator,num_allocations,size,tid,thread_name,stack_trace";
    assert_eq!(lines.next(), Some(columns));
    for line in lines {
        let cells: Vec<&str> = line.splitn(6, ',').collect();
        assert!(Allocator::ALL.iter().any(|known| known.name() == cells[0]));
        assert!(cells[4].starts_with("0x"), "{line}");
        let sum = sums.entry(cells[5].to_owned()).or_default();
        sum.0 += cells[1].parse::<u64>().unwrap();
        sum.1 += cells[2].parse::<u64>().unwrap();
    }
    sums
}

/// Sums costs by call chain of function and module.
fn gprof2dot_sums(text: &str) -> BTreeMap<Vec<String>, u64> {
    let file: Value = serde_json::from_str(text).unwrap();
    let mut sums = BTreeMap::new();
    for event in file["events"].as_array().unwrap() {
        let chain = event["callchain"].as_array().unwrap().iter();
        let names: Vec<String> = chain
            .map(|index| file["functions"][index.as_u64().unwrap() as usize].to_string())
            .collect();
        *sums.entry(names).or_default() += event["cost"][0].as_u64().unwrap();
    }
    sums.retain(|names: &Vec<String>, _| !names[0].contains("<stack trace unavailable>"));
    sums
}

/// Sums weights by unit and call stack.
fn speedscope_sums(text: &str) -> BTreeMap<(String, Vec<String>), u64> {
    let file: Value = serde_json::from_str(text).unwrap();
    let mut sums = BTreeMap::new();
    for profile in file["profiles"].as_array().unwrap() {
        let samples = profile["samples"].as_array().unwrap().iter();
        for (sample, weight) in samples.zip(profile["weights"].as_array().unwrap()) {
            let names: Vec<String> = sample
                .as_array()
                .unwrap()
                .iter()
                .map(|index| file["shared"]["frames"][index.as_u64().unwrap() as usize].to_string())
                .collect();
            let key = (profile["unit"].to_string(), names);
            *sums.entry(key).or_default() += weight.as_u64().unwrap();
        }
    }
    sums.retain(|(_, names), _| !names[0].contains("<stack trace unavailable>"));
    sums
}

/// Checks that heapray's files from `capture` equal memray's own.
fn compare(memray: &Path, capture: &Path, directory: &Path) {
    let capture_read = read(File::open(capture).unwrap()).unwrap();
    let report = &capture_read.report;
    let ours = |format: Format| {
        let mut out = Vec::new();
        format.write(report, &Options::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    // heapray's look-alikes of `;` and `|` are in the capture already, and so in memray's files.
    let theirs = |format: &str| transform(memray, format, capture, &directory.join(format));
    let plain = |text: String| text.replace('\u{37e}', ";").replace('\u{2223}', "|");
    assert_eq!(
        speedscope_sums(&ours(Format::Speedscope)),
        speedscope_sums(&unescaped(&theirs("speedscope")))
    );
    assert_eq!(
        gprof2dot_sums(&ours(Format::Gprof2dot)),
        gprof2dot_sums(&unescaped(&theirs("gprof2dot")))
    );
    let six_columns: Vec<String> = ours(Format::Csv).lines().map(first_six_cells).collect();
    let (ours, theirs) = (
        csv_sums(&plain(six_columns.join("\n"))),
        csv_sums(&plain(theirs("csv"))),
    );
    assert_eq!(ours, theirs);

    let json = directory.join("stats.json");
    run(Command::new(memray)
        .env("TZ", "UTC")
        .args(["stats", "--json", "-n", "7", "-f", "-o"])
        .args([&json, capture]));
    let theirs = fs::read_to_string(&json).unwrap();
    let options = JsonOptions {
        num_largest: 7,
        facts: Some(capture_read.facts),
    };
    let mut ours = Vec::new();
    stats::json(report, &options, &mut ours).unwrap();
    let ours = String::from_utf8(ours).unwrap();
    serde_json::from_str::<Value>(&ours).unwrap();
    let (same, _) = ours.split_once(",\n  \"heapray\": {").unwrap();
    let mut theirs = unescaped(&theirs);
    if report.about.producer != "memray" {
        // memray counts the last record of a capture from heapray as an event.
        let key = |events| format!("\"total_allocations\": {events},");
        let events = report.about.events;
        theirs = theirs.replace(&key(events + 1), &key(events));
    }
    for (ours, theirs) in format!("{same}\n}}").lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(format!("{same}\n}}"), theirs);
}

/// Returns JSON with look-alikes replaced by the originals.
fn unescaped(json: &str) -> String {
    json.replace("\\u037e", ";").replace("\\u2223", "|")
}

/// Cuts off the columns that memray's file does not have.
fn first_six_cells(line: &str) -> String {
    let mut quoted = false;
    let mut commas = line.char_indices().filter(|&(_, c)| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    let (end, _) = commas.nth(5).expect("more than six cells");
    line[..end].to_owned()
}

#[test]
fn files_from_heaprays_capture_equal_those_of_memray() {
    let memray = or_skip!(memray());
    let directory = directory("transform-ours");
    let Program {
        mut report,
        mut events,
    } = service();
    // memray has other names for frames without a name.
    events.retain(
        |event| !matches!(event, Event::Allocation { stack, .. } if *stack == Default::default()),
    );
    sum_up(&mut report, &events);
    let capture = directory.join("ours.bin");
    let out = BufWriter::new(File::create(&capture).unwrap());
    write_all(&report, events.into_iter().map(Ok), Version::V13, out).unwrap();
    compare(&memray, &capture, &directory);
}

#[test]
fn files_from_a_python_capture_equal_those_of_memray() {
    let memray = or_skip!(memray());
    let directory = directory("transform-python");
    let capture = directory.join("python.bin");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memray/program.py");
    run(Command::new(&memray)
        .args(["run", "-q", "-f", "-o"])
        .args([&capture, &program]));
    compare(&memray, &capture, &directory);
}
