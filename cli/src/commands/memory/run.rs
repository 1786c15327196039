//! `heapray memory run`

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use heapray::memory_log::{LogFile, Probe};
use heapray::{MemoryChildren, MemoryMetric, MemoryRole};
use heapray_report::memory_log::{Line, Reading};
use heapray_report::memray::in_one_line;
use heapray_report::secrets::without_secrets;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

use crate::context::Context;
use crate::failure::Failure;

/// Run a program and record its memory over time.
///
/// Writes mprofile_<YYYYMMDDhhmmss>.dat in the current directory, as `mprof run` does, one line at a time: even if the
/// program is killed, the file is whole. Exits with the program's own exit code, with 128 plus the signal's number if it was
/// killed, with 127 if the program does not exist and 126 if it cannot be started. Signals are passed on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Count the memory of child processes, and of their children, into the program's.
    #[arg(long, short = 'C')]
    include_children: bool,
    /// Record each child process by itself, too.
    #[arg(long, short = 'M')]
    multiprocess: bool,
    /// Seconds between two readings.
    #[arg(long, short = 'T', value_name = "SECONDS", default_value = "0.1", value_parser = seconds)]
    interval: Duration,
    /// The measure: resident memory, with shared pages divided by the processes that have them (pss), or without them (uss).
    #[arg(long, value_enum, default_value = "rss")]
    metric: Metric,
    /// The file to write.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file if there is one.
    #[arg(long, short)]
    force: bool,
    /// The program and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    program: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Metric {
    Rss,
    Pss,
    Uss,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let allowed = |time: &Duration| *time >= Duration::from_millis(1) && time.as_secs() <= 3600;
    let time = text
        .parse()
        .ok()
        .and_then(|s| Duration::try_from_secs_f64(s).ok());
    time.filter(allowed)
        .ok_or_else(|| "must be seconds from 0.001 to 3600".into())
}

/// Signals that are passed on. All others, and SIGKILL, cannot or need not be.
const PASSED_ON: [(i32, Signal); 6] = [
    (SIGHUP, Signal::HUP),
    (SIGINT, Signal::INT),
    (SIGQUIT, Signal::QUIT),
    (SIGTERM, Signal::TERM),
    (SIGUSR1, Signal::USR1),
    (SIGUSR2, Signal::USR2),
];

impl Args {
    pub(super) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut file = self.file()?;
        let signals = SignalsInfo::<WithOrigin>::new(PASSED_ON.map(|(number, _)| number));
        let signals = signals.map_err(|error| Failure::io("cannot wait for signals", error))?;
        let name = &self.program[0];
        let mut child = Command::new(name)
            .args(&self.program[1..])
            .spawn()
            .map_err(|error| {
                // The program did not run: a file without readings is not a result.
                let _ = fs::remove_file(file.path());
                Failure::not_started(name, error)
            })?;
        let pid = Pid::from_child(&child);
        let (tell, ended) = mpsc::channel();
        pass_on(signals, pid);
        let probe = Probe::new(child.id(), self.children(), self.metric.into());
        thread::spawn(move || {
            // The receiver is only gone when this command ends.
            let _ = tell.send(child.wait());
        });
        let mut log = Log {
            file: &mut file,
            context,
            complained: false,
            readings: 0,
        };
        log.write(&Line::Command(
            in_one_line(&command_line(&self.program)).trim(),
        ));
        let status = match probe {
            Ok(probe) => record(&mut log, probe, &ended, self.interval),
            // The program has ended already, or the metric does not exist here.
            Err(error) => {
                log.complain(&format!("its memory cannot be read: {error}"));
                wait(&ended)
            }
        }?;
        if log.readings == 0 {
            // A file without readings is of no use to anybody, and stops a plot of many.
            let _ = fs::remove_file(file.path());
            context.note("the program ended before its memory was read: there is no file of it");
        } else {
            context.note(&format!("memory over time is in {}", file.path().display()));
        }
        context.exit_with(exit_code(status));
        Ok(())
    }

    fn children(&self) -> MemoryChildren {
        match (self.include_children, self.multiprocess) {
            (false, false) => MemoryChildren::None,
            (true, false) => MemoryChildren::Include,
            (false, true) => MemoryChildren::Each,
            (true, true) => MemoryChildren::Both,
        }
    }

    fn file(&self) -> Result<LogFile, Failure> {
        let Some(path) = &self.output else {
            let created = LogFile::create_in(Path::new("."), MemoryRole::Main);
            return created.map_err(|error| Failure::io("cannot write to this directory", error));
        };
        if self.force {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Failure::writing(path, error));
                }
                _ => {}
            }
        }
        LogFile::create(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::Other(format!(
                "{} exists already: overwrite it with -f, or name another with -o",
                path.display()
            )),
            _ => Failure::writing(path, error),
        })
    }
}

