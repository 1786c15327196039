//! Tests against memory_profiler's own `mprof`: it reads heapray's files, and it measures the same.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{OFTEN, SWITCH, Sleeper, fresh_dir, only_file, playing, read, readings, run, touched};
use crate::support::process::{is_alone, only, passed, test_name};

/// Finds memory_profiler's command. If it is not installed, returns a text that says so.
fn mprof() -> Result<PathBuf, String> {
    let named = std::env::var_os("HEAPRAY_MPROF").map(PathBuf::from);
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/python/bin/mprof");
    let mut places = named.into_iter().chain([ours]);
    let found = places.find(|path| path.is_file());
    found.ok_or_else(|| "there is no mprof: scripts/install-test-tools installs it".into())
}

macro_rules! mprof_or_skip {
    () => {
        match mprof() {
            Ok(path) => path,
            Err(reason) => {
                assert!(std::env::var_os("CI").is_none(), "{reason}");
                println!("skipped: {reason}");
                return;
            }
        }
    };
}

/// Runs `mprof`, checks that it succeeds, and returns its output.
fn said(mprof: &Path, dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(mprof);
    let output = command
        .args(arguments)
        .current_dir(dir)
        .env("MPLBACKEND", "Agg")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "mprof {arguments:?}: {text}{errors}"
    );
    text
}

#[test]
fn mprof_plots_lists_and_finds_the_peak_of_our_files() {
    let scenario = test_name!();
    if is_alone(scenario) {
        heapray::init();
        let outer = heapray::memory_span("job::load data");
        let _sleeper = Sleeper::new();
        let inner = heapray::memory_span("job::parse<T>");
        let block = touched(64);
        readings(5);
        drop((inner, block));
        readings(5);
        drop(outer);
        heapray::shutdown().unwrap();
        return;
    }
    let mprof = mprof_or_skip!();
    let dir = fresh_dir("mprof");
    run(scenario, &dir, &[SWITCH, OFTEN]);
    let file = only_file(&dir);
    let name = file.file_name().unwrap().to_str().unwrap();
    let log = read(&file);
    let peak = |mib: &mut dyn Iterator<Item = f64>| mib.fold(0.0, f64::max);
    let memory = peak(&mut log.memory.iter().map(|reading| reading.mib));
    let child = &log.children[0];
    let of_child = peak(&mut child.readings.iter().map(|reading| reading.mib));
    let told = said(&mprof, &dir, &["peak", name]);
    assert!(told.contains(&format!("{name}\t{memory:.3} MiB")), "{told}");
    assert!(
        told.contains(&format!("Child {}\t\t\t{of_child:.3} MiB", child.id)),
        "{told}"
    );
    // The peak of one function, from the readings while it ran.
    let told = said(&mprof, &dir, &["peak", "--func", "job::load_data", name]);
    assert!(told.contains(&format!("{memory:.3} MiB")), "{told}");
    let told = said(&mprof, &dir, &["list"]);
    assert!(told.starts_with(&format!("0 {name} ")), "{told}");
    for (options, picture) in [
        (&[][..], "plot.png"),
        (&["--flame"], "flame.png"),
        (&["--slope"], "slope.png"),
        (&["--title", "a title", "--window", "0,0.05"], "window.png"),
    ] {
        let mut arguments = vec!["plot", "-o", picture];
        arguments.extend(options);
        // Without a name, `mprof` takes the latest file.
        let told = said(&mprof, &dir, &arguments);
        assert!(told.contains("Using last profile data."), "{told}");
        let picture = fs::read(dir.join(picture)).unwrap();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000);
    }
}

/// MiB that the process and its child hold during the plateau.
const OWN: usize = 96;
const CHILDS: usize = 48;

#[test]
fn mprof_run_beside_the_log_measures_the_same() {
    let scenario = test_name!();
    if is_alone(scenario) {
        if std::env::var_os("HEAPRAY_CHILD").is_some() {
            let block = touched(CHILDS);
            println!("ready");
            // Wait for the parent.
            let _ = std::io::stdin().read(&mut [0]);
            drop(block);
            return;
        }
        heapray::init();
        let mut command = only(scenario);
        command
            .env("HEAPRAY_CHILD", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut told = String::new();
        let mut out = child.stdout.take().unwrap();
        while !told.contains("ready") {
            let mut byte = [0];
            out.read_exact(&mut byte).unwrap();
            told.push(byte[0].into());
        }
        let block = touched(OWN);
        readings(12);
        std::thread::sleep(Duration::from_millis(500));
        drop(block);
        drop(child.stdin.take());
        let _ = std::io::copy(&mut out, &mut std::io::sink());
        child.wait().unwrap();
        heapray::shutdown().unwrap();
        return;
    }
    let mprof = mprof_or_skip!();
    for (ours, theirs) in [
        ("none", &[][..]),
        ("include", &["--include-children"]),
        ("each", &["--multiprocess"]),
        ("both", &["--multiprocess", "--include-children"]),
    ] {
        for (metric, backend) in [
            ("rss", "psutil"),
            ("pss", "psutil_pss"),
            ("uss", "psutil_uss"),
        ] {
            if metric != "rss" && ours != "include" {
                continue;
            }
            let dir = fresh_dir(&format!("beside-{ours}-{metric}"));
            let mut command = Command::new(&mprof);
            command.args([
                "run",
                "--output",
                "theirs",
                "--exit-code",
                "--backend",
                backend,
            ]);
            command
                .args(theirs)
                .arg(std::env::current_exe().unwrap())
                .current_dir(&dir);
            let variables = [
                SWITCH,
                ("MEMRAY_PROFILER_MEMORY_CHILDREN", ours),
                ("MEMRAY_PROFILER_MEMORY_METRIC", metric),
            ];
            passed(playing(command, scenario, &dir, &variables));
            let (ours, theirs) = (read(&only_file(&dir)), read(&dir.join("theirs")));
            agree(&plateau(&ours.memory), &plateau(&theirs.memory), metric);
            assert_eq!(ours.children.len(), theirs.children.len());
            for (our, their) in ours.children.iter().zip(&theirs.children) {
                assert_eq!(our.id, their.id);
                agree(&plateau(&our.readings), &plateau(&their.readings), metric);
            }
        }
    }
}

/// Returns the median of the upper half of all readings. The plateau lasts for most of the run.
fn plateau(readings: &[heapray_report::memory_log::Reading]) -> f64 {
    let peak = readings
        .iter()
        .map(|reading| reading.mib)
        .fold(0.0, f64::max);
    let mut upper: Vec<f64> = readings
        .iter()
        .map(|reading| reading.mib)
        .filter(|mib| *mib > peak * 0.7)
        .collect();
    upper.sort_by(f64::total_cmp);
    upper[upper.len() / 2]
}

/// Checks that two figures agree within 2 % and 1 MiB: both come from the same kernel, but from different moments.
fn agree(ours: &f64, theirs: &f64, metric: &str) {
    assert!(
        (ours - theirs).abs() <= theirs * 0.02 + 1.0,
        "{metric}: ours {ours} MiB, mprof's {theirs} MiB"
    );
}
