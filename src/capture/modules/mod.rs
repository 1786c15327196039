//! The loaded code, and the rules to unwind it.
//!
//! [`refresh`] asks the loader, compiles the unwind information of new modules, and publishes the result for hooks. It is
//! called when a session begins, when the program asks for a function of a new module, and from time to time by the
//! collector. It is ordinary code that allocates, locks and takes the loader's lock: never call it in a hook for
//! allocations. Hooks read only `published`.

mod build_id;
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
pub use known::{enter_modules, epoch, history, module_of, module_of_at, refresh, table_size};

#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(not(target_os = "linux"))]
pub use portable::{enter_modules, epoch, history, module_of, module_of_at, refresh, table_size};

mod module;
pub use build_id::find_build_id;
pub use module::{MappedCode, Module, ModuleId};

/// Result of a [`refresh`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changed {
    /// Modules that were loaded since the last one.
    pub added: usize,
    /// Modules that were unloaded since the last one.
    pub removed: usize,
}

/// Returns how many modules the loader has ever added. Asks it for nothing else.
#[cfg(target_os = "linux")]
#[must_use]
pub fn added() -> u64 {
    list::counts().added
}

/// Size of the unwind rules of all modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableSize {
    /// Rows: places in the code where the rule changes.
    pub rows: usize,
    /// Bytes of memory.
    pub bytes: usize,
}
