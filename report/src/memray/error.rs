//! The errors of reading a capture.

use std::{fmt, io};

use super::limit::TooLarge;

/// Error of a capture that cannot be read at all. A capture that is only cut short, or damaged after its header, is read up
/// to there, and its report's notes say so.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The input failed.
    Io(io::Error),
    /// The input does not begin like a capture.
    NotACapture,
    /// The version of the capture is not supported (12 and 13 are).
    UnsupportedVersion(i32),
    /// The header is cut short or makes no sense.
    Header {
        /// Byte of the uncompressed capture at which reading stopped.
        at: u64,
        /// Description of the error.
        problem: String,
    },
    /// The capture needs more memory than reading may take.
    TooLarge(TooLarge),
    /// The events of an aggregated capture were requested, which has none.
    NoEvents,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(_) => write!(f, "cannot read the capture"),
            ReadError::NotACapture => {
                write!(f, "not a memray capture: it does not begin with \"memray\"")
            }
            ReadError::UnsupportedVersion(version) => write!(
                f,
                "capture format version {version} is not supported, only 12 (memray 1.19) and 13 (memray 1.20)"
            ),
            ReadError::Header { at, problem } => {
                write!(f, "bad capture header at byte {at}: {problem}")
            }
            ReadError::TooLarge(error) => error.fmt(f),
            ReadError::NoEvents => {
                write!(f, "an aggregated capture has sums, but no single events")
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> io::Error {
        match error {
            ReadError::Io(error) => error,
            ReadError::TooLarge(error) => error.into(),
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        }
    }
}
