//! The unwinder of a thread.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use super::kept::{Check, Ending, KeptFrame, KeptStack, WhyNot};
use super::rules::{Entry, RuleCache};
use super::stack::{OwnStack, Slots};
use super::walk::{Found, Frame, Walk};
use super::{LEAST_DEPTH, MAX_DEPTH, StackCounts};
use crate::capture::arch::{self, Interrupted, Registers};
use crate::capture::call_tree::CallTree;
use crate::capture::memory::{self, GrowArray};
use crate::capture::modules::published;
use crate::capture::unwind::mark;

/// Bytes of a new unwinder, in one piece.
const BLOCK: usize = 8192;
const FIRST_RULES: usize = 128;
const FIRST_KEPT: usize = 62;
const FIRST_CHECKS: usize = 96;
const FIRST_FRAMES: usize = 64;

const _: () = assert!(
    FIRST_RULES * size_of::<Entry>()
        + FIRST_KEPT * size_of::<KeptFrame>()
        + FIRST_CHECKS * size_of::<Check>()
        + FIRST_FRAMES * size_of::<Frame>()
        <= BLOCK,
    "an unwinder's first tables fit into its first block"
);

/// Depth to which a stack deeper than `MAX_DEPTH` is cut, so that the next deeper one need not be cut again at once.
const CUT_TO: usize = (MAX_DEPTH + LEAST_DEPTH) / 2;

/// Unwinder that captures the call stacks of one thread. It begins with 8 KiB and grows with the stacks.
///
/// It belongs to one thread at a time, and to one [`CallTree`]: kept stacks hold its node numbers.
#[derive(Debug)]
pub struct ThreadUnwinder {
    block: NonNull<u8>,
    version: u64,
    stack: OwnStack,
    rules: RuleCache,
    kept: KeptStack,
    frames: GrowArray<Frame>,
    cut: AtomicU64,
    incomplete: AtomicU64,
}

// SAFETY: it owns all it points to; what is known of a thread is forgotten by `begin_thread`.
unsafe impl Send for ThreadUnwinder {}

impl ThreadUnwinder {
    /// Makes an unwinder for the calling thread or, after [`begin_thread`](Self::begin_thread), any other. Returns `None` if
    /// the kernel has no memory.
    #[must_use]
    pub fn new() -> Option<ThreadUnwinder> {
        let block = memory::map(BLOCK)?;
        let mut used = 0;
        // SAFETY: the pieces lie behind each other inside the block (asserted above), which is zeroed, lives as long
        // as the unwinder, and is used for nothing else. Each size is a multiple of 8, which aligns the next.
        let (rules, frames, checks, walked) = unsafe {
            (
                piece(block, &mut used, FIRST_RULES),
                piece(block, &mut used, FIRST_KEPT),
                piece(block, &mut used, FIRST_CHECKS),
                piece(block, &mut used, FIRST_FRAMES),
            )
        };
        Some(ThreadUnwinder {
            block,
            version: published::version(),
            stack: OwnStack::UNKNOWN,
            rules: RuleCache::new(rules),
            kept: KeptStack::new(frames, checks),
            frames: walked,
            cut: AtomicU64::new(0),
            incomplete: AtomicU64::new(0),
        })
    }

    /// Forgets the present thread, before another one uses the unwinder.
    pub fn begin_thread(&mut self) {
        self.stack = OwnStack::UNKNOWN;
        self.kept.truncate(0);
    }

    /// Assumes that the stack of the calling thread starts at `start`.
    #[cfg(test)]
    pub(super) fn starts_at(&mut self, start: u64) {
        assert!(self.stack.reaches(arch::registers_here().sp));
        self.stack.start = start;
    }

    /// Returns the counts of incomplete captures with this unwinder so far.
    pub fn counts(&self) -> StackCounts {
        StackCounts {
            cut: self.cut.load(Ordering::Relaxed),
            incomplete: self.incomplete.load(Ordering::Relaxed),
        }
    }

    /// Returns the node of the call stack that begins at `registers`; the node's address is the return address there.
    ///
    /// It never allocates, locks, or calls libc. `tree` must be the same one each time.
    ///
    /// # Safety
    /// `registers` are those of a frame of the calling thread that has not returned yet, from `registers_here` or a
    /// hook's entry. The calling thread is the one that has used this unwinder since it was made or since
    /// [`begin_thread`](Self::begin_thread).
    #[inline(always)]
    pub unsafe fn capture(&mut self, registers: Registers, tree: &mut CallTree) -> u32 {
        let version = published::version();
        if version == self.version && self.stack.contains(registers.sp) {
            // SAFETY: the caller's duty; the stack pointer is on the thread's own stack.
            if let Some(node) = unsafe { self.capture_near(&registers, tree) } {
                return node;
            }
        }
        // SAFETY: the caller's duty.
        unsafe { self.capture_anywhere(registers, None, version, tree) }
    }

