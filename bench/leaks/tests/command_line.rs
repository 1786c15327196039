//! The binary: lists the programs and runs them as real processes.

use leak_programs::Program;
use std::process::{Command, Output};

fn execute(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapray-leak-programs"));
    command.args(arguments).output().expect("the binary starts")
}

#[test]
fn the_list_has_each_program_and_the_function_that_leaks() {
    let output = execute(&["list"]);
    let list = String::from_utf8(output.stdout).unwrap();
    assert_eq!(list.lines().count(), Program::all().len());
    for (line, program) in list.lines().zip(Program::all()) {
        let expected = [
            program.name.as_str(),
            program.leaks().map_or("-", |site| site.name()),
        ];
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_program_runs_to_its_end_with_four_threads_and_with_eight() {
    for name in [
        "few-requests-double-buffering",
        "spike-one-of-eight-threads",
        "idle-tail-growing-vector",
    ] {
        let output = execute(&["run", name, "--seconds", "0"]);
        assert!(
            output.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_wrong_command_line_says_what_is_wrong() {
    let cases: [(&[&str], &str); 4] = [
        (&[], "usage:"),
        (&["run", "steady"], "no program has the name steady"),
        (
            &["run", "steady-nothing", "--seconds", "soon"],
            "soon is not one",
        ),
        (
            &["run", "steady-nothing", "--seconds", "-1"],
            "-1 is not one",
        ),
    ];
    for (arguments, expected) in cases {
        let output = execute(arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && message.contains(expected),
            "{arguments:?}: {message}"
        );
    }
}
