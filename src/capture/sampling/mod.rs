//! Sampling: not every allocation is recorded, but one where, on average, each so many bytes end.
//!
//! Every byte that is asked for has the same small chance of being a *sampling point*, so the distance between two is
//! exponential with a mean of `mean` bytes. An allocation is recorded if a point lies in it: one of `size` bytes with the
//! probability `1 - e^(-size / mean)`, whatever came before. The collector gives it the inverse of that as its weight,
//! which makes sums over what was recorded unbiased estimates of those over everything ([`weights`](crate::collector)).
//!
//! ```text
//!   allocation ──▶ bytes += size, count += 1 ──▶ below the next point: the real function, by a jump
//!                                           └──▶ past it: draw the next one, record; filter[block] += 1
//!   free ──▶ filter[block] == 0: the real function, by a jump
//!                          else: record, if the set of recorded blocks has it; filter[block] -= 1
//! ```
//!
//! What is not recorded still is counted, exactly: see [`Meter`].

mod filter;
mod recorded;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

pub use super::meter::Metered;
use super::meter::{Meter, Private};
use super::thread::{self, Local};

/// Changes whenever threads must look at [`MEAN`] again; 0 while every allocation is recorded, or none.
static EPOCH: AtomicU32 = AtomicU32::new(0);
/// Bytes between two sampling points, on average.
static MEAN: AtomicU64 = AtomicU64::new(0);
/// What the random numbers of this session begin with.
static SEED: AtomicU64 = AtomicU64::new(0);

/// The next epoch's number.
static LAST_EPOCH: AtomicU32 = AtomicU32::new(0);

/// Samples from now on, with a point each `mean` bytes on average (at least 1). No session may be open.
pub fn begin(mean: u64, seed: u64) {
    // The first time there is nothing to clear, and looking would take a millisecond.
    if LAST_EPOCH.load(Ordering::Relaxed) != 0 {
        recorded::clear();
    }
    SEED.store(seed, Ordering::Relaxed);
    change(mean);
}

/// From now on a point each `mean` bytes. Threads notice at their next allocation.
pub fn change(mean: u64) {
    MEAN.store(mean.max(1), Ordering::Relaxed);
    // Never 0, however often it changes.
    let number = LAST_EPOCH.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    follow(number.max(1));
}

/// Every allocation is recorded again, if a session is open.
pub fn end() {
    follow(0);
}

/// No thread passes its meter any more before it has looked at the new epoch.
fn follow(epoch: u32) {
    EPOCH.store(epoch, Ordering::Release);
    // With the fence in `meter_it`: either a thread that draws its next point sees the new epoch, or its point is taken
    // back here after it was set.
    fence(Ordering::SeqCst);
    thread::states().for_each(|state| state.meter.close());
}

/// Whether a session that is open records samples.
#[must_use]
pub fn is_on() -> bool {
    epoch() != 0
}

#[inline(always)]
fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// Whether the calling thread's allocation of `size` bytes is one of those that pass unrecorded; then it is counted. The
/// short way: false says nothing, [`is_due`] tells.
#[inline(always)]
pub fn passes(local: &Local, size: usize) -> bool {
    let meter = local.passing();
    meter.is_some_and(|meter| meter.pass(size as u64))
}

/// Whether freeing the block at `address` needs no record.
#[inline(always)]
pub fn passes_free(address: usize) -> bool {
    epoch() != 0 && !filter::may_hold(address)
}

/// Whether a reallocation of the block at `address`, or of none, passes unrecorded; then it is counted.
#[inline(always)]
pub fn passes_realloc(local: &Local, address: usize, size: usize) -> bool {
    // Of size 0 it is a free, which is not counted.
    size != 0 && !filter::may_hold(address) && passes(local, size)
}

/// Whether an allocation of `size` bytes is to be recorded: always, unless sampling leaves it out; then it is counted.
/// The thread records.
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
        local.pass(meter);
    }
    is_sampled
}

/// Counts an allocation: whether it is to be recorded, and the meter that the next ones may pass.
fn meter_it(local: &Local, size: usize) -> (bool, Option<&'static Meter>) {
    let epoch = epoch();
    let Some((state, borrowed)) = thread::state(local) else {
        // Counted as lost where it would have been recorded.
        return (true, None);
    };
    // SAFETY: the calling thread owns `state` and is busy, so no second borrow of its private part exists.
    let private = unsafe { &mut *state.private.get() };
    if renew(&mut private.sampling, &state.meter, epoch) {
        // What it tells of itself next holds the new mean.
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

/// Whether the end of the block at `address` is to be recorded. Asked once, by the thread that gives it back.
#[inline(always)]
pub fn is_end_due(address: usize) -> bool {
    epoch() == 0 || filter::may_hold(address) && recorded::take(address)
}

/// The block at `address` lives on, although its end was recorded.
pub fn lives_on(address: usize) {
    if epoch() != 0 {
        recorded::put(address);
    }
}

/// The block at `address` is recorded: its free must be, too. Called before the block is handed out.
#[inline]
pub(super) fn remember(private: &mut Private, meter: &Meter, address: usize) {
    if epoch() != 0 {
        recorded::put(address);
        private.remember(meter, address);
    }
}

/// Whether the block at `address` is known for a temporary one, while sampling. (Else the collector knows.)
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

/// Everything that was asked for while sampling, by all threads, since the process began.
pub fn metered() -> Metered {
    thread::states().map(|state| state.meter.read()).sum()
}
