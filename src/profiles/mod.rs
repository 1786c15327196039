//! Profiles of one function or of one part of the program.
//!
//! ```text
//!  line/           how each line of a function changed the memory
//!  cpu/            the functions in which CPU time was spent
//!  parallel/       the same over the threads of a pool
//!  scope.rs        what a part of a function allocated and has not freed
//!  capture_scope/  a report of a part of the program
//!  expanded.rs     functions for the code that the attributes of `heapray-macros` expand to
//! ```

pub(crate) mod capture_scope;
pub mod cpu;
#[cfg(feature = "macros")]
pub mod expanded;
pub mod line;
pub mod parallel;
pub(crate) mod scope;
