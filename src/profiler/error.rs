//! Errors of the profiler.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::config::ConfigError;
use crate::profiler::store::{ReportId, Store};
use crate::session::{SessionError, StartError};

/// Why a request to the profiler failed. Cheap to clone: several requests may share one failure.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The profiler is disabled: `MEMRAY_PROFILER` is not true, or a setting was refused at the start.
    Disabled,
    /// This process was forked from the profiled one, and records nothing.
    Forked,
    /// Nothing was recorded yet.
    NoReport,
    /// No report of that number is kept.
    NotKept(ReportId),
    /// A kept report was requested with an option that only the present session has: `full`, or each thread by itself.
    UnsupportedForKept,
    /// The file of a kept report was changed: its checksum is wrong.
    Damaged(ReportId),
    /// A mark was requested, but no session is running.
    NotRecording,
    /// A mark's name is empty, longer than 200 characters, or has control characters in it.
    InvalidMarkName,
    /// The session has 1,000 marks.
    TooManyMarks,
    /// The profiler's directory cannot be written to.
    Directory {
        /// The directory.
        path: PathBuf,
        /// The file system's error.
        source: Arc<io::Error>,
    },
    /// The capture did not start.
    Start(Arc<StartError>),
    /// The capture failed, and what it had recorded is lost.
    Session(SessionError),
    /// An output could not be written. What was recorded is still in memory: ask again when there is disk space.
    Output {
        /// The directory that it should have been written to.
        path: PathBuf,
        /// The file system's error.
        source: Arc<io::Error>,
    },
    /// Too many outputs wait to be made.
    TooManyOutputs,
    /// Files that clients are still reading, mostly snapshots, take all the disk space that they may.
    OutputsHeld,
    /// The service is about to end: [`shutdown`](crate::Profiler::shutdown) makes only the session's report, and no session
    /// begins.
    Ending,
    /// [`shutdown`](crate::Profiler::shutdown) took too long, and the report is not finished. The event log, unless it was
    /// given up, is still in the profiler's directory.
    ShutdownTooLong {
        /// The directory of the event log.
        path: PathBuf,
    },
    /// A bug in the profiler; the service is not affected.
    Internal(&'static str),
}

impl Error {
    /// The error of an output whose making panicked.
    pub(crate) const MAKING_PANICKED: Error = Error::Internal("making an output panicked");

    /// Returns the error of an output that could not be written.
    pub(super) fn not_written(store: &Store, error: io::Error) -> Error {
        Error::Output {
            path: store.directory.path().to_owned(),
            source: Arc::new(error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Disabled => f.write_str("the profiler is not enabled"),
            Error::Forked => {
                f.write_str("this process was forked from the profiled one and records nothing")
            }
            Error::NoReport => f.write_str("nothing was recorded yet: start the profiler first"),
            Error::NotKept(id) => write!(f, "there is no kept report {id}"),
            Error::UnsupportedForKept => f.write_str(
                "a kept report cannot be shown with `full` or `threads`: \
                 its frames are trimmed and its threads are merged by name",
            ),
            Error::Damaged(id) => {
                write!(f, "the kept report {id} is corrupt: its checksum is wrong")
            }
            Error::NotRecording => f.write_str("no session is running: start the profiler first"),
            Error::InvalidMarkName => f.write_str(
                "a mark's name must have 1 to 200 characters, none of them a control character",
            ),
            Error::TooManyMarks => {
                f.write_str("this session has 1,000 marks already, the most that it can have")
            }
            Error::Directory { path, .. } => write!(
                f,
                "the profiler's directory {} cannot be written to; set another one with MEMRAY_PROFILER_DIR",
                path.display()
            ),
            Error::Start(source) => write!(f, "the capture did not start: {source}"),
            Error::Session(source) => write!(f, "the capture failed: {source}"),
            Error::Output { path, .. } => {
                write!(f, "the output could not be written to {}", path.display())
            }
            Error::TooManyOutputs => {
                f.write_str("too many outputs are waiting to be made: ask again in a few seconds")
            }
            Error::OutputsHeld => f.write_str(
                "files that clients are still reading take all the disk space that they may: \
                 ask again when they have been read",
            ),
            Error::Ending => {
                f.write_str("the service is about to end: no session begins, and no output is made")
            }
            Error::ShutdownTooLong { path } => write!(
                f,
                "the report was not finished in time: make it with `heapray recover` from the event log in {}",
                path.display()
            ),
            Error::Internal(what) => write!(f, "a bug in the profiler: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Directory { source, .. } | Error::Output { source, .. } => Some(&**source),
            // Their own text is in ours.
            Error::Start(source) => source.source(),
            Error::Session(source) => source.source(),
            _ => None,
        }
    }
}

/// Why the profiler is off, or does not record yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum InitError {
    /// A setting has a value that is not allowed. The profiler stays off.
    Config(ConfigError),
    /// The profiler's threads could not be started. It stays off.
    Threads(io::Error),
    /// The profiler is on, but recording did not start; `start` may be tried again.
    Start(Error),
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitError::Config(error) => error.fmt(f),
            InitError::Threads(_) => write!(f, "the profiler's threads did not start"),
            InitError::Start(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The others' own text is ours.
            InitError::Config(error) => error.source(),
            InitError::Threads(error) => Some(error),
            InitError::Start(error) => error.source(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, InitError};
    use crate::session::{SessionError, StartError};
    use heapray_report::error_chain;
    use std::error::Error as _;
    use std::io;
    use std::sync::Arc;

    const WHY: &str = "the disk is gone";

    fn why() -> io::Error {
        io::Error::other(WHY)
    }

    #[test]
    fn an_error_leaves_out_what_its_source_says_and_says_what_happened() {
        let spool = || StartError::Spool {
            path: "/var/log".into(),
            source: why(),
        };
        let output = || Error::Output {
            path: "/var".into(),
            source: Arc::new(why()),
        };
        let directory = Error::Directory {
            path: "/var".into(),
            source: Arc::new(why()),
        };
        let errors: [(Box<dyn std::error::Error>, &str); 8] = [
            (Box::new(directory), "directory /var"),
            (Box::new(output()), "written to /var"),
            (Box::new(spool()), "event log /var/log"),
            (Box::new(StartError::Thread(why())), "collector's thread"),
            (Box::new(Error::Start(Arc::new(spool()))), "log /var/log"),
            (Box::new(InitError::Threads(why())), "threads did not start"),
            (Box::new(InitError::Start(output())), "written to /var"),
            (
                Box::new(InitError::Start(Error::Start(Arc::new(spool())))),
                "/var/log",
            ),
        ];
        for (error, what) in errors {
            let text = error.to_string();
            assert!(text.contains(what), "{text}");
            assert!(!text.contains(WHY), "{text}");
            let line = error_chain(&*error).to_string();
            assert_eq!(line, format!("{text}: {WHY}"));
        }
    }

    #[test]
    fn an_error_without_a_cause_outside_of_heapray_is_whole_by_itself() {
        let start = Error::Start(Arc::new(StartError::ForkedChild));
        assert!(start.to_string().contains("was forked"), "{start}");
        assert!(start.source().is_none());
        let session = Error::Session(SessionError);
        assert!(session.to_string().contains("collector"), "{session}");
        assert!(session.source().is_none());
    }
}
