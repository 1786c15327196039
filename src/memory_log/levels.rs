//! Levels for calls that run at the same time. Each gets the lowest free level, so that no two overlap in `mprof plot
//! --flame`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Set of up to `64 * WORDS` levels. Further calls share the last one.
#[derive(Debug)]
pub(super) struct Levels<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Levels<WORDS> {
    pub(super) const LAST: u32 = 64 * WORDS as u32;

    pub(super) const fn new() -> Self {
        Levels([const { AtomicU64::new(0) }; WORDS])
    }

    /// Takes the lowest free level.
    pub(super) fn take(&self) -> u32 {
        for (word, base) in self.0.iter().zip((0..).step_by(64)) {
            let taken = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bits| {
                (bits != u64::MAX).then(|| bits | (bits + 1))
            });
            if let Ok(before) = taken {
                return base + before.trailing_ones();
            }
        }
        Self::LAST
    }

    /// Returns a level that [`take`](Levels::take) returned.
    pub(super) fn give_back(&self, level: u32) {
        if let Some(word) = self.0.get(level as usize / 64) {
            word.fetch_and(!(1 << (level % 64)), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Levels;

    #[test]
    fn the_lowest_free_level_is_taken_and_given_back() {
        let levels = Levels::<2>::new();
        assert_eq!([levels.take(), levels.take(), levels.take()], [0, 1, 2]);
        levels.give_back(1);
        assert_eq!([levels.take(), levels.take()], [1, 3]);
        for level in 4..128 {
            assert_eq!(levels.take(), level);
        }
        assert_eq!([levels.take(), levels.take()], [128, 128]);
        levels.give_back(128);
        levels.give_back(127);
        assert_eq!(levels.take(), 127);
    }
}
