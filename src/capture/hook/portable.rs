//! Where no GOT is patched.

use crate::capture::{modules, thread};

/// Does nothing: there are no real functions to find.
pub fn prepare() {}

/// Does nothing.
pub fn patch() {}

/// None: nothing is patched.
pub fn choose_operators() -> bool {
    false
}

/// Does nothing.
pub fn restore() {}

/// None.
pub fn patched() -> usize {
    0
}

/// Whether there are GOT entries to patch.
pub const IS_NATIVE: bool = false;

/// Nothing is to be hooked.
pub fn not_hooked() -> Vec<String> {
    Vec::new()
}

/// Looks at the loaded modules, for the names in reports.
pub fn refresh() {
    let _busy = thread::Busy::enter();
    modules::refresh();
}
