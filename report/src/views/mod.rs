//! Views: what a report looks like from one side. Each is a function of a [`Report`](crate::Report), tested on its
//! own; the page, the texts and the endpoints show views and compute nothing themselves.

mod advice;
mod call_tree;
mod diff;
mod filter;
mod fold;
mod function;
mod intervals;
mod inverted;
mod location;
mod measure;
mod merge;
mod module;
mod moment;
mod names;
mod origin;
mod own_site;
mod readable;
mod rebuild;
mod resident;
mod sandwich;
mod sums;
mod thread;

pub use advice::{Advice, Finding, advice};
pub use call_tree::{CallTree, TreeNode};
pub use diff::{Change, Diff, DiffNode, diff};
pub use filter::{Filter, filtered};
pub use fold::{Fold, folded};
pub use function::{FunctionSums, by_function};
pub use intervals::{Interval, IntervalOptions, Intervals};
pub use inverted::inverted;
pub use location::{LocationSums, by_location};
pub use measure::{Measure, Unit};
pub use merge::merged;
pub use module::{ModuleNames, by_module};
pub use moment::{at_moment, in_range, temporary};
pub use names::{brief_name, is_plumbing, logical_name, plain_name};
pub use origin::{Kind, Origins, Package};
pub use own_site::{OwnSite, own_sites};
pub use readable::readable;
pub use resident::{Part, Share, resident_parts};
pub use sandwich::{Sandwich, sandwich};
pub use sums::{Sums, by_stack};
pub use thread::by_thread;
