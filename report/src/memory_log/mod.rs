//! Memory over time in memory_profiler's `.dat` file, as `mprof run` writes it: lines, whole files, and digests.
//!
//! Only [`Line`] knows the format; the recorder, the endpoint, `heapray memory plot` and
//! [`formats::mprof`](crate::formats::mprof) all write and read through it. Files are hostile input: nothing here panics on
//! one, and the memory in use is bounded by the size of the file.

mod curve;
mod digest;
mod error;
mod line;
mod lines;
mod log;
mod name;
mod thin;

pub use curve::Curve;
pub use digest::{Digest, DigestLimits, Digesting};
pub use error::ReadError;
pub use line::{Line, MIB, Reading};
pub use log::{Child, Function, MemoryLog};
pub use name::function_name;
pub use thin::thin;
