//! Sums over a report that more than one reporter needs: by place, function, thread, module, and down the call tree.

mod function;
mod location;
mod module;
mod sums;
mod thread;

pub use function::{FunctionSums, by_function};
pub use location::{LocationSums, by_location};
pub use module::{ModuleNames, by_module};
pub use sums::{Sums, by_stack};
pub use thread::by_thread;
