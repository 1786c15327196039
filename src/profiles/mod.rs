//! Profiles of one function or of one part of the program.
//!
//! ```text
//!  line/           what each line of a function did to memory
//!  cpu/            where a function spent its time
//!  parallel/       the same over the threads of a pool
//!  scope.rs        what a part of a function allocated and still holds
//!  capture_scope/  a report of a part of the program
//!  expanded.rs     what the attributes of `heapray-macros` expand to
//! ```

pub(crate) mod capture_scope;
pub mod cpu;
#[cfg(feature = "macros")]
pub mod expanded;
pub mod line;
pub mod parallel;
pub(crate) mod scope;
