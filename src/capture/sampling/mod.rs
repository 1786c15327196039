//! Sampling: on average one allocation per so many bytes is recorded (Poisson sampling).
//!
//! Every requested byte has the same small chance of being a *sampling point*, so the distance between two points is
//! exponential with a mean of `mean` bytes. An allocation is recorded if it contains a point: one of `size` bytes with the
//! probability `1 - e^(-size / mean)`, independent of earlier ones. The collector gives it the inverse of that as its
//! weight, which makes sums over the recorded allocations unbiased estimates of sums over all of them
//! ([`weights`](crate::collector)).
//!
//! ```text
//!   allocation ──▶ bytes += size, count += 1 ──▶ below the next point: the real function, by a jump
//!                                           └──▶ past it: draw the next one, record; filter[block] += 1
//!   free ──▶ filter[block] == 0: the real function, by a jump
//!                          else: record, if the set of recorded blocks has it; filter[block] -= 1
//! ```
//!
//! Allocations that are not recorded are still counted exactly: see [`Meter`].

pub(super) mod filter;
mod recorded;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::meter::{Meter, Private};
pub use super::metered::Metered;
use super::state;
use super::thread::{self, Busy, Local};

/// Number that changes whenever threads must look at [`MEAN`] again; 0 while every allocation is recorded, or none.
pub(super) static EPOCH: AtomicU32 = AtomicU32::new(0);
/// Average bytes between two sampling points.
static MEAN: AtomicU64 = AtomicU64::new(0);
/// Seed of this session's random numbers.
static SEED: AtomicU64 = AtomicU64::new(0);

/// The last epoch's number.
static LAST_EPOCH: AtomicU32 = AtomicU32::new(0);

/// Starts sampling, with a point every `mean` bytes on average (at least 1). No session may be open.
pub fn begin(mean: u64, seed: u64) {
    // The first time there is nothing to clear, and checking that would take a millisecond.
    if LAST_EPOCH.load(Ordering::Relaxed) != 0 {
        recorded::clear();
    }
    SEED.store(seed, Ordering::Relaxed);
    change(mean);
}

/// Changes the mean distance of points to `mean` bytes. Threads notice that at their next allocation.
pub fn change(mean: u64) {
    MEAN.store(mean.max(1), Ordering::Relaxed);
    // Skip 0 when the number wraps around.
    let number = LAST_EPOCH.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    follow(number.max(1));
}

/// Ends sampling: every allocation is recorded again, if a session is open.
pub fn end() {
    follow(0);
}

/// Makes every thread look at the new epoch before its meter lets another allocation pass.
fn follow(epoch: u32) {
    EPOCH.store(epoch, Ordering::Release);
    // With the fence in `meter_it`: either a thread that draws its next point sees the new epoch, or its point is closed
    // here after it was set.
    fence(Ordering::SeqCst);
    thread::states().for_each(|state| state.meter.close());
}

/// Returns whether an open session records samples.
#[must_use]
pub fn is_on() -> bool {
    epoch() != 0
}

#[inline(always)]
fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// Returns whether the calling thread's allocation of `size` bytes is left out by sampling, and counts it in that case. This is
/// the short way: after false, [`is_due`] decides.
#[inline(always)]
pub fn is_unsampled(local: &Local, size: usize) -> bool {
    let meter = local.unsampled_meter();
    meter.is_some_and(|meter| meter.count_unsampled(size as u64))
}

/// Returns whether freeing the block at `address` needs no record.
#[inline(always)]
pub fn is_free_unsampled(address: usize) -> bool {
    epoch() != 0 && !filter::may_hold(address)
}

/// Returns whether a reallocation of the block at `address` (or of none) is left out by sampling, and counts it in that case.
#[inline(always)]
pub fn is_realloc_unsampled(local: &Local, address: usize, size: usize) -> bool {
    // With size 0 it is a free, which is not counted.
    size != 0 && !filter::may_hold(address) && is_unsampled(local, size)
}

/// Returns whether an allocation of `size` bytes is to be recorded. If sampling leaves it out, it is counted. The thread
/// records.
#[inline(always)]
pub fn is_due(local: &Local, size: usize) -> bool {
    epoch() == 0 || is_sampled(local, size)
}

