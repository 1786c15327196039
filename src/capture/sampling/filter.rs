//! Which blocks certainly were not recorded: how many recorded ones have their address in each cell of a table.
//!
//! A cell is 32 bytes of address space, modulo 32 MiB: neighbours share cache lines, so that a service's hot blocks have
//! hot cells. A cell that is not 0 for another block's sake costs a look into the set of [`recorded`](super::recorded) ones.

use core::sync::atomic::{AtomicU8, Ordering};

const CELLS: usize = 1 << 20;
/// Blocks of glibc's are 32 bytes apart at the least.
const CELL_BITS: u32 = 5;
/// A cell that was this full stays so: it is not known any more how full it is.
const FULL: u8 = u8::MAX;

/// Pages of it that were only read are the system's page of zeros.
static FILTER: [AtomicU8; CELLS] = [const { AtomicU8::new(0) }; CELLS];

#[inline(always)]
fn cell(address: usize) -> &'static AtomicU8 {
    &FILTER[address >> CELL_BITS & (CELLS - 1)]
}

/// False: the block at `address` was not recorded. One load.
///
/// Relaxed: who frees a block was given its address by whoever allocated it, after the cell was counted up.
#[inline(always)]
pub(super) fn may_hold(address: usize) -> bool {
    cell(address).load(Ordering::Relaxed) != 0
}

/// Whether the cell of `address` is full for good.
pub(super) fn is_full(address: usize) -> bool {
    cell(address).load(Ordering::Relaxed) == FULL
}

/// The cell of `address` is full from now on, whatever it holds.
pub(super) fn fill(address: usize) {
    cell(address).store(FULL, Ordering::Relaxed);
}

/// The block at `address` is recorded. Called before it is handed out.
pub(super) fn add(address: usize) {
    let up = |count: u8| (count != FULL).then(|| count + 1);
    let _full = cell(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, up);
}

/// The recorded block at `address` is about to be gone.
pub(super) fn remove(address: usize) {
    let down = |count: u8| (count != FULL && count != 0).then(|| count - 1);
    let _full = cell(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, down);
}

/// No block is recorded.
pub(super) fn clear() {
    for cell in &FILTER {
        // Writing would make the page the process's own.
        if cell.load(Ordering::Relaxed) != 0 {
            cell.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far from what other tests use.
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
