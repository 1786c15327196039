//! What goes wrong, in a line for people and a number for scripts.

use std::ffi::OsStr;
use std::path::Path;
use std::{fmt, io};

use heapray_report::memray::{MemoryLimit, ReadError};
use heapray_report::units::size;

/// Something outside of the capture failed: the disk, the network, a file that is not overwritten.
pub(crate) const FAILED: u8 = 1;
/// A capture could not be read, or not to its end.
pub(crate) const BAD_CAPTURE: u8 = 2;
/// The command line makes no sense: `EX_USAGE` of `sysexits.h`, so that it cannot be taken for a bad capture.
pub(crate) const USAGE: u8 = 64;

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for what cannot be had.
    Usage(String),
    /// A capture cannot be read.
    Capture {
        /// Its file, as it was named.
        name: String,
        /// What is wrong with it, and at which byte.
        problem: String,
    },
    /// Reading, writing or talking failed.
    Io {
        /// What was tried: `cannot write report.html`.
        doing: String,
        /// What happened.
        error: io::Error,
    },
    /// A program that was to be run could not be started.
    NotStarted {
        /// Its name.
        program: String,
        /// What happened.
        error: io::Error,
    },
    /// The memory that the command may take does not do.
    Memory(MemoryLimit),
    /// Something else, in a sentence.
    Other(String),
    /// Whoever was to read the output went away. That is not a failure: `heapray table FILE | head`.
    NobodyReads,
}

impl Failure {
    /// A capture called `name` that the reader refused.
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

    /// What the process exits with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => USAGE,
            Failure::Capture { .. } => BAD_CAPTURE,
            // As a shell has it.
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
                "what is made of the capture takes more than the memory limit of {}: allow more with --memory-limit",
                size(limit.0)
            ),
            Failure::NobodyReads => f.write_str("nobody reads the output"),
        }
    }
}