#[cold]
fn is_sampled(local: &Local, size: usize) -> bool {
    // A new state may call libc, which may allocate.
    local.set_busy(true);
    let (is_sampled, meter) = meter_it(local, size);
    local.set_busy(false);
    if let Some(meter) = meter {
        local.set_unsampled_meter(meter);
    }
    is_sampled
}

/// Counts an allocation. Returns whether it is to be recorded, and the meter that the next allocations may pass.
fn meter_it(local: &Local, size: usize) -> (bool, Option<&'static Meter>) {
    let epoch = epoch();
    let Some((state, borrowed)) = thread::state(local) else {
        // Without a state the event would be lost: it is counted as lost where it would be recorded.
        return (true, None);
    };
    // SAFETY: the calling thread owns `state` and is busy, so no second borrow of its private part exists.
    let private = unsafe { &mut *state.private.get() };
    if renew(&mut private.sampling, &state.meter, epoch) {
        // The thread's next announcement contains the new mean.
        private.session = 0;
    }
    let is_sampled = state.meter.take(&mut private.sampling, size as u64);
    fence(Ordering::SeqCst);
    if self::epoch() != epoch {
        state.meter.close();
    }
    (
        is_sampled,
        (!borrowed.is_for_one_event()).then_some(&state.meter),
    )
}

/// Makes a state follow the present epoch.
pub(super) fn renew_state(private: &mut Private, meter: &Meter) {
    renew(private, meter, epoch());
}

fn renew(private: &mut Private, meter: &Meter, epoch: u32) -> bool {
    if private.epoch == epoch || epoch == 0 {
        return false;
    }
    private.begin(
        meter,
        epoch,
        MEAN.load(Ordering::Relaxed),
        SEED.load(Ordering::Relaxed),
    );
    true
}

/// Returns whether the end of the block at `address` is to be recorded. Called once, by the thread that frees the block.
#[inline(always)]
pub fn is_end_due(address: usize) -> bool {
    epoch() == 0 || filter::may_hold(address) && recorded::take(address)
}

/// Notes that the block at `address` lives on, although its end was recorded.
pub fn lives_on(address: usize) {
    if epoch() != 0 {
        recorded::put(address);
    }
}

/// Notes that the block at `address` is recorded, so that its free must be, too, and which trace it is for. Called before the
/// block is handed out.
#[inline]
pub(super) fn remember(private: &mut state::Private, meter: &Meter, address: usize) {
    if epoch() != 0 {
        recorded::put(address);
        private.sampling.remember(meter, address);
        private.thread_context.notice();
    }
}

/// Returns whether the block at `address` is known to be temporary, while sampling. (Without sampling, the collector knows.)
#[inline(always)]
pub(super) fn was_temporary(local: &Local, address: usize) -> bool {
    epoch() != 0 && was_sampled_temporary(local, address)
}

#[cold]
fn was_sampled_temporary(local: &Local, address: usize) -> bool {
    let Some((state, _borrowed)) = thread::state(local) else {
        return false;
    };
    // SAFETY: the calling thread owns `state` and is busy, so no second borrow of its private part exists.
    let private = unsafe { &*state.private.get() };
    private.sampling.was_temporary(&state.meter, address)
}

/// Returns the counts of the calling thread's allocations, if it samples. Only their differences mean something.
#[inline]
pub(super) fn metered_by(local: &Local) -> Option<Metered> {
    if epoch() == 0 || local.ended.get() {
        return None;
    }
    if local.state.get().is_null() {
        adopt(local);
    }
    // SAFETY: a state in a thread's `Local` is owned by that thread and never unmapped.
    let state = unsafe { local.state.get().as_ref() };
    state.map(|state| state.meter.read())
}

#[cold]
fn adopt(local: &Local) {
    // A new state may call libc, which may allocate.
    let _busy = Busy::enter();
    thread::state(local);
}

/// Returns the counts of all threads' allocations while sampling, since the process began.
pub fn metered() -> Metered {
    thread::states().map(|state| state.meter.read()).sum()
}
