//! Profiles of what was allocated from now on within some seconds.
//!
//! Each has a thread of its own, which mostly sleeps: the service's runtime need not have timers. There are only a few at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Error;
use super::lifecycle::Lifecycle;
use super::machine::View;
use super::reports::{Reports, or_panicked};
use super::store::OutputKey;
use crate::capture::untracked;
use crate::collector::since::AllocatedBefore;
use crate::os::process::check_thread_start;

/// Most such profiles at once.
const MOST: usize = 4;
/// From one look at whether the client still waits to the next.
const LOOK: Duration = Duration::from_millis(100);

static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// One of the profiles that may be made at once.
struct Place;

impl Place {
    fn take() -> Result<Place, Error> {
        let more = |taken| (taken < MOST).then_some(taken + 1);
        let taken = UNDER_WAY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(|_| Place).map_err(|_| Error::TooManyOutputs)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Makes the output `key` of the running session as it is after `time`, with only what was allocated meanwhile.
///
/// # Errors
///
/// [`Error::NotRecording`] if no session runs, or if it ends meanwhile; [`Error::TooManyOutputs`]; [`Error::Output`].
pub(crate) async fn profile_of(
    lifecycle: &Arc<Lifecycle>,
    reports: &Arc<Reports>,
    time: Duration,
    key: OutputKey,
) -> Result<Vec<u8>, Error> {
    let place = Place::take()?;
    let (answer, answered) = oneshot::channel();
    let (lifecycle, reports) = (Arc::clone(lifecycle), Arc::clone(reports));
    let wait = move || {
        untracked::for_good();
        let _place = place;
        let made = or_panicked(|| make(&lifecycle, &reports, time, key, || !answer.is_closed()));
        // The client may be gone.
        let _ = answer.send(made);
    };
    {
        let _untracked = untracked::enter();
        let thread = thread::Builder::new().name("heapray-interval".into());
        let started = check_thread_start().and_then(|()| thread.spawn(wait).map(drop));
        started.map_err(|error| {
            tracing::warn!(%error, "a thread for a profile of some seconds cannot be started");
            Error::TooManyOutputs
        })?;
    }
    answered.await.map_err(|_| Error::MAKING_PANICKED)?
}

fn make(
    lifecycle: &Lifecycle,
    reports: &Arc<Reports>,
    time: Duration,
    key: OutputKey,
    is_wanted: impl Fn() -> bool,
) -> Result<Vec<u8>, Error> {
    let first = lifecycle.running_view().ok_or(Error::NotRecording)?;
    let before = AllocatedBefore::of(&first.snapshot);
    let session = first.session;
    drop(first);
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now())
        && is_wanted()
    {
        thread::sleep(left.min(LOOK));
    }
    if !is_wanted() {
        return Err(Error::NotRecording);
    }
    let same = |view: &View| view.session == session;
    let mut last = lifecycle
        .running_view()
        .filter(same)
        .ok_or(Error::NotRecording)?;
    let snapshot = Arc::make_mut(&mut last.snapshot);
    before.subtract_from(snapshot);
    let seconds = time.as_secs();
    snapshot.notes.push(format!(
        "alloc: only what was allocated in the last {seconds} s; inuse: live at their end"
    ));
    reports.profile_blocking(last, key)
}
