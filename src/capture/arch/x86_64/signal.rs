//! What other architectures must know of signal frames, and this one need not: all of it is in unwind information.

use super::super::StackSlots;

/// Nothing has to be learnt.
pub(crate) fn prepare() {}

/// There is no link register.
pub(crate) fn interrupted_link(_frame: u64, _slots: &mut impl StackSlots) -> Option<u64> {
    None
}

/// glibc describes its `__restore_rt`.
pub(crate) fn is_signal_return(_address: u64) -> bool {
    false
}
