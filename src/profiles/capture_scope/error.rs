//! Errors of a scope's report.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::session::{SessionError, StartError};

/// Error that left a scope without a report. The code in the scope has run nevertheless.
#[derive(Debug)]
#[non_exhaustive]
pub enum CaptureScopeError {
    /// Recording could not start.
    Begin(StartError),
    /// The recorded events were lost.
    Lost(SessionError),
    /// The files could not be written.
    Write {
        /// The directory.
        dir: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

impl fmt::Display for CaptureScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureScopeError::Begin(source) => write!(f, "the scope was not recorded: {source}"),
            CaptureScopeError::Lost(source) => write!(f, "the scope has no report: {source}"),
            CaptureScopeError::Write { dir, .. } => {
                let dir = dir.display();
                write!(f, "the scope's report can't be written to {dir}")
            }
        }
    }
}

impl std::error::Error for CaptureScopeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The text of the source is part of ours.
            CaptureScopeError::Begin(source) => source.source(),
            CaptureScopeError::Lost(source) => source.source(),
            CaptureScopeError::Write { source, .. } => Some(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CaptureScopeError;
    use crate::session::StartError;
    use std::error::Error;
    use std::io;

    #[test]
    fn an_error_leaves_out_what_its_source_says() {
        let why = || io::Error::other("the disk is gone");
        let write = CaptureScopeError::Write {
            dir: "/var".into(),
            source: why(),
        };
        let begin = CaptureScopeError::Begin(StartError::Thread(why()));
        for (error, what) in [(write, "/var"), (begin, "collector's thread")] {
            assert!(error.to_string().contains(what), "{error}");
            assert!(!error.to_string().contains("disk"), "{error}");
            let source = error.source().map(ToString::to_string);
            assert_eq!(source.as_deref(), Some("the disk is gone"));
        }
    }
}