impl From<Metric> for MemoryMetric {
    fn from(metric: Metric) -> MemoryMetric {
        match metric {
            Metric::Rss => MemoryMetric::Rss,
            Metric::Pss => MemoryMetric::Pss,
            Metric::Uss => MemoryMetric::Uss,
        }
    }
}

/// Passes signals on, except for those from the terminal, which the program gets itself.
fn pass_on(mut signals: SignalsInfo<WithOrigin>, pid: Pid) {
    thread::spawn(move || {
        for origin in signals.forever() {
            if origin.cause == Cause::Kernel {
                continue;
            }
            let signal = PASSED_ON
                .iter()
                .find(|(number, _)| *number == origin.signal);
            if let Some((_, signal)) = signal {
                // The program may have ended.
                let _ = kill_process(pid, *signal);
            }
        }
    });
}

/// Log that is being written. An error of the log does not end the program.
struct Log<'a> {
    file: &'a mut LogFile,
    context: &'a Context,
    complained: bool,
    readings: u64,
}

impl Log<'_> {
    fn write(&mut self, line: &Line<'_>) {
        if let Err(error) = self.file.write(line) {
            self.complain(&format!(
                "cannot write {}: {error}",
                self.file.path().display()
            ));
        }
    }

    fn complain(&mut self, text: &str) {
        if !self.complained {
            self.complained = true;
            self.context.note(text);
        }
    }
}

type Ended = mpsc::Receiver<io::Result<ExitStatus>>;

/// Reads the program's memory until it ends.
fn record(
    log: &mut Log<'_>,
    mut probe: Probe,
    ended: &Ended,
    interval: Duration,
) -> Result<ExitStatus, Failure> {
    let mut next = Instant::now();
    loop {
        // A program that has ended and was not waited for has no memory.
        if let Some(readings) = probe.read().filter(|readings| readings.rss > 0) {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            let at = since.unwrap_or_default().as_secs_f64();
            log.readings += 1;
            log.write(&Line::Memory(Reading::of_bytes(readings.memory, at)));
            for (pid, bytes) in readings.children {
                log.write(&Line::Child {
                    id: &pid.to_string(),
                    reading: Reading::of_bytes(bytes, at),
                });
            }
        }
        next = (next + interval).max(Instant::now());
        match ended.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(waited) => return waited.map_err(|error| Failure::io("cannot wait for it", error)),
            Err(RecvTimeoutError::Disconnected) => return wait(ended),
        }
    }
}

fn wait(ended: &Ended) -> Result<ExitStatus, Failure> {
    let lost = |_| Failure::Other("the end of the program was missed".into());
    let waited = ended.recv().map_err(lost)?;
    waited.map_err(|error| Failure::io("cannot wait for it", error))
}

fn exit_code(status: ExitStatus) -> u8 {
    let signal = || 128 + status.signal().unwrap_or_default();
    u8::try_from(status.code().unwrap_or_else(signal)).unwrap_or(u8::MAX)
}

/// Returns the command line as in `mprof`, words with a blank in quotes, but without secrets.
fn command_line(program: &[OsString]) -> String {
    let words: Vec<_> = program.iter().map(|word| word.to_string_lossy()).collect();
    let mut words = without_secrets(words.iter().map(AsRef::as_ref));
    for word in &mut words {
        if word.contains([' ', '\t']) {
            *word = format!("'{word}'");
        }
    }
    words.join(" ")
}
