//! The walk from the leaf outward, until it meets the kept stack or ends.

use super::kept::{Ending, KeptStack, WhyNot};
use super::rules::RuleCache;
use super::stack::{OwnStack, Slots};
use super::start::{self, FurtherOut};
use crate::capture::arch::{self, Registers, Rule, StackSlots, Stop};
use crate::capture::memory::{GrowArray, Plain};
use crate::capture::modules::published;

/// Walked frame.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Frame {
    at: Registers,
    rule: u64,
}

// SAFETY: integers.
unsafe impl Plain for Frame {}

impl Frame {
    #[inline(always)]
    pub(super) fn new(at: Registers, rule: Rule) -> Frame {
        Frame {
            at,
            rule: u64::from(rule.to_bits()),
        }
    }

    #[inline(always)]
    pub(super) fn at(&self) -> Registers {
        self.at
    }

    #[inline(always)]
    pub(super) fn rule(&self) -> Rule {
        Rule::from_bits(self.rule as u32)
    }
}

/// Place where a walk stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// At the innermost of this many kept frames, all of which are unchanged.
    Kept(usize),
    /// At an end that the walk found itself.
    End(Ending),
}

/// Running walk.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    pub(super) rules: &'a mut RuleCache,
    pub(super) kept: &'a KeptStack,
    pub(super) own: &'a mut OwnStack,
    /// Room for the frames, leaf first.
    pub(super) frames: &'a mut GrowArray<Frame>,
    pub(super) slots: Slots,
    /// The link register, if the processor has one, of the next frame, if a signal interrupted that frame.
    pub(super) link: Option<u64>,
    /// The next frame.
    pub(super) at: Registers,
    /// Set if a signal interrupted the frame, which then is not at a call.
    pub(super) interrupted: bool,
    /// Set if the leaf is on the thread's own stack.
    pub(super) began_on_own: bool,
    /// Number of walked frames.
    pub(super) length: usize,
    /// Number of the outermost kept frames that the walk may still meet.
    pub(super) candidates: usize,
    /// Frames from this one outward may be kept.
    pub(super) keep_from: usize,
    /// The registers that the step from the outermost frame led to, if there was a step, though they are not part of the
    /// stack.
    pub(super) outer: Option<Registers>,
    /// The words because of which there was no step.
    pub(super) why_not: WhyNot,
}

/// Largest number of nested signal handlers. More are not a stack but a loop.
const MOST_SIGNALS: u32 = 16;

/// Largest number of successive frames of generated code that are found by their frame pointers alone.
const MOST_GENERATED: usize = 64;

