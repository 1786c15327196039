//! Running reallocations: the old block's event has come, but the real call's outcome has not.
//!
//! A `realloc` that fails must leave no trace, so the old block stays in the live table until the outcome is known. It is
//! removed as soon as it is certainly gone: when the `Realloc` comes, or when its address is handed out again (to another
//! thread, between the real call and its event). Nothing has to be put back.
//!
//! ```text
//!   ReallocFree X ──▶ UNDER WAY ──▶ Realloc                     X is freed, then the new block is allocated
//!                         ├───────▶ ReallocFailed X             nothing happened
//!                         ├───────▶ X allocated by a thread     X is freed by the reallocating thread
//!                         ├───────▶ X freed by another thread   (a bug of the program) nothing is left to free
//!                         └───────▶ another event of its thread (the outcome was lost) X is freed
//! ```

/// Running reallocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnderWay {
    pub(super) thread: u32,
    pub(super) address: u64,
    /// Set if the old block is in the live table.
    pub(super) known: bool,
    /// The context of the old block, once it is gone because its address was handed out again.
    pub(super) gone_in: Option<u32>,
}

/// Running reallocations; see the module. There are few: a thread has one at most.
#[derive(Debug, Default)]
pub(super) struct Reallocs {
    list: Vec<UnderWay>,
}

impl Reallocs {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn begin(&mut self, thread: u32, address: u64, known: bool) {
        self.list.push(UnderWay {
            thread,
            address,
            known,
            gone_in: None,
        });
    }

    /// Removes and returns the reallocation of `thread`.
    pub(super) fn end_of(&mut self, thread: u32) -> Option<UnderWay> {
        let at = self.list.iter().position(|one| one.thread == thread)?;
        Some(self.list.remove(at))
    }

    /// Returns the first reallocation whose old block, at `address`, is in the live table, and notes that this block, of
    /// `context`, is gone.
    pub(super) fn gone_at(&mut self, address: u64, context: u32) -> Option<UnderWay> {
        let mut all = self.list.iter_mut();
        let one = all.find(|one| one.known && one.address == address)?;
        one.known = false;
        one.gone_in = Some(context);
        Some(*one)
    }

    /// Notes that the block at `address` is no longer in the live table.
    pub(super) fn forget_block(&mut self, address: u64) {
        for one in &mut self.list {
            one.known &= one.address != address;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_that_claim_one_block_the_first_had_it_whatever_ended_before() {
        let mut reallocs = Reallocs::default();
        reallocs.begin(1, 16, false);
        reallocs.begin(2, 32, true);
        reallocs.begin(3, 32, true);
        assert_eq!(reallocs.end_of(1).map(|one| one.address), Some(16));
        assert_eq!(reallocs.gone_at(32, 0).map(|one| one.thread), Some(2));
    }
}
