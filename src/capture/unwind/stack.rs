//! Which memory is stack: what a walk may read without fear.
//!
//! *The thread's own stack* is the memory between its stack pointer and its upper end. The upper end is the thread's
//! control block, which every libc puts on top of the stacks it makes; of the main thread, the end of the kernel's
//! stack mapping. All of it stays mapped as long as the thread lives. That a stack pointer below the upper end is on
//! this stack, and not on one that lies further down, is found by asking the kernel for each page between, once;
//! guard pages part stacks.
//!
//! *Any other stack* (`sigaltstack`, a coroutine) can be unmapped at any time after its code has left it, so nothing
//! about it is remembered: each page is asked for before it is read, upward from the stack pointer without a gap.
//!
//! `/proc/self/maps` would tell the same, but a hundred times slower, and not in a `chroot` without `/proc`.

use core::sync::atomic::{AtomicU64, Ordering};

use super::start;
use crate::capture::arch::{self, StackSlots};

/// No page is smaller.
const PAGE: u64 = arch::PAGE as u64;

/// The kernel keeps at least this free below the main thread's stack (`arch/x86/mm/mmap.c`, `SIZE_128M`; on AArch64
/// `mm/util.c`, `MIN_GAP`), so what lies in it is this stack, however far it has grown.
const MAIN_STACK: u64 = 128 << 20;

/// The most pages that are asked for: of a thread's own stack once, of another in each capture.
const OWN_PAGES: u64 = 1 << 16;
const OTHER_PAGES: u64 = 256;

/// An address near the upper end of the main thread's stack; 0 until [`prepare`].
static MAIN_STACK_TOP: AtomicU64 = AtomicU64::new(0);

/// Finds what must be asked of libc. Called outside of hooks, before the first capture.
pub(crate) fn prepare() {
    // SAFETY: looks up a number in the auxiliary vector; AT_RANDOM is an address that the kernel has put on the stack.
    let on_stack = unsafe { libc::getauxval(libc::AT_RANDOM) };
    MAIN_STACK_TOP.store(on_stack, Ordering::Relaxed);
    start::prepare();
    arch::prepare();
}

/// Where a thread's own stack lies, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnStack {
    /// Every page from here to `high` is this stack's.
    low: u64,
    high: u64,
    /// Past the first frame; 0 if that is not known.
    pub(super) start: u64,
    /// `low` is as low as it gets.
    is_whole: bool,
}

impl OwnStack {
    /// Nothing is known yet.
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

    /// Past the last word of it.
    #[inline(always)]
    pub(super) fn high(&self) -> u64 {
        self.high
    }

    /// Whether `sp` is on this stack, learning what is needed to tell.
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

    /// The memory that a walk from `sp`, which is on this stack, may read.
    #[inline(always)]
    pub(super) fn slots(&self, sp: u64) -> Slots {
        Slots {
            low: sp,
            high: self.high,
            more: 0,
        }
    }
}

/// The memory that a walk may read.
#[derive(Debug)]
pub(super) struct Slots {
    low: u64,
    /// Past the last readable byte, as far as is known.
    high: u64,
    /// How many pages may still be asked for.
    more: u64,
}

impl Slots {
    /// The memory of a stack that is not the thread's own.
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
