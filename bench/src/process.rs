//! A measured process: started with its contender's settings, read, and measured at its end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use heapray_bench_workloads::Result;

use crate::contenders::{Contender, Setup};

/// Time after which a process is killed, and has no figure.
const LIMIT: Duration = Duration::from_secs(240);

/// Python's code instead of a `main`.
const CALL: &str = "import ctypes, sys; \
    sys.exit(ctypes.CDLL(sys.argv[1]).heapray_bench_run(' '.join(sys.argv[2:]).encode()))";

/// Values of a measured process. Its files exist as long as this value.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) values: BTreeMap<String, f64>,
    pub(crate) folder: Folder,
}

/// Directory of a run, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("heapray-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Running measured process.
#[derive(Debug)]
pub(crate) struct Measured {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    input: Option<ChildStdin>,
    helper: Option<Child>,
    values: BTreeMap<String, f64>,
    folder: Folder,
    /// Dropped when the process has ended.
    watch: mpsc::Sender<()>,
}

impl Measured {
    /// Starts `contender` on a workload, under `wrapper` (a command and its arguments) if there is one.
    pub(crate) fn start(
        contender: &Contender,
        arguments: &[String],
        finish: &[&str],
        wrapper: &[String],
    ) -> Result<Measured> {
        let folder = Folder::new()?;
        let mut helper = None;
        let mut words = wrapper.to_vec();
        let mut variables = Vec::new();
        let program = contender.program.display().to_string();
        match &contender.setup {
            Setup::Variables(of_contender) => {
                for (name, value) in of_contender {
                    variables.push((
                        *name,
                        value.replace('@', &folder.path().display().to_string()),
                    ));
                }
                words.push(program);
            }
            Setup::Heaptrack(files) => {
                let pipe = folder.path().join("pipe");
                if !Command::new("mkfifo").arg(&pipe).status()?.success() {
                    return Err("mkfifo failed".into());
                }
                // With a memory limit, so that it cannot use up the machine's memory.
                let script = match files.interpreter {
                    Some(_) => r#"ulimit -v 6000000; "$0" < "$1" | zstd -q -c > "$2""#,
                    None => r#"zstd -q -c < "$1" > "$2""#,
                };
                helper = Some(
                    Command::new("sh")
                        .args(["-c", script])
                        .arg(files.interpreter.as_deref().unwrap_or(Path::new("zstd")))
                        .arg(&pipe)
                        .arg(folder.path().join("heaptrack.zst"))
                        .stderr(Stdio::null())
                        .spawn()?,
                );
                variables.push(("LD_PRELOAD", files.library.display().to_string()));
                variables.push(("DUMP_HEAPTRACK_OUTPUT", pipe.display().to_string()));
                words.push(program);
            }
            Setup::Python { python, memray } => {
                words.push(python.display().to_string());
                if *memray {
                    let out = folder.path().join("memray.bin").display().to_string();
                    for word in ["-m", "memray", "run", "--native", "-q", "-o", &out] {
                        words.push(word.to_owned());
                    }
                }
                words.extend(["-c".to_owned(), CALL.to_owned(), program]);
            }
        }
        words.extend_from_slice(arguments);
        if !finish.is_empty() {
            words.push(format!("finish={}", folder.path().display()));
            words.extend(finish[1..].iter().map(|word| (*word).to_owned()));
        }
        let (name, arguments) = words.split_first().ok_or("nothing to start")?;
        let mut command = Command::new(name);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.path().join("errors"))?);
        for (name, _) in std::env::vars_os() {
            // Settings in the caller's environment must not affect the measurement.
            if is_setting(&name.to_string_lossy()) {
                command.env_remove(name);
            }
        }
        command.envs(variables);
        let mut process = command.spawn()?;
        let output = process.stdout.take().ok_or("a child has an output")?;
        let input = process.stdin.take();
        let watch = watch(process.id());
        Ok(Measured {
            process,
            lines: BufReader::new(output).lines(),
            input,
            helper,
            values: BTreeMap::new(),
            folder,
            watch,
        })
    }

    /// Reads up to the line `name=value`, and returns the value.
    pub(crate) fn until(&mut self, name: &str) -> Result<String> {
        for line in self.lines.by_ref() {
            let line = line?;
            if let Some((told, value)) = line.split_once('=') {
                if told == name {
                    return Ok(value.to_owned());
                }
                if let Ok(value) = value.parse() {
                    self.values.insert(told.to_owned(), value);
                }
            }
        }
        Err(format!("the process ended before it told {name}: {}", self.errors()).into())
    }

    /// Adds a value that the caller has measured.
    pub(crate) fn add(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), value);
    }

    fn errors(&self) -> String {
        let mut text = String::new();
        if let Ok(mut file) = File::open(self.folder.path().join("errors")) {
            drop(file.read_to_string(&mut text));
        }
        text.lines().last().unwrap_or_default().to_owned()
    }

    /// Lets the process end (its input is closed), and returns its output and its cost.
    pub(crate) fn finish(mut self) -> Result<Done> {
        drop(self.input.take());
        // Reads to the end, because no line has this name.
        drop(self.until("\0"));
        let (status, usage) = wait(&self.process)?;
        drop(self.watch);
        // If the process never opened the pipe, its helper still waits for a writer.
        let pipe = self.folder.path().join("pipe");
        let mut options = File::options();
        options.write(true).custom_flags(libc::O_NONBLOCK);
        drop(options.open(pipe));
        let mut values = std::mem::take(&mut self.values);
        values.insert("all_cpu_ns".into(), cpu(&usage));
        values.insert("all_rss_most".into(), usage.ru_maxrss as f64 * 1024.0);
        if let Some(helper) = &self.helper {
            let (_, usage) = wait(helper)?;
            values.insert("helper_cpu_ns".into(), cpu(&usage));
            values.insert("helper_rss_most".into(), usage.ru_maxrss as f64 * 1024.0);
        }
        if !status.success() {
            let mut why = String::new();
            if let Ok(text) = std::fs::read_to_string(self.folder.path().join("errors")) {
                why = text.lines().last().unwrap_or_default().to_owned();
            }
            return Err(match status.signal() {
                Some(libc::SIGKILL) => format!("ended after {} s", LIMIT.as_secs()),
                _ => format!("{status} {why}"),
            }
            .into());
        }
        Ok(Done {
            values,
            folder: self.folder,
        })
    }
}

/// Returns whether a variable is a setting of heapray, or of a client that pushes profiles.
fn is_setting(variable: &str) -> bool {
    ["MEMRAY_", "PYROSCOPE_", "OTEL_"]
        .iter()
        .any(|start| variable.starts_with(start))
        || variable.to_ascii_lowercase().ends_with("_proxy")
}

/// Kills process `pid` when the limit has passed, unless the returned value is dropped before.
fn watch(pid: u32) -> mpsc::Sender<()> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        if receiver.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            // SAFETY: a signal to a child that was not waited for yet; its number is still its own.
            unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
        }
    });
    sender
}

/// Waits for a child. Returns its resource usage, including that of the children it waited for.
fn wait(child: &Child) -> Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    // SAFETY: a `rusage` is numbers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both results go to live places; the child is ours, and nobody else waits for it.
    let waited = unsafe {
        libc::wait4(
            child.id() as libc::pid_t,
            &raw mut status,
            0,
            &raw mut usage,
        )
    };
    if waited < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok((ExitStatus::from_raw(status), usage))
}

fn cpu(usage: &libc::rusage) -> f64 {
    let ns = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}
