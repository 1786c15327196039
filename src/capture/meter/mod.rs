//! A thread's meter, which counts its allocations and finds the next sampling point.

mod draw;

use core::sync::atomic::{AtomicU64, Ordering};

use self::draw::Random;
use super::failure;
use super::metered::Metered;

/// Counts of a thread's allocations while sampling, and its next point. Only the state's owner writes them (plain loads and
/// stores, no locked instruction), except for closing the meter. The collector reads them at any time.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Meter {
    pub(super) bytes: AtomicU64,
    pub(super) count: AtomicU64,
    /// The value of `bytes` from which on an allocation contains a point; 0 while [no allocation](Meter::count_unsampled) is left out.
    pub(super) next: AtomicU64,
}

impl Meter {
    /// Counts an allocation, unless it contains a point. Returns whether it was counted.
    #[inline(always)]
    pub(super) fn count_unsampled(&self, size: u64) -> bool {
        let (bytes, over) = self.bytes.load(Ordering::Relaxed).overflowing_add(size);
        if over || bytes >= self.next.load(Ordering::Relaxed) {
            return false;
        }
        self.count(bytes);
        true
    }

    #[inline(always)]
    fn count(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        let count = self.count.load(Ordering::Relaxed);
        self.count.store(count.wrapping_add(1), Ordering::Relaxed);
    }

    /// Counts an allocation. Returns true if it contains a point; then the next point is drawn. A size that exceeds every
    /// address space counts as 0 bytes, because its bytes would leave no point within reach.
    pub(crate) fn take(&self, private: &mut Private, size: u64) -> bool {
        let size = if size > failure::MOST as u64 { 0 } else { size };
        // The meter was closed after the point was drawn: draw again, as if there had never been another point.
        if self.next.load(Ordering::Relaxed) == 0 {
            self.draw(private);
        }
        let bytes = self.bytes.load(Ordering::Relaxed).wrapping_add(size);
        self.count(bytes);
        let due = bytes >= self.next.load(Ordering::Relaxed);
        if due {
            self.draw(private);
        }
        due
    }

    fn draw(&self, private: &mut Private) {
        let distance = private.random.distance(private.mean);
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.next
            .store(bytes.saturating_add(distance), Ordering::Relaxed);
    }

    /// Closes the meter: no allocation passes until the next point is drawn.
    pub(super) fn close(&self) {
        self.next.store(0, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    pub(super) fn read(&self) -> Metered {
        Metered {
            count: self.count.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

/// Recent block of the thread that was recorded.
#[derive(Debug, Clone, Copy, Default)]
struct Recent {
    address: usize,
    /// The number of the thread's allocations up to this one.
    count: u64,
}

/// Owner's part of a meter.
#[derive(Debug)]
pub(crate) struct Private {
    /// The epoch of `mean`; 0 before the first.
    pub(super) epoch: u32,
    /// Average bytes between two points when the next one was drawn; 0 before the first epoch.
    pub(crate) mean: u64,
    random: Random,
    /// The last two recorded blocks, the latest first.
    recent: [Recent; 2],
}

impl Default for Private {
    fn default() -> Private {
        Private {
            epoch: 0,
            mean: 0,
            random: Random::new(0, 0),
            recent: [Recent::default(); 2],
        }
    }
}

impl Private {
    /// Begins to sample, or changes the mean. The next point is as far away as if there had never been another.
    pub(super) fn begin(&mut self, meter: &Meter, epoch: u32, mean: u64, seed: u64) {
        // Meters have different addresses, so each gets its own random numbers.
        let stream = core::ptr::from_ref(meter).addr() as u64 ^ u64::from(epoch) << 48;
        self.start(meter, epoch, mean, Random::new(seed, stream));
    }

    fn start(&mut self, meter: &Meter, epoch: u32, mean: u64, random: Random) {
        self.epoch = epoch;
        self.mean = mean;
        self.random = random;
        self.recent = [Recent::default(); 2];
        meter.draw(self);
    }

    /// Remembers that the thread's latest allocation is the recorded block at `address`.
    pub(super) fn remember(&mut self, meter: &Meter, address: usize) {
        let count = meter.count.load(Ordering::Relaxed);
        self.recent = [Recent { address, count }, self.recent[0]];
    }

    /// Returns whether this thread recorded the block at `address` and allocated at most one other block after it: memray's
    /// rule for a temporary block.
    pub(super) fn was_temporary(&self, meter: &Meter, address: usize) -> bool {
        let count = meter.count.load(Ordering::Relaxed);
        let is_recent =
            |recent: &Recent| recent.address == address && count.wrapping_sub(recent.count) <= 1;
        self.recent.iter().any(is_recent)
    }
}

#[cfg(test)]
impl Private {
    /// Does what [`begin`](Private::begin) does, with the same numbers in every process.
    pub(crate) fn for_test(meter: &Meter, mean: u64, seed: u64) -> Private {
        let mut private = Private::default();
        private.start(meter, 1, mean, Random::new(seed, 0));
        private
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_and_what_is_due_is_counted_once() {
        let meter = Meter::default();
        let mut private = Private::for_test(&meter, 1000, 5);
        let mut due = 0;
        for _ in 0..10_000 {
            if !meter.count_unsampled(40) {
                due += u64::from(meter.take(&mut private, 40));
            }
        }
        let counted = Metered {
            count: 10_000,
            bytes: 400_000,
        };
        assert_eq!(meter.read(), counted);
        // 10,000 times 1 - e^-0.04 are 392 on average, with a deviation of 19.
        assert!((300..490).contains(&due), "{due}");
    }

    #[test]
    fn a_temporary_block_has_at_most_one_other_after_it() {
        let meter = Meter::default();
        let mut private = Private::for_test(&meter, 1 << 40, 5);
        let allocate = |private: &mut Private, address| {
            meter.take(private, 1);
            private.remember(&meter, address);
        };
        allocate(&mut private, 16);
        allocate(&mut private, 32);
        assert!(private.was_temporary(&meter, 16) && private.was_temporary(&meter, 32));
        meter.take(&mut private, 1);
        assert!(!private.was_temporary(&meter, 16) && private.was_temporary(&meter, 32));
        assert!(!private.was_temporary(&meter, 48));
    }

    #[test]
    fn what_cannot_be_had_moves_no_point_out_of_reach() {
        let meter = Meter::default();
        let mut private = Private::for_test(&meter, 1000, 5);
        for size in [u64::MAX, i64::MAX as u64, i64::MAX as u64, 1 << 60] {
            assert!(!meter.count_unsampled(size) && !meter.take(&mut private, size));
        }
        assert_eq!(meter.read(), Metered { count: 4, bytes: 0 });
        let due = (0..1000).filter(|_| !meter.count_unsampled(40) && meter.take(&mut private, 40));
        assert!(due.count() > 20);
    }
}
