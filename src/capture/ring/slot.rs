//! Storage of a slot: plain memory, or a cell whose accesses loom checks.

use super::Slot;

#[cfg(not(heapray_loom))]
pub(super) type Cell = Slot;
#[cfg(heapray_loom)]
pub(super) type Cell = loom::cell::UnsafeCell<Slot>;

/// # Safety
/// `count` slots of a fresh, zeroed segment begin at `first`.
pub(super) unsafe fn make(first: *mut Cell, count: u64) {
    #[cfg(not(heapray_loom))]
    let _: (*mut Cell, u64) = (first, count);
    #[cfg(heapray_loom)]
    for position in 0..count as usize {
        // SAFETY: the caller's promise.
        unsafe { first.add(position).write(Cell::new([0; 3])) };
    }
}

/// # Safety
/// `cell` is a slot that nobody else reads or writes now.
#[inline(always)]
pub(super) unsafe fn write(cell: *mut Cell, value: Slot) {
    // SAFETY: the caller's promise.
    #[cfg(not(heapray_loom))]
    unsafe {
        *cell = value;
    }
    // SAFETY: the caller's promise, which loom checks.
    #[cfg(heapray_loom)]
    unsafe {
        (*cell).with_mut(|slot| *slot = value);
    }
}

/// # Safety
/// `cell` is a slot that nobody writes now.
#[inline(always)]
pub(super) unsafe fn read(cell: *mut Cell) -> Slot {
    // SAFETY: the caller's promise.
    #[cfg(not(heapray_loom))]
    return unsafe { *cell };
    // SAFETY: the caller's promise, which loom checks.
    #[cfg(heapray_loom)]
    return unsafe { (*cell).with(|slot| *slot) };
}
