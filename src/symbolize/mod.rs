//! Symbolization: turns return addresses into functions, files and lines. No other module reads debug information.
//!
//! Symbolization runs on the thread that makes a report, never on a thread that records. The caller marks that thread as
//! untracked, so that its allocations are not recorded. Data flow one way:
//!
//! ```text
//! StackTable ─▶ places (distinct addresses) ─▶ frames of each node ─▶ trimmed stacks ─▶ merged sites ─▶ resolve: Report
//!                 ▲ lookup: resolver (object, dwarf), or a fake in tests                                     │ of stacks
//! Snapshot ───── times, totals, memory, conditions ──────────────────────────────────────────────────────────▼
//!                                                                                                    report: Report
//! ```
//!
//! No function here fails: an address without symbols becomes `module+0xoffset`, and the report's notes say why.

pub(crate) mod about;
mod about_program;
mod apart;
mod assemble;
mod dwarf;
mod events;
mod helped;
mod known;
mod later;
mod located;
mod lookup;
mod names;
mod notes;
mod object;
mod options;
mod places;
mod resolve;
mod resolver;
mod stacks;
#[cfg(test)]
mod tests;
mod threads;
mod trim;
mod v0;
mod wanted;

#[cfg(any(feature = "http", feature = "push"))]
pub(crate) use about::looks_up_names;
pub(crate) use about_program::symbols_that_lack;
pub(crate) use apart::Apart;
pub use assemble::report;
pub(crate) use assemble::{report_again, report_while, report_without_names};
pub(crate) use helped::serve as serve_names;
pub use known::Known;
pub use later::{FoundBefore, FoundNames, NamedLater, can_name_later, name_later};
pub(crate) use located::{Located, LocatedFrame};
pub use options::{NameMode, ReportOptions, ThreadMode};
pub(crate) use resolve::resolve_elsewhere;
pub use resolve::{Resolved, resolve, resolve_again};
pub use resolver::{ElfFile, Stranger, SymbolFiles};
pub(crate) use wanted::Wanted;
