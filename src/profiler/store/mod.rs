//! Report files on disk: written so that a reader never sees half of one, and checked before they are trusted.
//!
//! Nothing here knows what is in a file. The profiler calls it on its own threads: everything may block.

use crate::capture::untracked;
use crate::config::Config;

mod archive;
mod bound;
#[cfg(feature = "store")]
mod copies;
mod directory;
mod disk;
mod file;
mod id;
mod key;
mod leftover;
mod name;
mod note;
mod private;
mod session_outputs;
mod weak;
mod written;

pub(crate) use archive::{Archive, Kept};
pub(crate) use directory::Directory;
pub use file::Output;
pub(crate) use file::{Draft, Label, Stored, is_too_long, room};
pub use id::ReportId;
pub use key::{OutputKey, OutputKind};
pub(crate) use leftover::{Leftover, leftovers};
pub(crate) use note::{Line, Note, ProbableLeak, Triggered};
pub(crate) use session_outputs::{SessionOutputs, keep_previous};
pub(crate) use weak::WeakOutput;
pub(crate) use written::ReportsOfCause;

/// What a profiler has on disk.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) archive: Archive,
    pub(crate) directory: Directory,
    /// The process that this was made in; a forked child has another.
    pid: u32,
}

impl Store {
    /// Returns what `config` says, and creates nothing.
    pub(crate) fn new(config: &Config) -> Store {
        let directory = Directory::new(config.dir.as_deref());
        Store {
            archive: Archive::new(
                directory.path(),
                config.keep,
                config.keep_bytes,
                config.trigger_keep,
            ),
            directory,
            pid: std::process::id(),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            let _untracked = untracked::enter();
            self.archive.remove_if_empty();
            self.directory.remove_if_empty();
        }
    }
}
