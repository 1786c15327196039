//! This binary again, as the process that is measured.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::measure::{Result, median};
use crate::mode::{Mode, directory, heaptrack};
use crate::{instructions, live, pairs, report, service};

/// What a child does, told by its arguments.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [what, mode, rest @ ..] = arguments else {
        return Err("child WHAT MODE …".into());
    };
    let mode: Mode = mode.parse()?;
    match what.as_str() {
        "pairs" => pairs::child(mode, rest),
        "count" => instructions::child(mode, rest),
        "live" => live::child(mode, rest),
        "report" => report::child(mode),
        "serve" => service::child(mode),
        _ => Err(format!("a child can't do {what}").into()),
    }
}

/// A measured process.
#[derive(Debug)]
pub(crate) struct Measured {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    input: Option<ChildStdin>,
}

impl Measured {
    /// Starts a child, under `wrapper` (a command and its arguments) if there is one.
    pub(crate) fn start(
        wrapper: &[&str],
        what: &str,
        mode: Mode,
        rest: &[String],
    ) -> Result<Measured> {
        let this = std::env::current_exe()?;
        let mut command = match wrapper {
            [] => Command::new(&this),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(&this);
                command
            }
        };
        command.args(["child", what, mode.name()]).args(rest);
        Measured::spawn(command, mode)
    }

    /// Starts any program as a child in `mode`.
    pub(crate) fn spawn(mut command: Command, mode: Mode) -> Result<Measured> {
        if mode == Mode::Heaptrack {
            // To a file, uncompressed: what heaptrack's own script does besides runs in other processes.
            command
                .env(
                    "LD_PRELOAD",
                    heaptrack().ok_or("heaptrack is not installed")?,
                )
                .env("DUMP_HEAPTRACK_OUTPUT", heaptrack_output());
        }
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().ok_or("a child has an output")?;
        let input = process.stdin.take();
        Ok(Measured {
            process,
            lines: BufReader::new(output).lines(),
            input,
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The value of the next line, which must be `name=value`.
    pub(crate) fn next(&mut self, name: &str) -> Result<String> {
        let line = self
            .lines
            .next()
            .ok_or_else(|| format!("the child ended before it told {name}"))??;
        let value = line
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('='));
        Ok(value
            .ok_or_else(|| format!("the child said {line:?} instead of {name}"))?
            .to_owned())
    }

    /// Ends a child that has nothing to tell.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        self.clean_up();
        Ok(())
    }

    fn clean_up(&self) {
        drop(std::fs::remove_dir_all(directory(self.id())));
        drop(std::fs::remove_file(heaptrack_output()));
    }

    /// Lets the child end (its input is closed) and gives what it printed.
    pub(crate) fn finish(mut self) -> Result<Values> {
        drop(self.input.take());
        let mut values = BTreeMap::new();
        for line in self.lines.by_ref() {
            if let Some((name, value)) = line?.split_once('=')
                && let Ok(value) = value.parse()
            {
                values.insert(name.to_owned(), value);
            }
        }
        let mut told = String::new();
        if let Some(mut errors) = self.process.stderr.take() {
            errors.read_to_string(&mut told)?;
        }
        let status = self.process.wait()?;
        self.clean_up();
        if !status.success() {
            return Err(format!("a measured process failed: {status}\n{told}").into());
        }
        Ok(Values(values))
    }
}

/// `name=value` lines, read.
#[derive(Debug)]
pub(crate) struct Values(BTreeMap<String, f64>);

impl Values {
    /// The value of that name; not a number where the child did not tell.
    pub(crate) fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(f64::NAN)
    }

    /// As a number of bytes or blocks.
    pub(crate) fn whole(&self, name: &str) -> u64 {
        self.get(name) as u64
    }
}

impl Values {
    /// The medians of several runs, name by name.
    pub(crate) fn medians(runs: &[Values]) -> Values {
        let names = runs.first().map(|run| run.0.keys()).into_iter().flatten();
        let of = |name: &String| median(runs.iter().map(|run| run.get(name)).collect());
        Values(names.map(|name| (name.clone(), of(name))).collect())
    }
}

/// Runs a child to its end.
pub(crate) fn measured(what: &str, mode: Mode, rest: &[String]) -> Result<Values> {
    Measured::start(&[], what, mode, rest)?.finish()
}

fn heaptrack_output() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("heapray-bench-heaptrack-{}", std::process::id()))
}
