//! Which code is loaded, and how to unwind it.
//!
//! [`refresh`] asks the loader, compiles the unwind information of what is new, and publishes the result for hooks;
//! it is called when a capture begins, when the program asks for a function of a new module, and now and then by the collector. It is
//! ordinary code that allocates, locks and takes the loader's lock: never call it in a hook for allocations.
//! Hooks see only what `published` holds.

#[cfg(heapray_native)]
mod compile;
#[cfg(not(heapray_native))]
#[path = "not_compiled.rs"]
mod compile;
#[cfg(target_os = "linux")]
mod known;
#[cfg(target_os = "linux")]
mod list;
#[cfg(target_os = "linux")]
#[cfg_attr(not(heapray_native), allow(dead_code))]
pub(crate) mod published;
#[cfg(target_os = "linux")]
#[cfg_attr(not(heapray_native), allow(dead_code))]
mod table;

#[cfg(target_os = "linux")]
pub use known::{epoch, history, module_of, module_of_at, refresh, table_size};

#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(not(target_os = "linux"))]
pub use portable::{epoch, history, module_of, module_of_at, refresh, table_size};

mod module;
pub use module::{MappedCode, Module, ModuleId};

/// What a [`refresh`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changed {
    /// Modules that are loaded now and were not.
    pub added: usize,
    /// Modules that were loaded and are not any more.
    pub removed: usize,
}

/// How many modules the loader has ever added: asks it, and nothing else.
#[cfg(target_os = "linux")]
#[must_use]
pub fn added() -> u64 {
    list::counts().added
}

/// How large the unwind rules of all modules are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableSize {
    /// Rows: places in the code where the rule changes.
    pub rows: usize,
    /// Bytes of memory.
    pub bytes: usize,
}
