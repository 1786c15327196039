//! Why a scope has no report.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::session::{SessionError, StartError};

/// Why a scope has no report. What ran in it ran all the same.
#[derive(Debug)]
#[non_exhaustive]
pub enum ScopeError {
    /// Nothing could be recorded.
    Begin(StartError),
    /// What was recorded was lost.
    Lost(SessionError),
    /// The files could not be written.
    Write {
        /// Where to.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScopeError::Begin(source) => write!(f, "the scope was not recorded: {source}"),
            ScopeError::Lost(source) => write!(f, "the scope has no report: {source}"),
            ScopeError::Write { dir, source } => {
                let dir = dir.display();
                write!(f, "the scope's report can't be written to {dir}: {source}")
            }
        }
    }
}

impl std::error::Error for ScopeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ScopeError::Begin(source) => Some(source),
            ScopeError::Lost(source) => Some(source),
            ScopeError::Write { source, .. } => Some(source),
        }
    }
}
