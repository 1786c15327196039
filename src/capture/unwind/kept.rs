//! The last captured stack of a thread, and the conditions under which it is still the current one.
//!
//! The result of unwinding depends only on a frame's registers and on the stack words that are read on the way. So if a walk
//! reaches the registers of a kept frame, and every word that was read from there on is unchanged, then the rest of the
//! stack is the kept one. The walk can stop there.
//!
//! ```text
//! frames   root │ 0 │ 1 │ 2 │ …          leaf        checks    words read to step from frame 0 outward, from 1, …
//!                 │   └ checks_end ─────────────────────────────────▶│
//!                 └ checks_end ──────────────────────────▶│
//! ```
//! rbp is compared only if stepping from the frame, or from a frame further out, uses it before it is restored ("needed").
//! If rbp were compared everywhere, the stack would look changed nearly always.

use super::walk::Frame;
use crate::capture::arch::{Registers, Rule};
use crate::capture::call_tree::CallTree;
use crate::capture::memory::{GrowArray, Plain};

/// Kept frame.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct KeptFrame {
    sp: u64,
    return_address: u64,
    /// Only meaningful if it is needed.
    bp: u64,
    /// The frame's node in the call tree.
    pub(super) node: u32,
    /// The rule that steps outward from the frame.
    rule: u32,
    /// End of the checks of this frame and all frames further out.
    checks_end: u32,
    needs_bp: u32,
}

// SAFETY: integers.
unsafe impl Plain for KeptFrame {}

impl KeptFrame {
    /// Returns whether the frame's stack pointer is below `sp`.
    #[inline(always)]
    pub(super) fn is_inside_of(&self, sp: u64) -> bool {
        self.sp < sp
    }

    /// Returns whether the step from the frame, and all steps further out, are the same from `at`.
    #[inline(always)]
    pub(super) fn is_at(&self, at: Registers) -> bool {
        self.sp == at.sp
            && self.return_address == at.return_address
            && (self.needs_bp == 0 || self.bp == at.bp)
    }
}

/// Stack word that was read.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Check {
    slot: u64,
    value: u64,
}

// SAFETY: integers.
unsafe impl Plain for Check {}

impl Check {
    /// Returns whether the word has changed.
    ///
    /// # Safety
    /// The slot lies between the thread's current stack pointer and the upper end of its stack.
    #[inline(always)]
    unsafe fn is_stale(&self) -> bool {
        // SAFETY: mapped, as the caller says; all slots are aligned. Volatile as in `Slots::read`.
        let now = unsafe { (self.slot as *const u64).read_volatile() };
        now != self.value
    }
}

/// Way in which a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// At the outermost frame.
    Whole,
    /// The outer frames could not be found.
    Lost,
    /// There are more frames than are recorded.
    Cut,
}

/// Stack words because of which there is no step from a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct WhyNot {
    /// Single words.
    pub(super) slots: [Option<u64>; 3],
    /// All words from the first address up to the second: they are not return addresses.
    pub(super) words: Option<(u64, u64)>,
}

impl WhyNot {
    /// No words.
    pub(super) const NONE: WhyNot = WhyNot {
        slots: [None; 3],
        words: None,
    };

    /// Returns how many words there are in a row.
    pub(super) fn in_a_row(&self) -> usize {
        self.words
            .map_or(0, |(from, to)| ((to - from) / 8) as usize)
    }
}

/// Last stack, root first.
#[derive(Debug)]
pub(super) struct KeptStack {
    frames: GrowArray<KeptFrame>,
    checks: GrowArray<Check>,
    length: usize,
    /// The end of the walk that found the outermost kept frame.
    pub(super) ending: Ending,
    /// For a cut stack: at least so many frames are further out.
    pub(super) beyond: usize,
}

