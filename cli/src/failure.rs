//! Failures, as a line for users and a number for scripts.

use std::ffi::OsStr;
use std::path::Path;
use std::{fmt, io};

use heapray_report::memray::{MemoryLimit, ReadError};
use heapray_report::units::size;

/// Failure outside of the capture: the disk, the network, a file that may not be overwritten.
pub(crate) const FAILED: u8 = 1;
/// Failure of reading a capture, also in the middle.
pub(crate) const BAD_CAPTURE: u8 = 2;
/// Bad command line: `EX_USAGE` of `sysexits.h`, which differs from the code for a bad capture.
pub(crate) const USAGE: u8 = 64;

/// Failure of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line requests something impossible.
    Usage(String),
    /// A capture cannot be read.
    Capture {
        /// Name of the file, as given.
        name: String,
        /// The error, and its byte.
        problem: String,
    },
    /// Reading, writing or a connection failed.
    Io {
        /// What was being done: `cannot write report.html`.
        doing: String,
        /// The error of the system.
        error: io::Error,
    },
    /// A program could not be started.
    NotStarted {
        /// Name of the program.
        program: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The command needs more memory than its limit.
    Memory(MemoryLimit),
    /// Another failure, in a sentence.
    Other(String),
    /// The reader of the output has closed the pipe. That is not a failure: `heapray table FILE | head`.
    NobodyReads,
}

impl Failure {
    /// Returns the failure for a capture called `name` that the reader refused.
    pub(crate) fn reading(name: &str, error: ReadError) -> Failure {
        match error {
            ReadError::Io(error) => Failure::io(format!("cannot read {name}"), error),
            ReadError::TooLarge(error) => {
                Failure::Other(format!("{name}: {error}: allow more with --memory-limit"))
            }
            error => Failure::Capture {
                name: name.into(),
                problem: error.to_string(),
            },
        }
    }

    pub(crate) fn io(doing: impl Into<String>, error: io::Error) -> Failure {
        Failure::Io {
            doing: doing.into(),
            error,
        }
    }

    pub(crate) fn not_started(program: &OsStr, error: io::Error) -> Failure {
        Failure::NotStarted {
            program: program.to_string_lossy().into_owned(),
            error,
        }
    }

    pub(crate) fn writing(path: &Path, error: io::Error) -> Failure {
        Failure::io(format!("cannot write {}", path.display()), error)
    }

    /// Returns the exit code of the process.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => USAGE,
            Failure::Capture { .. } => BAD_CAPTURE,
            // As in a shell.
            Failure::NotStarted { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Failure::NotStarted { .. } => 126,
            Failure::Io { .. } | Failure::Memory(_) | Failure::Other(_) => FAILED,
            Failure::NobodyReads => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) | Failure::Other(text) => f.write_str(text),
            Failure::Capture { name, problem } => write!(f, "{name}: {problem}"),
            Failure::Io { doing, error } => write!(f, "{doing}: {error}"),
            Failure::NotStarted { program, error } => write!(f, "cannot run {program}: {error}"),
            Failure::Memory(limit) => write!(
                f,
                "the result of the capture needs more than the memory limit of {}: allow more with --memory-limit",
                size(limit.0)
            ),
            Failure::NobodyReads => f.write_str("nobody reads the output"),
        }
    }
}
