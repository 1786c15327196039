//! Sends profiles: the new ones, then those that wait. Called on one thread, again and again.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::client::{Answer, Client};
use super::encode;
use super::figures::{PushCounts, PushFigures};
use super::profile::PushedProfile;
use super::queue::Queue;
use crate::client::Backoff;
use crate::config::push::{Destination, Protocol};

/// From one look for profiles of dead processes to the next.
const ADOPT_EVERY: Duration = Duration::from_secs(60);

/// Sends profiles to one server.
#[derive(Debug)]
pub(crate) struct Pusher {
    protocol: Protocol,
    client: Client,
    queue: Queue,
    figures: Arc<PushFigures>,
    backoff: Backoff,
    /// Not before this.
    retry_at: Option<Instant>,
    adopt_at: Instant,
}

impl Pusher {
    /// Returns a pusher whose queue is in `directory` and has at most `most_bytes`. Neither connects nor writes.
    pub(crate) fn new(
        destination: &Destination,
        token: Option<&str>,
        directory: &Path,
        most_bytes: u64,
        figures: Arc<PushFigures>,
    ) -> Pusher {
        Pusher {
            protocol: destination.protocol,
            client: Client::new(destination, token),
            queue: Queue::new(directory, most_bytes),
            figures,
            backoff: Backoff::default(),
            retry_at: None,
            adopt_at: Instant::now(),
        }
    }

    /// Sends `profile`, or has it wait behind others or for the server.
    pub(crate) fn push(&mut self, profile: PushedProfile) {
        if self.queue.is_empty() && self.may_try(Instant::now()) {
            match self.send(&profile) {
                Sent::Done => {}
                Sent::Later => self.wait(profile),
            }
        } else {
            self.wait(profile);
        }
    }

    /// Has `profile` wait on disk, without a try to send it.
    pub(crate) fn wait(&mut self, profile: PushedProfile) {
        let dropped = self.queue.put(profile);
        self.publish(dropped);
    }

    /// Sends the oldest profile that waits, if it may be tried. Returns when this should be called again; `None` if nothing
    /// waits.
    pub(crate) fn send_waiting(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if now >= self.adopt_at {
            self.adopt_at = now + ADOPT_EVERY;
            let dropped = self.queue.adopt();
            self.publish(dropped);
        }
        if self.may_try(now) {
            let (first, dropped) = self.queue.first();
            if let Some(profile) = first
                && let Sent::Done = self.send(&profile)
            {
                self.queue.remove_first();
            }
            self.publish(dropped);
        }
        let next = self.retry_at.unwrap_or(now);
        (!self.queue.is_empty()).then_some(next)
    }

    /// Returns when to look for profiles of dead processes.
    pub(crate) fn next_look(&self) -> Instant {
        self.adopt_at
    }

    fn may_try(&self, now: Instant) -> bool {
        self.retry_at.is_none_or(|at| now >= at)
    }

    fn send(&mut self, profile: &PushedProfile) -> Sent {
        let answer = match encode::request(self.protocol, profile) {
            Ok(request) => self.client.send(&request),
            Err(reason) => Answer::Refused(format!("the profile is damaged: {reason}")),
        };
        let answer = match answer {
            Answer::Taken(said) => match encode::refusal(self.protocol, &said) {
                Some(reason) => Answer::Refused(format!("the server rejects it: {reason}")),
                None => Answer::Taken(said),
            },
            other => other,
        };
        match answer {
            Answer::Taken(_) => {
                self.succeeded(|counts| {
                    counts.sent += 1;
                    counts.last_sent = Some(SystemTime::now());
                    counts.trouble = None;
                });
                Sent::Done
            }
            Answer::Refused(reason) => {
                tracing::warn!(%reason, "a profile was refused and is dropped");
                // It has answered, so the next profile need not wait.
                self.succeeded(|counts| {
                    counts.refused += 1;
                    counts.trouble = Some(reason);
                });
                Sent::Done
            }
            Answer::Later(reason, asked) => {
                let pause = self.backoff.fail(asked);
                self.retry_at = Some(Instant::now() + pause);
                let is_new = self.figures.read().trouble.is_none();
                if is_new {
                    // Once, and again when it has worked meanwhile: a server may be down for days.
                    tracing::warn!(%reason, "a profile was not pushed: it waits, and is tried again");
                }
                self.figures.change(|counts| {
                    counts.failures += 1;
                    counts.trouble = Some(reason);
                });
                Sent::Later
            }
        }
    }

    fn succeeded(&mut self, change: impl FnOnce(&mut PushCounts)) {
        self.backoff.succeed();
        self.retry_at = None;
        self.figures.change(change);
    }

    fn publish(&self, dropped: u64) {
        self.figures.change(|counts| {
            counts.dropped += dropped;
            counts.waiting = self.queue.len() as u64;
            counts.waiting_bytes = self.queue.bytes();
        });
    }
}

/// What became of a profile.
enum Sent {
    /// Nothing more is to be done with it.
    Done,
    /// It is to be tried again.
    Later,
}
