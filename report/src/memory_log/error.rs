//! The error of a file that mprof could not read.

use std::fmt;
use std::io;

/// Error of reading a `.dat` file.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// Reading failed.
    Io(io::Error),
    /// A line that mprof would refuse.
    Line {
        /// Number of the line; the first is 1.
        number: u64,
        /// Reason.
        reason: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(_) => write!(f, "cannot read the memory log"),
            ReadError::Line { number, reason } => write!(f, "line {number}: {reason}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            ReadError::Line { .. } => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}
