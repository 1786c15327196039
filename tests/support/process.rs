//! Tests that run in a process of their own: this program is started again with that one test.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The environment variable that names the one test of such a process.
const ALONE: &str = "HEAPRAY_TEST_ALONE";

/// Expands to the harness's name of the test in which the macro is called.
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::support::process::name_of_test(&here)
    }};
}
pub(crate) use test_name;

/// Returns the harness's name of the test in which `here` is defined: its path without the program's name.
pub fn name_of_test<F>(_: &F) -> &'static str {
    let path = std::any::type_name::<F>();
    let path = path.strip_suffix("::here").unwrap_or(path);
    // An asynchronous test has its body in a closure.
    let path = path.strip_suffix("::{{closure}}").unwrap_or(path);
    path.split_once("::").map_or(path, |(_, test)| test)
}

/// Returns the command that starts this program again, through the emulator if cargo runs the tests in one.
pub fn this_program() -> Command {
    let program = env::current_exe().unwrap();
    let arch = env::consts::ARCH.to_uppercase();
    let runner = env::var(format!("CARGO_TARGET_{arch}_UNKNOWN_LINUX_GNU_RUNNER"));
    let runner = runner.unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(emulator) = words.next() else {
        return Command::new(program);
    };
    let mut command = Command::new(emulator);
    command.args(words).arg(program);
    command
}

/// Returns the command that runs `test` alone in this program, with its output. The harness does its own work before the
/// test begins and after it ends.
pub fn only(test: &str) -> Command {
    let mut command = this_program();
    play(&mut command, test);
    command
}

/// Tells [`left_by_killed`] that the work is done, and waits.
pub fn wait_to_be_killed() -> ! {
    println!("ready");
    loop {
        std::thread::park();
    }
}

/// Runs `test` in a process of its own with `variable` set to `dir`, until it waits to be killed, and kills it. Returns the only
/// file that it has left in `dir`.
pub fn left_by_killed(test: &str, variable: &str, dir: &Path) -> PathBuf {
    let mut child = only(test)
        .env(variable, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    assert!(output.lines().any(|line| line.unwrap().ends_with("ready")));
    child.kill().unwrap();
    child.wait().unwrap();
    let mut files = std::fs::read_dir(dir).unwrap();
    files.next().expect("the event log is left").unwrap().path()
}

/// Adds arguments to `command`, which starts this program, so that it runs `test` alone.
pub fn play(command: &mut Command, test: &str) {
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(ALONE, test);
}

/// Returns whether this process was started to run `test` alone.
pub fn is_alone(test: &str) -> bool {
    env::var_os(ALONE).is_some_and(|alone| alone == test)
}

/// Runs the command, checks that its test passed, and returns its output.
#[track_caller]
pub fn passed(mut command: Command) -> Output {
    let output = command.output().unwrap();
    let text = text(&output);
    assert!(output.status.success(), "{}: {text}", output.status);
    assert!(text.contains("1 passed"), "the test was not run: {text}");
    output
}

/// Returns everything that a process has printed.
pub fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    (stdout + String::from_utf8_lossy(&output.stderr)).into_owned()
}

/// Runs `work`, the body of `test`, in a process of its own. The test holds its turn in this process meanwhile, so that no
/// other test runs beside it. In its own process, `work` may take a turn as usual.
#[track_caller]
pub fn in_own_process(test: &str, work: impl FnOnce()) {
    if is_alone(test) {
        return work();
    }
    let _turn = super::turn();
    print!("{}", text(&passed(only(test))));
}
