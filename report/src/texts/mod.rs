//! Reports for a terminal: [`table`] of call sites, [`tree`] of calls, [`summary`] by function, and the lines that probably
//! are [`leaks`].
//!
//! Each is a function `text(report, options, out)`. Nothing here asks the terminal: width and colours are options. With any
//! function names, no control character reaches the terminal, and no line is wider than the width, if that is at least
//! [`Options::MIN_WIDTH`]; only the file and line of a leak may be. Sums that are not shown line by line are shown as a rest.

mod cell;
mod contexts;
mod head;
mod leaks;
mod options;
mod paint;
mod summary;
mod table;
mod tree;

pub use contexts::{contexts, contexts_json};
pub use leaks::leaks;
pub use options::{Options, SortColumn, UnknownColumn};
pub use summary::summary;
pub use table::table;
pub use tree::tree;
