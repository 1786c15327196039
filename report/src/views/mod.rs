//! Views: a report seen from one side. Each is a function of a [`Report`](crate::Report), tested on its own; the page, the
//! texts and the endpoints show views and compute nothing themselves.

mod below;
mod call_tree;
mod context;
mod diff;
mod filter;
mod fold;
mod fragmentation;
mod function;
mod intervals;
mod inverted;
mod joined;
mod known;
mod leaks;
mod location;
mod measure;
mod merge;
mod merger;
mod module;
mod module_code;
mod moment;
mod named;
mod names;
mod origin;
mod own_site;
mod pattern;
mod plain_name;
mod readable;
mod rebuild;
mod replica;
mod resident;
mod same_names;
mod sandwich;
mod short_path;
mod sums;
mod thread;

pub use below::below;
pub use call_tree::{CallTree, TreeNode};
pub(crate) use context::is_of_context;
#[cfg(test)]
pub(crate) use context::testing::report as report_with_contexts;
pub use context::{
    ContextRow, by_context, context_keys, context_rows, forget_memory_without_route,
    name_memory_without_route,
};
pub use diff::{Change, Diff, DiffNode, diff};
pub use filter::{Filter, filtered};
pub use fold::{Fold, folded};
pub use fragmentation::{Fragmentation, fragmentation};
pub use function::{FunctionSums, by_function};
pub use intervals::{Interval, IntervalOptions, Intervals};
pub use inverted::inverted;
pub use joined::{Joined, joined};
pub use known::{KnownSites, KnownSums, known};
pub(crate) use leaks::allocated_by_time;
pub use leaks::{Confidence, Leak, Leaks, leaks};
pub use location::{LocationSums, by_location};
pub use measure::{Measure, Unit};
pub use merge::merged;
pub use merger::Merger;
pub use module::{ModuleNames, by_module};
pub use module_code::{ModuleCode, code_of_modules, is_offset};
pub use moment::{at_moment, in_range, temporary};
pub(crate) use named::with_both_names;
pub use named::{Names, named};
pub(crate) use names::segments;
pub use names::{brief_name, is_plumbing, logical_name};
pub use origin::{Kind, Origins, OwnCrates, Package};
pub use own_site::{OwnSite, own_frame, own_sites};
pub use plain_name::{LONGEST_SHOWN, is_of_any_type, plain_name, short_name, trait_name};
pub use readable::readable;
pub use replica::{of_replica, replica_of};
pub use resident::{Part, Share, resident_parts};
pub use same_names::agree_on_names;
pub use sandwich::{Sandwich, sandwich};
pub use short_path::short_path;
pub(crate) use sums::sums_by;
pub use sums::{Sums, by_stack};
pub use thread::by_thread;
