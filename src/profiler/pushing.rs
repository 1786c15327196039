//! Profiles of the running session for a profile store: made at each interval, and pushed, on a thread of its own.
//!
//! `alloc_*` of a profile are what was allocated since the one before it, so that a store can sum them up. A session that ends
//! has a last profile, up to its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use heapray_report::error_chain;
use heapray_report::formats::Format;

use super::lock::{Lock, Rank};
use super::machine::{Machine, View};
use super::reports::Reports;
use super::status::PushStatus;
use super::store::{OutputKey, OutputKind};
use super::worker::Worker;
use crate::collector::since::AllocatedBefore;
use crate::config::{Config, Token};
use crate::os::process;
use crate::os::unique::unique;
use crate::push::{Identity, PushFigures, PushedProfile, Pusher};
use crate::symbolize::looks_up_names;

/// The interval is at least so many times as long as the CPU time of a profile.
const SELDOM: u32 = 50;
/// Most ended sessions that wait for their last profile: each holds the tables of a session.
const MOST_ENDED: usize = 4;
/// Longest time that `shutdown` waits for what is pushed last.
const LAST: Duration = Duration::from_secs(4);

/// The thread that pushes.
#[derive(Debug)]
pub(crate) struct Pushing {
    thread: Worker,
    state: Arc<Lock<State>>,
    ended: Arc<Lock<Vec<View>>>,
    figures: Arc<PushFigures>,
    target: String,
}

#[derive(Debug)]
struct State {
    machine: Arc<Machine>,
    reports: Arc<Reports>,
    /// Sessions whose last profile is to be made, the oldest first.
    ended: Arc<Lock<Vec<View>>>,
    pusher: Pusher,
    figures: Arc<PushFigures>,
    /// The profile for pprof, as this server takes it.
    key: OutputKey,
    identity: Identity,
    interval: Duration,
    /// When the next profile is due.
    due: Instant,
    before: Option<Before>,
}

/// The last profile of a session.
#[derive(Debug)]
struct Before {
    session: u64,
    taken: SystemTime,
    allocated: AllocatedBefore,
}

impl Pushing {
    /// Starts the thread, if profiles are to be pushed.
    ///
    /// # Errors
    ///
    /// There can be no more threads.
    pub(super) fn start(
        config: &Config,
        machine: Arc<Machine>,
        reports: Arc<Reports>,
    ) -> std::io::Result<Option<Arc<Pushing>>> {
        let Some(destination) = &config.destination else {
            return Ok(None);
        };
        let figures = Arc::new(PushFigures::default());
        let pusher = Pusher::new(
            destination,
            config.push_token.as_ref().map(Token::text),
            reports.directory(),
            config.push_queue,
            Arc::clone(&figures),
        );
        // A panic leaves at worst a profile that is not pushed.
        let ended = Arc::new(Lock::new(Rank::EndedSessions, Vec::new()));
        let state = State {
            machine,
            reports,
            ended: Arc::clone(&ended),
            pusher,
            figures: Arc::clone(&figures),
            key: OutputKey::new(OutputKind::File(Format::Pprof))
                .symbolize(looks_up_names())
                .limit(destination.protocol.most_samples()),
            identity: Identity::of_process(destination),
            interval: config.push_interval,
            due: Instant::now() + somewhere_in(config.push_interval),
            before: None,
        };
        // A panic in between leaves at worst a profile that is not pushed.
        let state = Arc::new(Lock::new(Rank::Pushing, state));
        let looked_at = Arc::clone(&state);
        let look = move || {
            let looked = catch_unwind(AssertUnwindSafe(|| looked_at.lock().look()));
            Some(looked.unwrap_or(Duration::from_secs(60)))
        };
        let target = format!("{}+{}", destination.protocol.name(), destination.address);
        tracing::info!(%target, "profiles are pushed");
        Ok(Some(Arc::new(Pushing {
            thread: Worker::spawn_with("heapray-push", look)?,
            state,
            ended,
            figures,
            target,
        })))
    }

    /// Has the last profile of a session pushed: `view` is what it has left. Returns at once.
    pub(super) fn session_ended(&self, view: View) {
        let mut ended = self.ended.lock();
        if ended.len() == MOST_ENDED {
            // The thread has been busy for long: with a server that is slow, over several sessions.
            ended.remove(0);
            self.figures.change(|counts| counts.not_made += 1);
        }
        ended.push(view);
        drop(ended);
        // Wakes the thread: it looks for ended sessions before it waits again.
        self.thread.submit(|| ());
    }

