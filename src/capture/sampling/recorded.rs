//! The exact set of live recorded blocks, used where the [`filter`] does not rule a block out.
//!
//! A bucket is one cache line with eight addresses. The thread that gets a block inserts its address before any other thread
//! knows the block, and the thread that frees the block removes it. So two threads never work on the same address, and one
//! atomic exchange is enough: no lock, no growing. If a bucket is full, the block's cell of the filter is filled for good
//! instead, and every free there is recorded: the collector knows which blocks are samples.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::filter;

const BUCKET_BITS: u32 = 16;
const SLOTS: usize = 8;

#[derive(Debug)]
#[repr(align(64))]
struct Bucket([AtomicUsize; SLOTS]);

const _: () = assert!(size_of::<Bucket>() == 64);

/// The buckets: 4 MiB of address space, with memory only where samples live.
static BUCKETS: [Bucket; 1 << BUCKET_BITS] =
    [const { Bucket([const { AtomicUsize::new(0) }; SLOTS]) }; 1 << BUCKET_BITS];

fn bucket(address: usize) -> &'static [AtomicUsize; SLOTS] {
    // Fibonacci hashing: the high bits of the product depend on all of the address.
    let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &BUCKETS[(hash >> (u64::BITS - BUCKET_BITS)) as usize].0
}

fn exchange(bucket: &[AtomicUsize; SLOTS], from: usize, to: usize) -> bool {
    bucket.iter().any(|slot| {
        slot.load(Ordering::Relaxed) == from
            && slot
                .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    })
}

/// Inserts the block at `address`. Called before the block is handed out.
///
/// Relaxed, here and in [`take`]: a thread that frees a block got its address from the thread that allocated it, after this.
pub(super) fn put(address: usize) {
    if exchange(bucket(address), 0, address) {
        filter::add(address);
    } else {
        filter::fill(address);
    }
}

/// Returns whether the free of the block at `address`, which the filter does not rule out, is to be recorded. Removes the
/// block from the set.
pub(super) fn take(address: usize) -> bool {
    let found = exchange(bucket(address), address, 0);
    if found {
        filter::remove(address);
    }
    found || filter::is_full(address)
}

/// Removes all blocks.
pub(super) fn clear() {
    filter::clear();
    for slot in BUCKETS.iter().flat_map(|bucket| &bucket.0) {
        // A write would make the page the process's own.
        if slot.load(Ordering::Relaxed) != 0 {
            slot.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Address far from those that other tests use.
    const FAR: usize = 0x7100_4321_0000;

    #[test]
    fn a_block_is_taken_once() {
        assert!(!take(FAR));
        put(FAR);
        assert!(filter::may_hold(FAR));
        // The same cell of the filter, another block.
        assert!(!take(FAR + (32 << 20)));
        assert!(take(FAR) && !take(FAR) && !filter::may_hold(FAR));
    }

    #[test]
    fn where_a_bucket_is_full_every_free_is_recorded() {
        let full = FAR + (1 << 40);
        let same = |address: &usize| std::ptr::eq(bucket(*address), bucket(full));
        let blocks: Vec<usize> = (0..)
            .map(|n| full + 32 * n)
            .filter(same)
            .take(SLOTS + 2)
            .collect();
        blocks.iter().for_each(|&block| put(block));
        assert!(
            blocks
                .iter()
                .all(|&block| filter::may_hold(block) && take(block))
        );
        let [.., over] = blocks[..] else {
            unreachable!()
        };
        assert!(take(over), "the filter is full there for good");
        assert!(!take(blocks[0]));
    }
}