    /// Returns the node of the call stack of code that a signal has interrupted. The address of the innermost frame's node
    /// is one past the instruction that was to run next.
    ///
    /// Made for a signal handler: like [`capture`](Self::capture), it may be called at any moment at which this unwinder is
    /// not in use.
    ///
    /// # Safety
    /// The same as for [`capture`](Self::capture), where the frame is the one that the running handler has interrupted.
    pub unsafe fn capture_interrupted(&mut self, at: Interrupted, tree: &mut CallTree) -> u32 {
        let version = published::version();
        // SAFETY: the caller's duty.
        unsafe { self.capture_anywhere(at.registers, Some(at.link), version, tree) }
    }

    /// Captures in the common case: a few plain frames inside of a kept stack that is unchanged. Returns `None` in any other
    /// case, without a change.
    ///
    /// A function of its own, so that its loops have the registers for themselves.
    ///
    /// # Safety
    /// The same as for [`capture`](Self::capture), and `registers.sp` is on the thread's own stack.
    #[inline(never)]
    unsafe fn capture_near(&mut self, registers: &Registers, tree: &mut CallTree) -> Option<u32> {
        let high = self.stack.high();
        let mut at = *registers;
        let mut places = self
            .frames
            .as_mut_slice()
            .get_mut(..FIRST_FRAMES)?
            .iter_mut();
        let mut outer = self.kept.frames().iter();
        let mut kept = outer.next_back()?;
        loop {
            while kept.is_inside_of(at.sp) {
                kept = outer.next_back()?;
            }
            if kept.is_at(at) {
                let inner = outer.len();
                // SAFETY: the walk is at this kept frame, on the thread's own stack.
                let Some(stale) = (unsafe { self.kept.stale(inner) }) else {
                    break;
                };
                // The same function was called from another place: the frames between are unchanged.
                // SAFETY: as above.
                at = unsafe { self.kept.copy_walked(inner, stale, at.bp, &mut places) }?;
                outer = self.kept.frames()[..stale].iter();
                kept = outer.next_back()?;
            }
            let rule = self.rules.rule(at.return_address.wrapping_sub(1));
            if !rule.is_plain() {
                return None;
            }
            *places.next()? = Frame::new(at, rule);
            // SAFETY: the walk goes outward from the running function on the thread's own stack, all of which is
            // mapped from there up to `high`.
            at = unsafe { rule.plain_step(at, high) }?;
        }
        let (kept, length) = (outer.len() + 1, FIRST_FRAMES - places.len());
        let is_deep = self.kept.ending == Ending::Cut || length + kept > MAX_DEPTH;
        if is_deep || !self.kept.reserve_behind(kept, length, 0) {
            return None;
        }
        if self.kept.ending == Ending::Lost {
            self.count(Ending::Lost);
        }
        let walked = &self.frames.as_slice()[..length];
        Some(self.kept.push_walked(kept, walked, at, tree))
    }

    /// Captures in every case. `interrupted` is set if a signal has interrupted the frame, to its link register.
    ///
    /// # Safety
    /// The same as for [`capture`](Self::capture).
    #[cold]
    #[inline(never)]
    unsafe fn capture_anywhere(
        &mut self,
        registers: Registers,
        interrupted: Option<Option<u64>>,
        version: u64,
        tree: &mut CallTree,
    ) -> u32 {
        if version != self.version {
            self.renew(version, tree);
        }
        // A leaf function may use some memory below its stack pointer.
        let below = interrupted.map_or(0, |_| arch::RED_ZONE);
        let own = self.stack.contains(registers.sp) || self.stack.reaches(registers.sp);
        let slots = if own {
            self.stack.slots(registers.sp.wrapping_sub(below))
        } else {
            Slots::elsewhere(registers.sp)
        };
        let mut walk = Walk {
            rules: &mut self.rules,
            candidates: if own { self.kept.len() } else { 0 },
            kept: &self.kept,
            own: &mut self.stack,
            frames: &mut self.frames,
            slots,
            link: interrupted.flatten(),
            at: registers,
            interrupted: interrupted.is_some(),
            began_on_own: own,
            length: 0,
            // Interrupted code is not at a call, so a walk never meets it again.
            keep_from: match own {
                true => usize::from(interrupted.is_some()),
                false => usize::MAX,
            },
            outer: None,
            why_not: WhyNot::NONE,
        };
        let found = walk.run(MAX_DEPTH);
        let (outer_kept, ending, beyond) = match found {
            Found::Kept(kept)
                if walk.length + kept <= MAX_DEPTH && walk.kept.ending != Ending::Cut =>
            {
                (kept, walk.kept.ending, 0)
            }
            Found::End(ending) if ending != Ending::Cut => (0, ending, 0),
            _ => fit(&mut walk, found),
        };

        let mut outer = if outer_kept > 0 {
            Some(walk.at)
        } else {
            walk.outer
        };
        let (length, keep_from, mut why_not) = (walk.length, walk.keep_from, walk.why_not);
        let mut node = 0;
        if ending != Ending::Whole || !own {
            // Only allocations are counted, not interrupted code.
            if interrupted.is_none() {
                self.count(ending);
            }
            node = root(ending, own, tree);
        }
        if own {
            if outer_kept == 0 {
                self.kept.ending = ending;
                self.kept.beyond = beyond;
            } else {
                node = self.kept.frame(outer_kept - 1).node;
            }
            self.kept.truncate(outer_kept);
        }
        let keeps = own
            && keep_from < length
            && self
                .kept
                .reserve_behind(outer_kept, length, why_not.in_a_row());
        for index in (0..length).rev() {
            // SAFETY: the walk has written this many frames.
            let frame = unsafe { &*self.frames.as_ptr().add(index) };
            let past = u64::from(index == 0 && interrupted.is_some());
            node = tree.child(node, frame.at().return_address.wrapping_add(past));
            if keeps && index >= keep_from {
                self.kept.push(frame, outer, why_not, node);
                outer = Some(frame.at());
                why_not = WhyNot::NONE;
            }
        }
        node
    }

