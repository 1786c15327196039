//! Counts instructions by callgrind: a figure that other load on the machine does not change.

use std::path::PathBuf;
use std::process::Command;

use heapray_bench_workloads::Result;

use crate::machine::first_line;

/// Returns the reason why instructions cannot be counted here, if there is one.
pub(crate) fn missing() -> Option<String> {
    let version = first_line("valgrind", &["--version"]);
    version
        .is_empty()
        .then(|| "instructions: no valgrind (apt-get install valgrind)".to_owned())
}

/// A run of callgrind.
#[derive(Debug)]
pub(crate) struct Callgrind {
    /// Pattern of the functions that are counted, with all that they call.
    functions: &'static str,
    file: PathBuf,
}

impl Callgrind {
    pub(crate) fn new(functions: &'static str) -> Callgrind {
        let name = format!("heapray-bench-callgrind-{}", std::process::id());
        Callgrind {
            functions,
            file: std::env::temp_dir().join(name),
        }
    }

    /// Returns the words before the program and its arguments.
    pub(crate) fn words(&self) -> Vec<String> {
        vec![
            "valgrind".to_owned(),
            "--quiet".to_owned(),
            "--tool=callgrind".to_owned(),
            format!("--toggle-collect={}", self.functions),
            format!("--callgrind-out-file={}", self.file.display()),
        ]
    }

    /// Returns the instructions, after the program has ended.
    pub(crate) fn sum(self) -> Result<f64> {
        let text = std::fs::read_to_string(&self.file);
        drop(std::fs::remove_file(&self.file));
        let sum = text?.lines().find_map(|line| {
            let sum = line.strip_prefix("totals: ");
            sum.or(line.strip_prefix("summary: "))?.trim().parse().ok()
        });
        sum.ok_or_else(|| "callgrind told no sum".into())
    }
}

/// Returns the instructions of `functions` in this program, run again with `arguments` and `variables`.
pub(crate) fn of_this_program(
    functions: &'static str,
    arguments: &[&str],
    variables: &[(&str, String)],
) -> Result<f64> {
    let callgrind = Callgrind::new(functions);
    let words = callgrind.words();
    let done = Command::new(&words[0])
        .args(&words[1..])
        .arg(std::env::current_exe()?)
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .output()?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("callgrind failed: {}: {said}", done.status).into());
    }
    callgrind.sum()
}
