//! Views: what a report looks like from one side. Each is a function of a [`Report`](crate::Report), tested on its
//! own; the page, the texts and the endpoints show views and compute nothing themselves.

mod call_tree;
mod origin;
mod own_site;

pub use call_tree::{CallTree, Sums, TreeNode};
pub use origin::{Kind, Origins, Package};
pub use own_site::{OwnSite, own_sites};
