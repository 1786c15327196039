//! Report files on disk: written so that a reader never sees half of one, and trusted only as far as they are still
//! what was written.
//!
//! Nothing here knows what is in a file. Called by `profiler`, on its own threads: everything may block.

mod archive;
mod directory;
mod file;
mod id;
mod key;
mod limit;
mod note;
mod shelf;

pub(crate) use archive::{Archive, Kept};
pub(crate) use directory::Directory;
pub use file::Output;
pub(crate) use file::{Draft, Label, Stored, room};
pub use id::ReportId;
pub use key::{OutputKey, OutputKind};
pub(crate) use limit::file_size_limit;
pub(crate) use note::{Leak, Note, Triggered};
pub(crate) use shelf::Shelf;
