//! A thread's cache of rules by code address: one load, where the modules' tables need three.

use crate::capture::arch::Rule;
use crate::capture::memory::{GrowArray, Plain};
use crate::capture::modules::published;

/// Entries at which the cache stops growing: 128 KiB per thread.
const MOST: usize = 8192;

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Entry {
    /// Code address; 0 in an empty entry, whose rule is `NONE`: no code lies at 0.
    pc: u64,
    rule: u32,
    unused: u32,
}

// SAFETY: integers.
unsafe impl Plain for Entry {}

/// Direct-mapped cache. All entries are valid for one version of the published modules.
#[derive(Debug)]
pub(super) struct RuleCache {
    entries: GrowArray<Entry>,
    shift: u32,
    /// Entries that were replaced since the cache grew last.
    evictions: usize,
}

impl RuleCache {
    /// Makes a cache in `entries`. It uses the largest power of two that fits into their capacity.
    pub(super) fn new(entries: GrowArray<Entry>) -> RuleCache {
        let shift = 64 - entries.capacity().ilog2();
        RuleCache {
            entries,
            shift,
            evictions: 0,
        }
    }

    #[inline(always)]
    fn slot(&self, pc: u64) -> usize {
        (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Returns the rule for the code at `pc`, or [`Rule::NONE`] outside of all modules.
    #[inline(always)]
    pub(super) fn rule(&mut self, pc: u64) -> Rule {
        // SAFETY: `slot` is below 2^(64 - shift), which is no more than the capacity.
        let entry = unsafe { &*self.entries.as_ptr().add(self.slot(pc)) };
        if entry.pc == pc {
            return Rule::from_bits(entry.rule);
        }
        self.find(pc)
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, pc: u64) -> Rule {
        // An unknown address may become known later, so only real answers are kept.
        let Some(rule) = published::rule_at(pc).filter(|_| pc != 0) else {
            return Rule::NONE;
        };
        let mut slot = self.slot(pc);
        self.evictions += usize::from(self.entries.as_slice()[slot].pc != 0);
        let length = 1usize << (64 - self.shift);
        if self.evictions > length / 2 && length < MOST {
            self.evictions = 0;
            if self.entries.grow(length * 2) {
                self.shift -= 1;
                // All entries have new places now. Looking the rules up again is quicker than moving them.
                self.forget();
                slot = self.slot(pc);
            }
        }
        self.entries.as_mut_slice()[slot] = Entry {
            pc,
            rule: rule.to_bits(),
            unused: 0,
        };
        rule
    }

    /// Forgets all entries, because the modules have changed.
    #[cold]
    pub(super) fn forget(&mut self) {
        self.entries.as_mut_slice().fill(Entry {
            pc: 0,
            rule: Rule::NONE.to_bits(),
            unused: 0,
        });
    }

    pub(super) fn release(self) {
        self.entries.release();
    }
}
