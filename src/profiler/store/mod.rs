//! Report files on disk: written so that a reader never sees half of one, and trusted only as far as they are still
//! what was written.
//!
//! Nothing here knows what is in a file. Called by `profiler`, on its own threads: everything may block.

mod archive;
mod bound;
mod directory;
mod disk;
mod faint;
mod file;
mod id;
mod key;
mod leftover;
mod name;
mod note;
mod private;
mod shelf;

pub(crate) use archive::{Archive, Kept};
pub(crate) use directory::Directory;
pub(crate) use faint::Faint;
pub use file::Output;
pub(crate) use file::{Draft, Label, Stored, is_too_long, room};
pub use id::ReportId;
pub use key::{OutputKey, OutputKind};
pub(crate) use leftover::{Leftover, leftovers};
pub(crate) use note::{Leak, Note, Triggered};
pub(crate) use shelf::Shelf;