impl KeptStack {
    pub(super) fn new(frames: GrowArray<KeptFrame>, checks: GrowArray<Check>) -> KeptStack {
        KeptStack {
            frames,
            checks,
            length: 0,
            ending: Ending::Whole,
            beyond: 0,
        }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    #[inline(always)]
    pub(super) fn frame(&self, index: usize) -> &KeptFrame {
        debug_assert!(index < self.length);
        // SAFETY: every caller counts down from `length`, which is no more than the capacity.
        unsafe { &*self.frames.as_ptr().add(index) }
    }

    /// Returns the frames, root first.
    #[inline(always)]
    pub(super) fn frames(&self) -> &[KeptFrame] {
        // SAFETY: so many frames were written.
        unsafe { core::slice::from_raw_parts(self.frames.as_ptr(), self.length) }
    }

    /// Forgets all frames except the `length` outermost.
    #[inline(always)]
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Returns how many of the outermost `below` frames have a stack pointer not below `sp`.
    #[inline(always)]
    pub(super) fn below(&self, mut below: usize, sp: u64) -> usize {
        while below > 0 && self.frame(below - 1).is_inside_of(sp) {
            below -= 1;
        }
        below
    }

    /// Returns the innermost frame from `index` outward whose step has changed.
    ///
    /// # Safety
    /// The stack pointer of frame `index` is that of a frame of the running thread, on its own stack.
    #[inline(always)]
    pub(super) unsafe fn stale(&self, index: usize) -> Option<usize> {
        const AT_ONCE: usize = 8;
        let end = self.frame(index).checks_end as usize;
        // SAFETY: `checks_end` is no more than the checks that were written.
        let checks = unsafe { core::slice::from_raw_parts(self.checks.as_ptr(), end) };
        // Innermost first, because the innermost words change most often. Unrolled, since a capture spends its time here.
        let mut groups = checks.rchunks_exact(AT_ONCE);
        for group in &mut groups {
            for check in group.iter().rev() {
                // SAFETY: all checks up to `checks_end` of a frame are of slots at or above its stack pointer and
                // below the stack's upper end, where they were read before.
                if unsafe { check.is_stale() } {
                    return Some(self.frame_of(check));
                }
            }
        }
        // SAFETY: as above.
        let stale = groups
            .remainder()
            .iter()
            .rev()
            .find(|check| unsafe { check.is_stale() });
        stale.map(|check| self.frame_of(check))
    }

    /// Returns the frame that a check belongs to.
    #[cold]
    #[inline(never)]
    fn frame_of(&self, check: &Check) -> usize {
        // SAFETY: the check is one of these.
        let index = unsafe { core::ptr::from_ref(check).offset_from(self.checks.as_ptr()) } as u32;
        self.frames.as_slice()[..self.length].partition_point(|frame| frame.checks_end <= index)
    }

    /// Returns frame `index` as a walk found it, except for its rbp.
    pub(super) fn walked(&self, index: usize, bp: u64) -> Frame {
        let frame = self.frame(index);
        let at = Registers {
            return_address: frame.return_address,
            sp: frame.sp,
            bp,
        };
        Frame::new(at, Rule::from_bits(frame.rule))
    }

    /// Writes the frames from `inner`, where a walk is with this rbp, up to but without `outer`, as a walk would find them.
    /// Returns the registers at `outer`, or `None` if there is not enough `room`, or if a step between them is not plain.
    ///
    /// # Safety
    /// All of these frames are unchanged and on the running thread's own stack.
    #[cold]
    pub(super) unsafe fn copy_walked(
        &self,
        inner: usize,
        outer: usize,
        mut bp: u64,
        room: &mut core::slice::IterMut<'_, Frame>,
    ) -> Option<Registers> {
        for index in (outer + 1..=inner).rev() {
            let frame = self.walked(index, bp);
            *room.next()? = frame;
            let rule = frame.rule();
            if !rule.is_plain() {
                return None;
            }
            if !rule.keeps_bp() {
                // A kept frame's rbp is only valid if it is needed, and which frames need it may change.
                let slot = rule.bp_slot(frame.at(), self.frame(index - 1).sp);
                // SAFETY: the slot lies inside of the frame, where it was read when the frame was walked first.
                bp = unsafe { (slot as *const u64).read_volatile() };
            }
        }
        Some(self.walked(outer, bp).at())
    }

    /// Makes room for `more` frames inside of the `kept` outermost. The first of the new frames has `words` additional
    /// checks. Returns false if there is no room; then the frames cannot be kept.
    #[inline(always)]
    pub(super) fn reserve_behind(&mut self, kept: usize, more: usize, words: usize) -> bool {
        // A step reads three words at most.
        const CHECKS: usize = 3;
        let frames = kept + more;
        let checks = self.checks_end(kept) + more * CHECKS + words;
        let room = self.frames.capacity() >= frames && self.checks.capacity() >= checks;
        room || self.grow(frames, checks)
    }

    #[cold]
    fn grow(&mut self, frames: usize, checks: usize) -> bool {
        self.frames.grow(frames.next_power_of_two()) && self.checks.grow(checks.next_power_of_two())
    }

    /// Returns the end of the checks of the `kept` outermost frames.
    #[inline(always)]
    fn checks_end(&self, kept: usize) -> usize {
        if kept == 0 {
            0
        } else {
            self.frame(kept - 1).checks_end as usize
        }
    }

    /// Forgets all frames except the `kept` outermost, and adds the frames of a walk. It begins with the innermost one, and
    /// has led to the last of the kept frames, at `outer`. There must be room. Returns the node of the innermost frame.
    #[inline(always)]
    pub(super) fn push_walked(
        &mut self,
        kept: usize,
        frames: &[Frame],
        mut outer: Registers,
        tree: &mut CallTree,
    ) -> u32 {
        let mut node = self.frame(kept - 1).node;
        let mut tip = self.tip(kept);
        for frame in frames.iter().rev() {
            node = tree.child(node, frame.at().return_address);
            tip.push_stepped(frame, outer, node);
            outer = frame.at();
        }
        self.keep(kept + frames.len(), &tip);
        node
    }

    /// Returns the inner end of the `kept` outermost frames.
    #[inline(always)]
    fn tip(&self, kept: usize) -> Tip {
        Tip {
            // SAFETY: so many frames were written, and are no more than the capacity.
            next: unsafe { self.frames.as_ptr().add(kept) },
            checks: self.checks.as_ptr(),
            end: self.checks_end(kept),
            needs_bp: kept > 0 && self.frame(kept - 1).needs_bp != 0,
        }
    }

    /// Adds a frame inside of the last one, after any kind of step. `outer` is the result of the step, if there was one;
    /// `why_not` are the words because of which there was none. There must be room.
    pub(super) fn push(
        &mut self,
        frame: &Frame,
        outer: Option<Registers>,
        why_not: WhyNot,
        node: u32,
    ) {
        let (rule, at) = (frame.rule(), frame.at());
        let mut tip = self.tip(self.length);
        match outer {
            Some(outer) => {
                if let Some((slot, value)) = rule.cfa_slot(at, outer.sp) {
                    tip.check(slot, value);
                }
                tip.push_stepped(frame, outer, node);
            }
            None => {
                // rbp was tried as a frame pointer here. The words in a row were found without it.
                let needs_bp = rule.uses_bp() || rule == Rule::NONE && why_not.words.is_none();
                let (from, to) = why_not.words.unwrap_or_default();
                let slots = why_not.slots.into_iter().flatten();
                for slot in slots.chain((from..to).step_by(8)) {
                    // SAFETY: the walk has read the word just now.
                    let value = unsafe { (slot as *const u64).read_volatile() };
                    tip.check(slot, value);
                }
                tip.add(frame, needs_bp, node);
            }
        }
        self.keep(self.length + 1, &tip);
    }

    /// Takes note of the frames and checks that were added at the inner end.
    #[inline(always)]
    fn keep(&mut self, length: usize, tip: &Tip) {
        debug_assert!(length <= self.frames.capacity() && tip.end <= self.checks.capacity());
        self.length = length;
    }

    pub(super) fn release(self) {
        self.frames.release();
        self.checks.release();
    }
}

/// Inner end of a kept stack, while frames are added for which there is room.
struct Tip {
    /// Place of the next frame.
    next: *mut KeptFrame,
    checks: *mut Check,
    /// End of the checks.
    end: usize,
    /// Whether the last frame needs rbp.
    needs_bp: bool,
}

impl Tip {
    /// Adds a frame inside of the last one. A step has led from the new frame to `outer`, which is the last frame or, if there
    /// is none, is not kept.
    #[inline(always)]
    fn push_stepped(&mut self, frame: &Frame, outer: Registers, node: u32) {
        let (rule, at) = (frame.rule(), frame.at());
        // SAFETY: this capture has stepped from the frame to `outer`, or found that the step still leads there.
        let (slot, value) = unsafe { rule.return_check(at, outer) };
        self.check(slot, value);
        if self.needs_bp && !rule.keeps_bp() {
            self.check(rule.bp_slot(at, outer.sp), outer.bp);
        }
        let needs_bp = rule.uses_bp() | (rule.keeps_bp() & self.needs_bp);
        self.add(frame, needs_bp, node);
    }

    #[inline(always)]
    fn check(&mut self, slot: u64, value: u64) {
        // SAFETY: `reserve_behind` was told of the frame and has made room for three checks of each, and for a row.
        unsafe { self.checks.add(self.end).write(Check { slot, value }) };
        self.end += 1;
    }

    #[inline(always)]
    fn add(&mut self, frame: &Frame, needs_bp: bool, node: u32) {
        let at = frame.at();
        let kept = KeptFrame {
            sp: at.sp,
            return_address: at.return_address,
            bp: at.bp,
            node,
            rule: frame.rule().to_bits(),
            checks_end: self.end as u32,
            needs_bp: u32::from(needs_bp),
        };
        // SAFETY: `reserve_behind` has made room for the frame.
        unsafe {
            self.next.write(kept);
            self.next = self.next.add(1);
        }
        self.needs_bp = needs_bp;
    }
}
