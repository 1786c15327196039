//! Finds out which memory is stack, so that a walk may read it safely.
//!
//! *The thread's own stack* is the memory between its stack pointer and its upper end. The upper end is the thread's control
//! block, which every libc puts on top of the stacks it makes; for the main thread, it is the end of the kernel's stack
//! mapping. All of it stays mapped as long as the thread lives. A stack pointer below the upper end could also be on another
//! stack that lies further down. To rule that out, the kernel is asked once for each page between them; guard pages separate
//! stacks.
//!
//! *Any other stack* (`sigaltstack`, a coroutine) can be unmapped at any time after its code has left it, so nothing about
//! it is remembered: the kernel is asked for each page before the page is read, upward from the stack pointer without a gap.
//!
//! `/proc/self/maps` has the same information, but is a hundred times slower, and missing in a `chroot` without `/proc`.

use core::sync::atomic::{AtomicU64, Ordering};

use super::start;
use crate::capture::arch::{self, StackSlots};

/// Smallest page size.
const PAGE: u64 = arch::PAGE as u64;

/// Bytes that the kernel keeps free below the main thread's stack at least (`arch/x86/mm/mmap.c`, `SIZE_128M`; on AArch64
/// `mm/util.c`, `MIN_GAP`). So all memory in them is this stack, however far it has grown.
const MAIN_STACK: u64 = 128 << 20;

/// Largest number of pages that the kernel is asked for: once for a thread's own stack, and in each capture for another
/// stack.
const OWN_PAGES: u64 = 1 << 16;
const OTHER_PAGES: u64 = 256;

/// An address near the upper end of the main thread's stack; 0 until [`prepare`].
static MAIN_STACK_TOP: AtomicU64 = AtomicU64::new(0);

/// Asks libc for what is needed. Called outside of hooks, before the first session.
pub(crate) fn prepare() {
    // SAFETY: looks up a number in the auxiliary vector; AT_RANDOM is an address that the kernel has put on the stack.
    let on_stack = unsafe { libc::getauxval(libc::AT_RANDOM) };
    MAIN_STACK_TOP.store(on_stack, Ordering::Relaxed);
    start::prepare();
    arch::prepare();
}

/// Place of a thread's own stack, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnStack {
    /// Every page from here to `high` belongs to this stack.
    low: u64,
    high: u64,
    /// End of the first frame; 0 if that is not known.
    pub(super) start: u64,
    /// Set if `low` cannot become lower.
    is_whole: bool,
}

impl OwnStack {
    /// Place of a stack of which nothing is known yet.
    pub(super) const UNKNOWN: OwnStack = OwnStack {
        low: 0,
        high: 0,
        start: 0,
        is_whole: false,
    };

    #[inline(always)]
    pub(super) fn contains(&self, sp: u64) -> bool {
        sp.wrapping_sub(self.low) < self.high - self.low
    }

    /// Returns the end of the stack's last word.
    #[inline(always)]
    pub(super) fn high(&self) -> u64 {
        self.high
    }

    /// Returns whether `sp` is on this stack. Asks the kernel if necessary.
    #[cold]
    pub(super) fn reaches(&mut self, sp: u64) -> bool {
        if self.high == 0 {
            *self = OwnStack::of_this_thread(sp);
        }
        let mut pages = OWN_PAGES;
        while !self.is_whole && sp < self.low {
            if pages == 0 || !arch::is_readable(self.low - PAGE) {
                self.is_whole = true;
                break;
            }
            self.low -= PAGE;
            pages -= 1;
        }
        self.contains(sp)
    }

    fn of_this_thread(sp: u64) -> OwnStack {
        if !arch::is_main_thread() {
            let high = arch::thread_pointer() & !7;
            return OwnStack {
                low: high & !(PAGE - 1),
                high,
                start: start::of_this_thread(false),
                is_whole: false,
            };
        }
        let known = MAIN_STACK_TOP.load(Ordering::Relaxed);
        let mut high = (if known == 0 { sp } else { known }) & !(PAGE - 1);
        for _ in 0..OWN_PAGES {
            if !arch::is_readable(high) {
                break;
            }
            high += PAGE;
        }
        OwnStack {
            low: high - MAIN_STACK,
            high,
            start: start::of_this_thread(true),
            is_whole: true,
        }
    }

