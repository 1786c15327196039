//! Views: what a report looks like from one side. Each is a function of a [`Report`](crate::Report), tested on its
//! own; the page, the texts and the endpoints show views and compute nothing themselves.

mod call_tree;
mod function;
mod intervals;
mod location;
mod measure;
mod module;
mod origin;
mod own_site;
mod sums;
mod thread;

pub use call_tree::{CallTree, TreeNode};
pub use function::{FunctionSums, by_function};
pub use intervals::{Interval, Intervals};
pub use location::{LocationSums, by_location};
pub use measure::{Measure, Unit};
pub use module::{ModuleNames, by_module};
pub use origin::{Kind, Origins, Package};
pub use own_site::{OwnSite, own_sites};
pub use sums::{Sums, by_stack};
pub use thread::by_thread;
