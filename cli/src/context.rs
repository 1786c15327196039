//! How a command talks to whoever started it: messages, colours, progress, and the exit code that comes of it all.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use heapray_report::memray::{MemoryLimit, in_one_line};
use heapray_report::texts;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::failure::{BAD_CAPTURE, Failure};
use crate::limit;
use crate::output::Destination;

/// Columns that no line needs.
const UNCUT: usize = 10_000;

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Print JSON: the figures, or what was written where; failures too, on standard error.
    #[arg(long, global = true, action = ArgAction::SetTrue, help_heading = "Everywhere")]
    pub(crate) json: bool,
    /// Say nothing but the result and what went wrong.
    #[arg(long, short, global = true, help_heading = "Everywhere")]
    pub(crate) quiet: bool,
    /// When to use colours: `auto` means on a terminal, unless NO_COLOR is set.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Everywhere"
    )]
    pub(crate) color: When,
    /// Memory that the command may take, such as 4GiB; a capture that needs more is refused. By default 2 GiB, or half of
    /// what the machine has.
    #[arg(
        long,
        global = true,
        value_name = "SIZE",
        env = "HEAPRAY_MEMORY_LIMIT",
        value_parser = crate::limit::memory,
        help_heading = "Everywhere"
    )]
    pub(crate) memory_limit: Option<u64>,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal.
    Auto,
    /// In pipes too.
    Always,
    /// Nowhere.
    Never,
}

/// One run of the command.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    json: bool,
    quiet: bool,
    color: When,
    memory_limit: MemoryLimit,
    /// A capture ended before its end.
    incomplete: bool,
    /// The exit code of a program that was run.
    exit_code: Option<u8>,
}

impl Context {
    pub(crate) fn new(global: &Global) -> Context {
        Context {
            json: global.json,
            quiet: global.quiet,
            color: global.color,
            memory_limit: global.memory_limit.map_or_else(limit::default, MemoryLimit),
            incomplete: false,
            exit_code: None,
        }
    }

    /// What reading captures may take.
    pub(crate) fn memory_limit(&self) -> MemoryLimit {
        self.memory_limit
    }

    /// Whether `--json` was given.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Whether what goes to standard output is coloured.
    pub(crate) fn colour(&self) -> bool {
        match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
                !refused && !dumb && io::stdout().is_terminal()
            }
        }
    }

    /// Columns of the terminal; `COLUMNS` where there is none. Without either nothing is cut: who reads a pipe looks
    /// for whole names.
    pub(crate) fn width(&self) -> usize {
        let terminal = terminal_size::terminal_size_of(io::stdout());
        let asked = || env::var("COLUMNS").ok()?.parse().ok();
        let columns = terminal
            .map(|(width, _)| usize::from(width.0))
            .or_else(asked);
        columns.map_or(UNCUT, |columns| columns.clamp(40, UNCUT))
    }

    /// How texts look at `out`: in a file without colours, and nothing is cut.
    pub(crate) fn text_options(&self, out: &Destination) -> texts::Options {
        match out {
            Destination::Stdout => texts::Options {
                width: self.width(),
                colours: self.colour(),
                ..texts::Options::default()
            },
            _ => texts::Options {
                width: UNCUT,
                ..texts::Options::default()
            },
        }
    }

    /// A bar for `total` bytes of work, or a spinner where the total is unknown. Hidden unless a person watches.
    pub(crate) fn progress(&self, doing: &str, total: Option<u64>) -> ProgressBar {
        let watched = !self.quiet && !self.json && io::stderr().is_terminal();
        let target = if watched {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let (bar, template) = match total {
            Some(total) => (
                ProgressBar::with_draw_target(Some(total), target),
                "{msg} {bar:30} {bytes}/{total_bytes} {eta}",
            ),
            None => (
                ProgressBar::with_draw_target(None, target),
                "{spinner} {msg} {bytes}",
            ),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(in_one_line(doing).into_owned());
        bar
    }

    /// A spinner for work of unknown length that counts no bytes.
    pub(crate) fn spinner(&self, doing: &str) -> ProgressBar {
        let bar = self.progress(doing, None);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    /// A capture called `name` could not be read to its end: says so, and the command will exit with 2. What was read
    /// is reported all the same, for that is what is left of a process that was killed.
    pub(crate) fn cut_short(&mut self, name: &str, problem: &str) {
        self.incomplete = true;
        self.complain(&format!("{name}: {problem}"), BAD_CAPTURE);
    }

    /// The command will exit with this, the exit code of a program that it ran.
    pub(crate) fn exit_with(&mut self, code: u8) {
        self.exit_code = Some(code);
    }

    /// Something that a person should know and that does not change the result.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            // Nobody to tell.
            let _ = writeln!(io::stderr(), "heapray: {}", in_one_line(text));
        }
    }

    /// Says where a result is.
    pub(crate) fn wrote(&self, path: &Path) -> Result<(), Failure> {
        let bytes = std::fs::metadata(path).map(|metadata| metadata.len()).ok();
        if self.json {
            self.print_json(&json!({ "wrote": path.to_string_lossy(), "bytes": bytes }))
        } else if self.quiet {
            Ok(())
        } else {
            let path = path.display().to_string();
            self.print(&format!("Wrote {}\n", in_one_line(&path)))
        }
    }

    /// Prints `text` as it is.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        printed.map_err(printing)
    }

    /// Prints `value`, indented for people where people look.
    pub(crate) fn print_json(&self, value: &Value) -> Result<(), Failure> {
        self.print(&format!("{value:#}\n"))
    }

    /// Says why the command fails.
    pub(crate) fn fail(&self, failure: &Failure) {
        self.complain(&failure.to_string(), failure.exit_code());
    }

    fn complain(&self, text: &str, exit_code: u8) {
        // Names in captures, files and answers are a stranger's: nothing in them shall move the terminal's cursor.
        let text = in_one_line(text);
        let line = if self.json {
            json!({ "error": text, "exit_code": exit_code }).to_string()
        } else {
            format!("heapray: {text}")
        };
        // Nobody to tell.
        let _ = writeln!(io::stderr(), "{line}");
    }

    /// What a command that came to its end exits with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if let Some(code) = self.exit_code {
            ExitCode::from(code)
        } else if self.incomplete {
            ExitCode::from(BAD_CAPTURE)
        } else {
            ExitCode::SUCCESS
        }
    }
}

/// A failure to print: nobody reading is none.
pub(crate) fn printing(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::NobodyReads
    } else {
        Failure::io("cannot print", error)
    }
}
