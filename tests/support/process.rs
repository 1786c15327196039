//! Tests that run their subject in a process of its own: this program again, with that one test.

use std::env;
use std::process::{Command, Output};

/// Set in such a process: the test that it runs.
const ALONE: &str = "HEAPRAY_TEST_ALONE";

/// The name by which the harness knows the test that this stands in.
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::support::process::name_of_test(&here)
    }};
}
pub(crate) use test_name;

/// The test in which `inner` is defined, without the program's name: as the harness has it.
pub fn name_of_test<F>(_: &F) -> &'static str {
    let path = std::any::type_name::<F>();
    let path = path.strip_suffix("::here").unwrap_or(path);
    // The body of an asynchronous test.
    let path = path.strip_suffix("::{{closure}}").unwrap_or(path);
    path.split_once("::").map_or(path, |(_, test)| test)
}

/// This program, to be started again: by the emulator, if cargo starts tests by one.
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

/// This program with `test` alone, whose output is the process's. What the harness does besides is done before the test
/// begins and after it ends.
pub fn only(test: &str) -> Command {
    let mut command = this_program();
    play(&mut command, test);
    command
}

/// Makes `command`, which starts this program, run `test` alone.
pub fn play(command: &mut Command, test: &str) {
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(ALONE, test);
}

/// Whether this process was started to run `test` alone.
pub fn is_alone(test: &str) -> bool {
    env::var_os(ALONE).is_some_and(|alone| alone == test)
}

/// What a process that ran its test and passed has printed.
#[track_caller]
pub fn passed(mut command: Command) -> Output {
    let output = command.output().unwrap();
    let text = text(&output);
    assert!(output.status.success(), "{}: {text}", output.status);
    assert!(text.contains("1 passed"), "the test was not run: {text}");
    output
}

/// Everything that a process has printed.
pub fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    (stdout + String::from_utf8_lossy(&output.stderr)).into_owned()
}

/// Does `work`, which is the whole of `test`, in a process of its own. Meanwhile it is the test's turn in this one, so that
/// nothing runs beside it; in its own, it may take a turn like any other.
#[track_caller]
pub fn in_own_process(test: &str, work: impl FnOnce()) {
    if is_alone(test) {
        return work();
    }
    let _turn = super::turn();
    print!("{}", text(&passed(only(test))));
}
