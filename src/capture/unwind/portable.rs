//! Call stacks by frame pointers, for systems without a better unwinder.
//!
//! It is exact in code that was compiled with frame pointers. In other code it leaves frames out or ends early. It can only
//! report that it did not reach an outermost frame.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{MAX_DEPTH, StackCounts};
use crate::capture::arch::{self, Registers};
use crate::capture::call_tree::CallTree;
use crate::capture::memory::GrowArray;
use crate::capture::modules;
use crate::capture::unwind::mark;

/// Largest step in bytes that is taken for a frame. A larger one is a stray pointer.
const LARGEST_FRAME: u64 = 1 << 20;

/// Mask of an address: return addresses may carry a signature in their upper bits (AArch64 pointer authentication).
const ADDRESS_BITS: u64 = (1 << 48) - 1;

/// Unwinder that captures the call stacks of one thread.
///
/// It belongs to one thread at a time, and to one [`CallTree`].
#[derive(Debug)]
pub struct ThreadUnwinder {
    epoch: u32,
    addresses: GrowArray<u64>,
    cut: AtomicU64,
    incomplete: AtomicU64,
}

impl ThreadUnwinder {
    /// Makes an unwinder. Returns `None` if the kernel has no memory.
    #[must_use]
    pub fn new() -> Option<ThreadUnwinder> {
        Some(ThreadUnwinder {
            epoch: modules::epoch(),
            addresses: GrowArray::mapped(MAX_DEPTH)?,
            cut: AtomicU64::new(0),
            incomplete: AtomicU64::new(0),
        })
    }

    /// Forgets the present thread, before another one uses the unwinder.
    pub fn begin_thread(&mut self) {}

    /// Returns the counts of incomplete captures so far.
    pub fn counts(&self) -> StackCounts {
        StackCounts {
            cut: self.cut.load(Ordering::Relaxed),
            incomplete: self.incomplete.load(Ordering::Relaxed),
        }
    }

    /// Returns the node of the call stack that begins at `registers`; the node's address is the return address there.
    ///
    /// # Safety
    /// `registers` are those of a frame of the calling thread that has not returned yet.
    pub unsafe fn capture(&mut self, registers: Registers, tree: &mut CallTree) -> u32 {
        let epoch = modules::epoch();
        if epoch != self.epoch {
            self.epoch = epoch;
            tree.reset();
        }
        let mut length = 0;
        let mut push = |address: u64| {
            self.addresses.as_mut_slice()[length] = address & ADDRESS_BITS;
            length += 1;
            length < MAX_DEPTH
        };
        let mut room = registers.return_address == 0 || push(registers.return_address);
        let mut readable = Readable {
            low: registers.sp,
            high: registers.sp,
        };
        let (mut sp, mut bp) = (registers.sp, registers.bp);
        let mut is_whole = false;
        while room {
            // A frame record: the caller's frame pointer, then the return address (AAPCS64 6.4.6; x86-64 psABI 3.2.2).
            if bp < sp || bp - sp > LARGEST_FRAME || bp % 8 != 0 {
                break;
            }
            let (Some(outer), Some(address)) = (readable.word(bp), readable.word(bp + 8)) else {
                break;
            };
            if address == 0 {
                is_whole = true;
                break;
            }
            room = push(address);
            is_whole = outer == 0;
            if is_whole {
                break;
            }
            (sp, bp) = (bp + 16, outer);
        }
        let mut node = 0;
        if !room {
            self.cut
                .store(self.cut.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            node = tree.child(0, mark::CUT);
        } else if !is_whole {
            self.incomplete.store(
                self.incomplete.load(Ordering::Relaxed) + 1,
                Ordering::Relaxed,
            );
            node = tree.child(0, mark::INCOMPLETE);
        }
        for &address in self.addresses.as_slice()[..length].iter().rev() {
            node = tree.child(node, address);
        }
        node
    }

    /// Unmaps all memory.
    pub fn release(self) {
        self.addresses.release();
    }
}

/// Stack memory that is known to be readable, page by page without a gap.
struct Readable {
    low: u64,
    high: u64,
}

impl Readable {
    fn word(&mut self, address: u64) -> Option<u64> {
        // The smallest page size of all systems.
        const STEP: u64 = 4096;
        while address + 8 > self.high {
            let next = self.high & !(STEP - 1);
            if !arch::is_readable(next) {
                return None;
            }
            self.high = next + STEP;
        }
        if address < self.low {
            return None;
        }
        // SAFETY: aligned, and between the stack pointer and pages that were readable just now and join its own.
        Some(unsafe { (address as *const u64).read_volatile() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_never_leaves_readable_memory_and_gives_the_same_node_for_the_same_stack() {
        let mut unwinder = ThreadUnwinder::new().unwrap();
        let mut tree = CallTree::new().unwrap();
        let here = arch::registers_here();
        for bp in [
            here.bp,
            0,
            1,
            8,
            here.sp,
            here.sp + 1,
            here.sp + (1 << 19),
            u64::MAX,
            u64::MAX - 7,
        ] {
            let registers = Registers {
                bp,
                return_address: 0x1234_5678,
                ..here
            };
            // SAFETY: registers of this function, but for a frame pointer that may be anything.
            let nodes = [0, 1].map(|_| unsafe { unwinder.capture(registers, &mut tree) });
            assert_eq!(nodes[0], nodes[1]);
            assert_eq!(tree.nodes().node(nodes[0]).1, 0x1234_5678);
        }
    }
}
