//! A filter of blocks that certainly were not recorded. It counts the recorded blocks in each cell of a table.
//!
//! A cell is 32 bytes of address space, modulo 32 MiB: neighbours share cache lines, so that a service's hot blocks have hot
//! cells. If a cell is not 0 because of another block, a look into the set of [`recorded`](super::recorded) blocks decides.

use core::sync::atomic::{AtomicU8, Ordering};

/// Number of cells.
pub(in crate::capture) const CELLS: usize = 1 << 20;
/// Bits of an address within a cell: blocks of glibc are at least 32 bytes apart.
pub(in crate::capture) const CELL_BITS: u32 = 5;
/// Count of a full cell. Such a cell stays full, because its true count is not known any more.
const FULL: u8 = u8::MAX;

/// The counts. Pages that were only read are the system's page of zeros.
pub(in crate::capture) static FILTER: [AtomicU8; CELLS] = [const { AtomicU8::new(0) }; CELLS];

#[inline(always)]
fn cell(address: usize) -> &'static AtomicU8 {
    &FILTER[address >> CELL_BITS & (CELLS - 1)]
}

/// Returns false if the block at `address` was not recorded. Costs one load.
///
/// Relaxed: a thread that frees a block got its address from the thread that allocated it, after the cell was counted up.
#[inline(always)]
pub(super) fn may_hold(address: usize) -> bool {
    cell(address).load(Ordering::Relaxed) != 0
}

/// Returns whether the cell of `address` is full for good.
pub(super) fn is_full(address: usize) -> bool {
    cell(address).load(Ordering::Relaxed) == FULL
}

/// Marks the cell of `address` as full.
pub(super) fn fill(address: usize) {
    cell(address).store(FULL, Ordering::Relaxed);
}

/// Counts the block at `address` as recorded. Called before the block is handed out.
pub(super) fn add(address: usize) {
    let up = |count: u8| (count != FULL).then(|| count + 1);
    let _full = cell(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, up);
}

/// Removes the recorded block at `address`, which is about to be freed.
pub(super) fn remove(address: usize) {
    let down = |count: u8| (count != FULL && count != 0).then(|| count - 1);
    let _full = cell(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, down);
}

/// Removes all blocks.
pub(super) fn clear() {
    for cell in &FILTER {
        // A write would make the page the process's own.
        if cell.load(Ordering::Relaxed) != 0 {
            cell.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Address far from those that other tests use.
    const FAR: usize = 0x7000_1234_0000;

    #[test]
    fn a_cell_holds_until_its_last_block_is_gone() {
        assert!(!may_hold(FAR));
        add(FAR);
        add(FAR + (CELLS << CELL_BITS));
        assert!(may_hold(FAR) && may_hold(FAR + 31) && !may_hold(FAR + 32));
        remove(FAR);
        assert!(may_hold(FAR));
        remove(FAR);
        assert!(!may_hold(FAR));
        remove(FAR);
        assert!(!may_hold(FAR));
    }

    #[test]
    fn a_full_cell_stays() {
        let block = FAR + 640;
        (0..300).for_each(|_| add(block));
        assert!(is_full(block));
        (0..300).for_each(|_| remove(block));
        assert!(may_hold(block));
    }
}