    #[inline]
    fn count(&self, ending: Ending) {
        let (counter, of_all) = match ending {
            Ending::Whole => return,
            Ending::Lost => (&self.incomplete, &super::INCOMPLETE),
            Ending::Cut => (&self.cut, &super::CUT),
        };
        of_all.fetch_add(1, Ordering::Relaxed);
        // Only this thread writes.
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Takes note of modules that came or went.
    fn renew(&mut self, version: u64, tree: &mut CallTree) {
        self.rules.forget();
        self.kept.truncate(0);
        if published::epoch_of(version) != published::epoch_of(self.version) {
            tree.reset();
        }
        self.version = version;
    }

    /// Unmaps all memory.
    pub fn release(self) {
        self.rules.release();
        self.kept.release();
        self.frames.release();
        // SAFETY: the block of `new`, in which nothing of the unwinder lies any more.
        unsafe { memory::unmap(self.block, BLOCK) };
    }
}

/// Returns room for `length` values after the `used` bytes of `block`.
///
/// # Safety
/// The block is zeroed, large enough and aligned there, and nothing else uses that part of it as long as the array lives.
unsafe fn piece<T: memory::Plain>(
    block: NonNull<u8>,
    used: &mut usize,
    length: usize,
) -> GrowArray<T> {
    // SAFETY: the caller's duty.
    unsafe {
        let start = block.add(*used).cast();
        *used += length * size_of::<T>();
        GrowArray::borrowed(start, length)
    }
}

/// Returns the node below which a stack hangs that is not whole, or not the thread's own.
#[cold]
fn root(ending: Ending, own: bool, tree: &mut CallTree) -> u32 {
    match ending {
        _ if !own => tree.child(0, mark::FOREIGN),
        Ending::Whole => 0,
        Ending::Lost => tree.child(0, mark::INCOMPLETE),
        Ending::Cut => tree.child(0, mark::CUT),
    }
}

/// Cuts a stack that is too deep, or continues one that was cut. Returns how many kept frames remain, how the stack ends,
/// and how many frames are known to lie beyond a cut.
///
/// A stack is only cut if it is deeper than `MAX_DEPTH`, and then to a depth that leaves room for more, because each cut
/// gives all frames new nodes. A cut stack that has lost frames since is walked further out when fewer than `LEAST_DEPTH`
/// are left.
#[cold]
#[inline(never)]
fn fit(walk: &mut Walk<'_>, found: Found) -> (usize, Ending, usize) {
    let mut ending = match found {
        Found::End(ending) => ending,
        Found::Kept(kept) => {
            let depth = walk.length + kept;
            let is_deep = depth + walk.kept.beyond > MAX_DEPTH && depth >= LEAST_DEPTH;
            if depth <= MAX_DEPTH && is_deep {
                return (kept, Ending::Cut, walk.kept.beyond);
            }
            // Walk past the kept frames, and further out.
            walk.candidates = 0;
            let went_on = walk.take_over(kept - 1, 0);
            match walk.run(2 * MAX_DEPTH) {
                Found::End(ending) if went_on => ending,
                _ => Ending::Cut,
            }
        }
    };
    if walk.length > MAX_DEPTH {
        ending = Ending::Cut;
    }
    if ending != Ending::Cut {
        return (0, ending, 0);
    }
    let depth = walk.length + 1;
    if walk.length > CUT_TO {
        // SAFETY: the walk has written this frame.
        walk.outer = Some(unsafe { &*walk.frames.as_ptr().add(CUT_TO) }.at());
        walk.why_not = WhyNot::NONE;
        walk.length = CUT_TO;
    }
    (0, Ending::Cut, depth - walk.length)
}
