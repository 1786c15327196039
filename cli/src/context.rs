//! The interaction of a command with its user: messages, colours, progress, and the exit code.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use heapray_report::known::{self, Known};
use heapray_report::memray::{MemoryLimit, in_one_line};
use heapray_report::texts;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::failure::{BAD_CAPTURE, Failure};
use crate::limit;
use crate::output::Destination;

/// Width that no line reaches.
const UNCUT: usize = 10_000;

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Print JSON: the figures, or the names of written files; errors too, on standard error.
    #[arg(long, global = true, action = ArgAction::SetTrue, help_heading = "Everywhere")]
    pub(crate) json: bool,
    /// Print only the result and errors.
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
    /// Memory that the command may take, such as 4GiB; a capture that needs more is refused. The default is 2 GiB, or half
    /// of the machine's memory if that is less.
    #[arg(
        long,
        global = true,
        value_name = "SIZE",
        env = "HEAPRAY_MEMORY_LIMIT",
        value_parser = crate::limit::memory,
        help_heading = "Everywhere"
    )]
    pub(crate) memory_limit: Option<u64>,
    /// Do not look up names that a capture lacks, in files of the same build that are on this machine.
    #[arg(long, global = true, action = ArgAction::SetTrue, help_heading = "Everywhere")]
    pub(crate) no_symbolize: bool,
    /// Crates that are the service's own, besides those that the capture names: names, and patterns with `*` for any text,
    /// separated by commas.
    #[arg(
        long,
        global = true,
        value_name = "CRATES",
        env = "MEMRAY_PROFILER_OWN",
        value_delimiter = ',',
        help_heading = "Everywhere"
    )]
    pub(crate) own: Vec<String>,
    /// File of the call sites that are known, besides those that the capture names: they are listed apart, and no advice is
    /// given about them. By default `heapray-known.toml` in the working directory, if there is one.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MEMRAY_PROFILER_KNOWN",
        help_heading = "Everywhere"
    )]
    pub(crate) known: Option<PathBuf>,
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

/// Run of the command.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    json: bool,
    quiet: bool,
    color: When,
    memory_limit: MemoryLimit,
    symbolizes: bool,
    own: Vec<String>,
    known_file: Option<PathBuf>,
    /// The rules of that file, once they are read.
    known: Option<Vec<Known>>,
    /// Set if a capture ended before its end mark.
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
            symbolizes: !global.no_symbolize,
            own: global.own.clone(),
            known_file: global.known.clone(),
            known: None,
            incomplete: false,
            exit_code: None,
        }
    }

    /// Returns the crates that are the service's own, as the command line says.
    pub(crate) fn own_crates(&self) -> &[String] {
        &self.own
    }

    /// Returns the rules for call sites that are known, of the file that the command line names, or of the default one. The
    /// file is read once, and only by a command that reads a capture.
    pub(crate) fn known(&mut self) -> Result<&[Known], Failure> {
        let rules = match self.known.take() {
            Some(rules) => rules,
            None => known::read(self.known_file.as_deref()).map_err(Failure::Other)?,
        };
        Ok(self.known.insert(rules))
    }

    /// Returns whether names that a capture lacks are looked up.
    pub(crate) fn symbolizes(&self) -> bool {
        self.symbolizes
    }

    /// Returns the memory limit for reading captures.
    pub(crate) fn memory_limit(&self) -> MemoryLimit {
        self.memory_limit
    }

    /// Returns whether `--json` was given.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Returns whether standard output is coloured.
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

    /// Returns the columns of the terminal, or `COLUMNS` if there is none. Without either, nothing is cut: programs that
    /// read a pipe need whole names.
    pub(crate) fn width(&self) -> usize {
        let terminal = terminal_size::terminal_size_of(io::stdout());
        let asked = || env::var("COLUMNS").ok()?.parse().ok();
        let columns = terminal
            .map(|(width, _)| usize::from(width.0))
            .or_else(asked);
        columns.map_or(UNCUT, |columns| columns.clamp(40, UNCUT))
    }

    /// Returns the options of texts for `out`: in a file, texts are without colours and uncut.
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

    /// Returns a bar for `total` bytes of work, or a spinner if the total is unknown. It is hidden if standard error is not
    /// a terminal.
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

    /// Returns a spinner for work of unknown length that does not count bytes.
    pub(crate) fn spinner(&self, doing: &str) -> ProgressBar {
        let bar = self.progress(doing, None);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    /// Notes that the capture called `name` could not be read to its end, and makes the command exit with 2. The part that
    /// was read is still reported: it may be all that a killed process has left.
    pub(crate) fn cut_short(&mut self, name: &str, problem: &str) {
        self.incomplete = true;
        self.complain(&format!("{name}: {problem}"), BAD_CAPTURE);
    }

    /// Makes the command exit with `code`, the exit code of a program that it ran.
    pub(crate) fn exit_with(&mut self, code: u8) {
        self.exit_code = Some(code);
    }

    /// Prints a note that does not change the result.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            // If standard error is closed, the message is lost.
            let _ = writeln!(io::stderr(), "heapray: {}", in_one_line(text));
        }
    }

    /// Prints the file of a result.
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

    /// Prints `value`, indented on a terminal.
    pub(crate) fn print_json(&self, value: &Value) -> Result<(), Failure> {
        self.print(&format!("{value:#}\n"))
    }

    /// Prints the reason why the command fails.
    pub(crate) fn fail(&self, failure: &Failure) {
        self.complain(&failure.to_string(), failure.exit_code());
    }

    fn complain(&self, text: &str, exit_code: u8) {
        // Names in captures, files and answers are hostile input: nothing in them may move the terminal's cursor.
        let text = in_one_line(text);
        let line = if self.json {
            json!({ "error": text, "exit_code": exit_code }).to_string()
        } else {
            format!("heapray: {text}")
        };
        // If standard error is closed, the message is lost.
        let _ = writeln!(io::stderr(), "{line}");
    }

    /// Returns the exit code of a command that came to its end.
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

/// Returns the failure of printing. A closed pipe is not a failure.
pub(crate) fn printing(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::NobodyReads
    } else {
        Failure::io("cannot print", error)
    }
}