impl Walk<'_> {
    /// Walks on until there are `most` frames.
    pub(super) fn run(&mut self, most: usize) -> Found {
        let mut signals = 0;
        loop {
            self.candidates = self.kept.below(self.candidates, self.at.sp);
            if self.candidates > 0
                && !self.interrupted
                && self.kept.frame(self.candidates - 1).is_at(self.at)
            {
                let inner = self.candidates - 1;
                // SAFETY: candidates are frames of the own stack, and the walk is on it at this frame's place.
                let Some(stale) = (unsafe { self.kept.stale(inner) }) else {
                    return Found::Kept(self.candidates);
                };
                // The frames up to the stale one are unchanged. The walk goes on there.
                if !self.take_over(inner, stale) {
                    return self.cut();
                }
                self.candidates = stale;
            }
            if self.length >= most || !self.has_room() {
                return self.cut();
            }
            let pc = self
                .at
                .return_address
                .wrapping_sub(u64::from(!self.interrupted));
            let mut rule = self.rules.rule(pc);
            if !rule.is_plain() && self.is_undescribed_signal_return(rule) {
                rule = Rule::SIGNAL;
            }
            self.push(Frame::new(self.at, rule));
            match rule.step(self.at, pc, self.link.take(), &mut self.slots) {
                Ok(outer) if rule != Rule::SIGNAL => {
                    self.interrupted = false;
                    self.at = outer;
                }
                Ok(outer) => {
                    signals += 1;
                    self.interrupted = true;
                    self.link = arch::interrupted_link(self.at.sp, &mut self.slots);
                    self.resume_at(outer);
                    if signals > MOST_SIGNALS {
                        return self.lost();
                    }
                }
                Err(Stop::Outermost) => return Found::End(Ending::Whole),
                // A leaf function's caller is not in a frame record.
                Err(Stop::Lost) if self.interrupted && arch::HAS_LINK_REGISTER => {
                    return self.lost();
                }
                Err(Stop::Lost) if rule == Rule::NONE && self.begins_a_function() => {
                    return Found::End(Ending::Whole);
                }
                Err(Stop::Lost) if rule == Rule::NONE && self.is_first_of_stack() => {
                    return Found::End(Ending::Whole);
                }
                Err(Stop::Lost) if rule == Rule::NONE => {
                    let Some(outer) = self.frame_pointer_step() else {
                        return Found::End(Ending::Lost);
                    };
                    self.interrupted = false;
                    self.at = outer;
                }
                Err(Stop::Lost) if rule == Rule::UNSUPPORTED => return Found::End(Ending::Lost),
                Err(Stop::Lost) => return self.lost(),
            }
            if self.at.return_address == 0 {
                // Stacks that were made by hand end like this.
                self.outer = Some(self.at);
                return Found::End(Ending::Whole);
            }
            if self.at.return_address < arch::PAGE as u64 {
                // No code lies at these addresses, and the lowest numbers are marks.
                return self.lost();
            }
        }
    }

    /// Takes over the kept frames from `inner`, where the walk is, to `outer`, where the walk then goes on.
    #[cold]
    pub(super) fn take_over(&mut self, inner: usize, outer: usize) -> bool {
        for index in (outer + 1..=inner).rev() {
            if !self.has_room() {
                return false;
            }
            let frame = self.kept.walked(index, self.at.bp);
            self.push(frame);
            let mut next = self.kept.walked(index - 1, self.at.bp).at();
            if !frame.rule().keeps_bp() {
                // A kept frame's rbp is only valid if it is needed, and which frames need it may change.
                let slot = frame.rule().bp_slot(frame.at(), next.sp);
                next.bp = self.slots.read(slot).unwrap_or(0);
            }
            self.at = next;
        }
        true
    }

    fn cut(&mut self) -> Found {
        self.outer = Some(self.at);
        Found::End(Ending::Cut)
    }

    /// Ends the walk for a reason that is not worth remembering: no frame of this walk is kept.
    #[cold]
    fn lost(&mut self) -> Found {
        self.keep_from = usize::MAX;
        Found::End(Ending::Lost)
    }

    #[inline(always)]
    fn has_room(&mut self) -> bool {
        self.length < self.frames.capacity() || self.frames.grow(2 * self.length)
    }

    #[inline(always)]
    fn push(&mut self, frame: Frame) {
        debug_assert!(self.length < self.frames.capacity());
        // SAFETY: every caller has seen `has_room`.
        unsafe { self.frames.as_ptr().add(self.length).write(frame) };
        self.length += 1;
    }

    fn last_frame(&mut self) -> &mut Frame {
        &mut self.frames.as_mut_slice()[self.length - 1]
    }

    /// Returns whether the next frame is the kernel's return from a signal handler that no module describes.
    fn is_undescribed_signal_return(&self, rule: Rule) -> bool {
        rule != Rule::SIGNAL
            && rule != Rule::OUTERMOST
            && arch::is_signal_return(self.at.return_address)
    }

    /// Returns whether the next frame is at the first byte of a function, so that nothing has called it, as on stacks that
    /// were made by hand (`makecontext`). Such stacks end there, as in libgcc.
    #[cold]
    fn begins_a_function(&self) -> bool {
        !self.interrupted
            && published::rule_at(self.at.return_address).is_some_and(|rule| rule != Rule::NONE)
    }

    /// Returns whether no code that has unwind information is further out than the next frame.
    #[cold]
    fn is_first_of_stack(&mut self) -> bool {
        if !self.own.contains(self.at.sp) {
            return false;
        }
        match start::further_out(self.at.sp, self.own.start, &mut self.slots) {
            FurtherOut::Nothing(start) => {
                self.why_not.words = Some((self.at.sp, start));
                return true;
            }
            FurtherOut::Perhaps(slot) => self.why_not.slots[2] = Some(slot),
            FurtherOut::Unknown => {}
        }
        false
    }

    /// Goes on at code that a signal interrupted, which may be on another stack.
    #[cold]
    fn resume_at(&mut self, outer: Registers) {
        // Frames inside of the interrupted code are not kept: a check cannot express how a signal frame's registers are
        // read.
        self.keep_from = self.length + 1;
        // Leaf functions may use this much memory below their stack pointer.
        let lowest = outer.sp.wrapping_sub(arch::RED_ZONE);
        if self.own.contains(outer.sp) || self.own.reaches(outer.sp) {
            // A walk that began on another stack does not look for kept frames.
            self.candidates = if self.began_on_own {
                self.kept.len()
            } else {
                0
            };
            self.slots = self.own.slots(lowest);
        } else if !self.slots.contains(outer.sp) || outer.sp <= self.at.sp {
            self.candidates = 0;
            self.slots = Slots::elsewhere(outer.sp);
        }
        self.at = outer;
    }

    /// Steps from code that no module knows, such as generated code, to its caller, if a chain of frame pointers leads back
    /// to a module's code.
    #[cold]
    fn frame_pointer_step(&mut self) -> Option<Registers> {
        let outer = self.by_frame_pointer(self.at)?;
        self.why_not.slots[..2].copy_from_slice(&[Some(self.at.bp), Some(self.at.bp + 8)]);
        let mut further = outer;
        for ahead in 0..MOST_GENERATED {
            let pc = further.return_address.wrapping_sub(1);
            if published::is_code(pc) {
                if arch::HAS_LINK_REGISTER
                    && !published::rule_at(pc).is_some_and(|rule| rule.uses_bp())
                {
                    // The caller's stack pointer is needed, which a frame record does not contain.
                    self.keep_from = usize::MAX;
                    return None;
                }
                let why_not = core::mem::replace(&mut self.why_not, WhyNot::NONE);
                // The step's own return address is checked. If it is the only word, no other decides.
                let alone = self.at.bp + 8 < self.own.start
                    && start::is_return_address(outer.return_address);
                if ahead > 0 || (why_not.slots[2].is_some() && !alone) {
                    // Other words decided as well, and this frame has no checks of them.
                    self.keep_from = self.keep_from.max(self.length);
                }
                let frame = self.last_frame();
                *frame = Frame::new(frame.at, Rule::FRAME_POINTER);
                return Some(outer);
            }
            let Some(next) = self.by_frame_pointer(further) else {
                if ahead > 0 {
                    self.keep_from = usize::MAX;
                }
                return None;
            };
            further = next;
        }
        self.keep_from = usize::MAX;
        None
    }

    fn by_frame_pointer(&mut self, at: Registers) -> Option<Registers> {
        if !at.bp.is_multiple_of(arch::FRAME_POINTER_ALIGNMENT) || at.bp < at.sp {
            return None;
        }
        Rule::FRAME_POINTER.step(at, 0, None, &mut self.slots).ok()
    }
}
