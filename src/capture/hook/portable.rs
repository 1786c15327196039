//! Replaces the hooks on systems where no GOT is patched.

use crate::capture::{modules, thread};

/// Does nothing: there are no real functions to find.
pub fn prepare() {}

/// Does nothing.
pub fn patch() {}

/// Returns false: nothing is patched.
pub fn choose_operators() -> bool {
    false
}

/// Does nothing.
pub fn restore() {}

/// Returns 0: nothing is patched.
pub fn patched() -> usize {
    0
}

/// Not set: there are no GOT entries to patch.
pub const IS_NATIVE: bool = false;

/// Returns no notes: nothing is to be hooked.
pub fn not_hooked() -> Vec<String> {
    Vec::new()
}

/// Updates the list of loaded modules, for the names in reports.
pub fn refresh() {
    let _busy = thread::Busy::enter();
    modules::refresh();
}
