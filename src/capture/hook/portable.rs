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

/// Looks at the loaded modules, for the names in reports.
pub fn refresh() {
    let _busy = thread::Busy::enter();
    modules::refresh();
}