    /// Sends what waits until `deadline`, but not for longer than a few seconds: the service ends. What is not sent is on disk.
    pub(super) fn finish_until(&self, deadline: Instant) {
        let deadline = deadline.min(Instant::now() + LAST);
        let state = Arc::clone(&self.state);
        let sent = self.thread.run_until(deadline, move || {
            let mut state = state.lock();
            state.push_ended();
            // A try after a failure would come too late.
            while Instant::now() < deadline
                && let Some(next) = state.pusher.send_waiting()
                && next <= Instant::now()
            {}
        });
        if sent.is_none() {
            tracing::warn!(
                "the service ends while a profile is pushed: it is pushed after the next start"
            );
        }
    }

    /// Returns what became of the profiles so far.
    pub(super) fn status(&self) -> PushStatus {
        PushStatus::of(self.target.clone(), self.figures.read())
    }
}

/// Returns the CPU time of a profile: that of the helper process, if there was one. Otherwise all of its time, `elapsed`. On a
/// machine that is busy, most of that is waiting.
fn cost(elapsed: Duration, of_children: Duration) -> Duration {
    if of_children.is_zero() {
        elapsed
    } else {
        of_children.min(elapsed)
    }
}

/// Returns a part of `interval`, another one in each process: the replicas of a service start at once.
fn somewhere_in(interval: Duration) -> Duration {
    let thousandths = u32::try_from(unique() % 1000).unwrap_or(0);
    interval * thousandths / 1000
}

impl State {
    /// Does what is due. Returns the time until something else is.
    fn look(&mut self) -> Duration {
        self.push_ended();
        let now = Instant::now();
        if now >= self.due {
            let cost = self.push_next();
            self.due = (now + self.interval).max(Instant::now() + cost * SELDOM);
        }
        let mut next = self.due.min(self.pusher.next_look());
        if let Some(waiting) = self.pusher.send_waiting() {
            next = next.min(waiting);
        }
        next.saturating_duration_since(Instant::now())
    }

    /// Returns what the profile has cost, without the time that the server took.
    fn push_next(&mut self) -> Duration {
        let view = self.machine.running_view();
        // The view may be of a new session: the last profile of the one before it must come first.
        self.push_ended();
        let Some(view) = view.filter(|view| view.snapshot.still_recording) else {
            return Duration::ZERO;
        };
        let (began, children) = (Instant::now(), process::children_cpu_time());
        let profile = self.make(view);
        let cost = cost(
            began.elapsed(),
            process::children_cpu_time().saturating_sub(children),
        );
        if let Some(profile) = profile {
            self.pusher.push(profile);
        }
        cost
    }

    /// Has the last profiles of ended sessions wait on disk: the process may be about to end.
    fn push_ended(&mut self) {
        loop {
            let mut ended = self.ended.lock();
            if ended.is_empty() {
                return;
            }
            let view = ended.remove(0);
            drop(ended);
            if let Some(profile) = self.make(view) {
                self.pusher.wait(profile);
            }
        }
    }

    fn make(&mut self, mut view: View) -> Option<PushedProfile> {
        let (session, taken) = (view.session, view.snapshot.taken);
        let before = self
            .before
            .take()
            .filter(|before| before.session == session);
        // A session that has ended has no next profile to subtract from.
        let goes_on = view.snapshot.still_recording;
        let allocated = goes_on.then(|| AllocatedBefore::of(&view.snapshot));
        let mut since = view.snapshot.started;
        if let Some(before) = &before {
            since = before.taken;
            before
                .allocated
                .subtract_from(Arc::make_mut(&mut view.snapshot));
        }
        match self.reports.profile_blocking(view, self.key) {
            Ok(profile) => {
                self.before = allocated.map(|allocated| Before {
                    session,
                    taken,
                    allocated,
                });
                let interval = taken.duration_since(since).unwrap_or_default();
                let identity = self.identity.clone();
                Some(PushedProfile::new(profile, taken, interval, identity))
            }
            Err(error) => {
                // What was allocated since is in the next one.
                self.before = before;
                tracing::debug!(error = %error_chain(&error), "no profile to push");
                self.figures.change(|counts| counts.not_made += 1);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::cost;
    use std::time::Duration;

    #[test]
    fn waiting_for_a_processor_costs_nothing() {
        let ms = Duration::from_millis;
        assert_eq!(cost(ms(900), ms(90)), ms(90));
        // Another child of the service has ended meanwhile.
        assert_eq!(cost(ms(100), ms(5_000)), ms(100));
        assert_eq!(cost(ms(100), ms(0)), ms(100));
    }
}