    /// Returns the memory that a walk from `sp`, which is on this stack, may read.
    #[inline(always)]
    pub(super) fn slots(&self, sp: u64) -> Slots {
        Slots {
            low: sp,
            high: self.high,
            more: 0,
        }
    }
}

/// Memory that a walk may read.
#[derive(Debug)]
pub(super) struct Slots {
    low: u64,
    /// End of the readable bytes, as far as it is known.
    high: u64,
    /// Number of pages that the kernel may still be asked for.
    more: u64,
}

impl Slots {
    /// Returns the memory of a stack that is not the thread's own.
    pub(super) fn elsewhere(sp: u64) -> Slots {
        let low = sp & !7;
        Slots {
            low,
            high: low & !(PAGE - 1),
            more: OTHER_PAGES,
        }
    }

    #[inline(always)]
    pub(super) fn contains(&self, address: u64) -> bool {
        self.low <= address && address < self.high
    }

    #[cold]
    fn extend(&mut self, address: u64) -> bool {
        while address >= self.high {
            if self.more == 0 || !arch::is_readable(self.high) {
                self.more = 0;
                return false;
            }
            self.more -= 1;
            self.high += PAGE;
        }
        true
    }
}

impl StackSlots for Slots {
    #[inline(always)]
    fn read(&mut self, address: u64) -> Option<u64> {
        if address < self.low || address & 7 != 0 {
            return None;
        }
        if address >= self.high && !self.extend(address) {
            return None;
        }
        // SAFETY: a whole word between `low` and `high`, both aligned. Of the thread's own stack all of that is mapped
        // while the thread runs; of another, the kernel has just read these pages and they join the one that the
        // thread's code runs on. Volatile, since the words belong to frames of other functions.
        Some(unsafe { (address as *const u64).read_volatile() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> u64 {
        arch::registers_here().sp
    }

    #[test]
    fn a_thread_finds_its_own_stack_and_no_other() {
        prepare();
        let heap = Box::new([0u8; 64]);
        let other = std::thread::scope(|scope| scope.spawn(here).join().unwrap());
        let mut own = OwnStack::UNKNOWN;
        assert!(!own.contains(here()));
        assert!(!own.reaches(other));
        assert!(!own.reaches(heap.as_ptr() as u64));
        assert!(own.reaches(here()) && own.contains(here()));
        assert!(own.high - here() < 16 << 20);
    }

    #[test]
    fn a_stack_that_grows_deeper_is_still_its_own() {
        fn deep(own: &mut OwnStack, left: u32) -> bool {
            let room = std::hint::black_box([left; 1024]);
            let here = own.reaches(here());
            here && (left == 0 || deep(own, left - 1)) && room[7] == left
        }
        let mut own = OwnStack::UNKNOWN;
        assert!(own.reaches(here()));
        assert!(deep(&mut own, 100));
    }

    #[test]
    fn another_stack_is_read_up_to_its_first_unreadable_page_and_no_further() {
        let page = arch::page_size();
        let pages = arch::map_pages(4 * page).unwrap();
        let start = pages.as_ptr() as u64;
        // SAFETY: the third of four pages that nobody uses.
        unsafe {
            assert_eq!(
                libc::mprotect((start as usize + 2 * page) as *mut _, page, libc::PROT_NONE),
                0
            )
        };
        let mut slots = Slots::elsewhere(start + 64);
        assert_eq!(slots.read(start + 56), None);
        assert_eq!(slots.read(start + 64), Some(0));
        assert_eq!(slots.read(start + 65), None);
        assert_eq!(slots.read(start + 2 * page as u64 - 8), Some(0));
        assert_eq!(slots.read(start + 2 * page as u64), None);
        assert_eq!(
            slots.read(start + 3 * page as u64),
            None,
            "a page behind a gap is not part of the stack"
        );
        // SAFETY: the whole mapping, which nobody uses.
        unsafe { arch::unmap_pages(pages, 4 * page) };
    }
}
