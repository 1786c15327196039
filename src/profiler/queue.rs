//! The outputs that are asked for, and in which order they are made: one at a time, each once however many wait for it,
//! and only as long as somebody waits.
//!
//! ```text
//! board ──▶ waiting ──▶ next ──▶ being made ──▶ land: all who wait get it
//!    │                              │ interrupted: back to the front
//!    └─ no room: refused            └ nobody waits any more: dropped
//! ```
//!
//! A session's own report (`stop`, `shutdown`) is urgent: it goes first. While it waits, and while somebody holds the queue
//! (whoever ends a session, and the flight recorder), nothing else is begun, and what is being made is interrupted: two
//! makings at once would need twice the memory.
//!
//! Who asks is not known: behind a proxy all clients have one address. What is asked for is. The present session's usual
//! outputs are few, so each always has a place, whatever others ask for. All other makings share [`OTHERS`] places, those
//! of one report [`OF_ONE`] of them. The two kinds take turns. So one client can fill the places of unusual outputs, but
//! keeps nobody from the report, the flame graph and the statistics.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Error;
use super::outputs::{Made, Origin, Trip};
use super::waiter::Waiter;
use crate::profiler::store::OutputKey;

/// Makings that may wait, besides the usual ones of the present session.
const OTHERS: usize = 16;
/// Of them, those of one report.
const OF_ONE: usize = 8;
/// Makings of any kind that may wait: usual ones of sessions that are over meanwhile count, too.
const ALL: usize = 64;
/// Those who may wait for one making.
const WAITERS: usize = 1024;

/// Makings that wait, and the one that is being made.
#[derive(Default)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<Making>,
    running: Option<Making>,
    /// Those who want nothing but urgent makings.
    holds: usize,
    /// The service is about to end.
    is_ending: bool,
    /// A thread takes makings out, or is about to.
    is_served: bool,
    /// The last one that was taken was a usual one.
    was_usual: bool,
}

struct Making {
    trip: Trip,
    waiters: Vec<Waiter<Made>>,
    is_urgent: bool,
    /// Told, while being made, that it is not wanted.
    is_interrupted: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics half way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a waiter. True if the caller now has to have [`next`](Queue::next) called on the thread that makes outputs. A
    /// waiter for whom there is no room is given an error.
    #[must_use]
    pub(super) fn board(&self, trip: Trip, waiter: Waiter<Made>, is_urgent: bool) -> bool {
        let mut inner = self.lock();
        match inner.board(trip, waiter, is_urgent) {
            Ok(()) => inner.must_be_served(),
            Err((waiter, error)) => {
                drop(inner);
                waiter.give(Err(error));
                false
            }
        }
    }

    /// What is to be made now. After it, the caller [lands](Queue::land) it and asks again; `None`, and it does not.
    pub(super) fn next(&self) -> Option<Trip> {
        let mut inner = self.lock();
        let next = inner.take();
        inner.is_served = next.is_some();
        let trip = next.as_ref().map(|making| making.trip);
        inner.running = next;
        trip
    }

    /// Whether to go on with what is being made, also after it has landed.
    pub(super) fn is_wanted(&self) -> bool {
        let inner = &mut *self.lock();
        let goes_first = inner.waiting.iter().any(|making| making.is_urgent);
        let is_free = inner.holds == 0 && !inner.is_ending && !goes_first;
        let Some(running) = &mut inner.running else {
            return is_free;
        };
        if running.is_urgent {
            return true;
        }
        let is_awaited = running.waiters.iter().any(|waiter| !waiter.is_gone());
        let others_wait = || inner.waiting.iter().any(Making::is_awaited);
        // What is finished with nobody waiting is found by those who ask again, unless it is a passing view.
        let goes_on = is_awaited || (!running.trip.is_snapshot() && !others_wait());
        let wanted = is_free && goes_on;
        running.is_interrupted |= !wanted;
        wanted
    }

    /// Gives the result to all who wait. What was interrupted and failed of it waits again, if somebody waits for it.
    /// Whether it came to an end.
    pub(super) fn land(&self, made: &Made) -> bool {
        let mut inner = self.lock();
        let Some(mut making) = inner.running.take() else {
            return true;
        };
        let mut made = made.clone();
        if making.is_interrupted && made.is_err() {
            making.is_interrupted = false;
            if !making.is_awaited() {
                return false;
            }
            if !inner.is_ending || making.is_urgent {
                inner.waiting.push_front(making);
                return false;
            }
            made = Err(Error::Ending);
        }
        drop(inner);
        making.give(&made);
        true
    }

    /// From now on nothing is made that is not urgent, until there were as many [releases](Queue::release).
    pub(super) fn hold(&self) {
        self.lock().holds += 1;
    }

    /// True if the caller now has to have [`next`](Queue::next) called.
    #[must_use]
    pub(super) fn release(&self) -> bool {
        let mut inner = self.lock();
        inner.holds = inner.holds.saturating_sub(1);
        inner.must_be_served()
    }

    /// The service ends: nothing more is taken that is not urgent, and those who wait are told so. How many makings were
    /// left out.
    pub(super) fn end(&self) -> usize {
        let mut inner = self.lock();
        inner.is_ending = true;
        let running = usize::from(
            inner
                .running
                .as_ref()
                .is_some_and(|making| !making.is_urgent),
        );
        let (urgent, left_out): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut inner.waiting)
            .into_iter()
            .partition(|making| making.is_urgent);
        inner.waiting = urgent;
        drop(inner);
        let awaited = left_out.iter().filter(|making| making.is_awaited()).count();
        for making in left_out {
            making.give(&Err(Error::Ending));
        }
        running + awaited
    }

    /// Whether the service is about to end.
    pub(super) fn is_ending(&self) -> bool {
        self.lock().is_ending
    }

    /// It has not ended after all.
    pub(super) fn go_on(&self) {
        self.lock().is_ending = false;
    }
}

impl Inner {
    fn board(
        &mut self,
        trip: Trip,
        waiter: Waiter<Made>,
        is_urgent: bool,
    ) -> Result<(), (Waiter<Made>, Error)> {
        let mut all = self.running.iter_mut().chain(&mut self.waiting);
        if let Some(same) = all.find(|making| making.trip == trip) {
            if same.waiters.len() >= WAITERS {
                same.waiters.retain(|waiter| !waiter.is_gone());
            }
            if same.waiters.len() >= WAITERS && !is_urgent {
                return Err((waiter, Error::TooManyOutputs));
            }
            same.is_urgent |= is_urgent;
            same.waiters.push(waiter);
            return Ok(());
        }
        if !is_urgent {
            if self.is_ending {
                return Err((waiter, Error::Ending));
            }
            self.drop_abandoned();
            if !self.has_room(trip) {
                return Err((waiter, Error::TooManyOutputs));
            }
        }
        self.waiting.push_back(Making {
            trip,
            waiters: vec![waiter],
            is_urgent,
            is_interrupted: false,
        });
        Ok(())
    }

    fn has_room(&self, trip: Trip) -> bool {
        let others = || self.waiting.iter().filter(|making| !making.trip.is_usual());
        let of_one = others().filter(|making| making.trip.origin == trip.origin);
        let is_free = trip.is_usual() || (others().count() < OTHERS && of_one.count() < OF_ONE);
        self.waiting.len() < ALL && is_free
    }

    fn drop_abandoned(&mut self) {
        self.waiting.retain(Making::is_awaited);
    }

    fn take(&mut self) -> Option<Making> {
        self.drop_abandoned();
        let mut waiting = self.waiting.iter();
        let urgent = waiting.position(|making| making.is_urgent);
        if urgent.is_none() && (self.holds > 0 || self.is_ending) {
            return None;
        }
        let turn = |making: &Making| making.trip.is_usual() != self.was_usual;
        let at = urgent.or_else(|| self.waiting.iter().position(turn));
        let making = self.waiting.remove(at.unwrap_or(0))?;
        self.was_usual = making.trip.is_usual();
        Some(making)
    }

    fn must_be_served(&mut self) -> bool {
        let must = !self.is_served && !self.waiting.is_empty();
        self.is_served |= must;
        must
    }
}

impl Making {
    fn is_awaited(&self) -> bool {
        self.is_urgent || self.waiters.iter().any(|waiter| !waiter.is_gone())
    }

    fn give(self, made: &Made) {
        for waiter in self.waiters {
            waiter.give(made.clone());
        }
    }
}

impl Trip {
    /// Made of a session that goes on: nobody else can have it.
    pub(super) fn is_snapshot(&self) -> bool {
        matches!(
            self.origin,
            Origin::Session {
                recording: true,
                ..
            }
        )
    }

    /// One of the present session's outputs as they are usually made.
    fn is_usual(&self) -> bool {
        matches!(self.origin, Origin::Session { .. }) && self.key == OutputKey::new(self.key.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Error, Made, OF_ONE, OTHERS, Origin, OutputKey, Queue, Trip};
    use crate::profiler::store::{OutputKind, ReportId};
    use crate::profiler::waiter::Wait;
    use heapray_report::formats::Format;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};

    /// One who waits, and may go.
    struct Client {
        answer: mpsc::Sender<Made>,
        gone: Arc<AtomicBool>,
    }

    impl Wait<Made> for Client {
        fn give(self: Box<Self>, value: Made) {
            self.answer.send(value).unwrap();
        }

        fn is_gone(&self) -> bool {
            self.gone.load(Ordering::Relaxed)
        }
    }

    struct Asked {
        serve: bool,
        answers: mpsc::Receiver<Made>,
        gone: Arc<AtomicBool>,
    }

    impl Asked {
        fn leaves(&self) {
            self.gone.store(true, Ordering::Relaxed);
        }

        fn refused(&self) -> Option<Error> {
            self.answers.try_recv().ok()?.err()
        }
    }

    fn ask_as(queue: &Queue, trip: Trip, urgent: bool) -> Asked {
        let (answer, answers) = mpsc::channel();
        let gone = Arc::new(AtomicBool::new(false));
        let client = Client {
            answer,
            gone: Arc::clone(&gone),
        };
        Asked {
            serve: queue.board(trip, Box::new(client), urgent),
            answers,
            gone,
        }
    }

    fn ask(queue: &Queue, trip: Trip) -> Asked {
        ask_as(queue, trip, false)
    }

    const SESSION: Origin = Origin::Session {
        number: 1,
        recording: false,
    };
    const RECORDING: Origin = Origin::Session {
        number: 1,
        recording: true,
    };

    fn kept(number: u64) -> Origin {
        Origin::Kept(ReportId::parse(&number.to_string()).unwrap())
    }

    fn usual(origin: Origin) -> Trip {
        let key = OutputKey::new(OutputKind::Flamegraph);
        Trip { origin, key }
    }

    /// Different ones, none of which is usual.
    fn others(origin: Origin) -> impl Iterator<Item = Trip> {
        let formats = Format::ALL.iter();
        formats.flat_map(move |format| {
            let key = OutputKey::new(OutputKind::File(*format));
            let keys = [key.full(true), key.lines(true), key.inverted(true)];
            keys.map(|key| Trip { origin, key })
        })
    }

    /// An answer that can be told apart.
    const MADE: Made = Err(Error::NoReport);

    #[test]
    fn many_who_ask_at_once_have_it_made_once_and_all_get_it() {
        let queue = Queue::default();
        let asked: Vec<_> = (0..20).map(|_| ask(&queue, usual(SESSION))).collect();
        assert_eq!(asked.iter().filter(|asked| asked.serve).count(), 1);
        assert_eq!(queue.next(), Some(usual(SESSION)));
        let late = ask(&queue, usual(SESSION));
        assert!(queue.land(&MADE));
        for asked in asked.iter().chain([&late]) {
            assert!(matches!(asked.refused(), Some(Error::NoReport)));
        }
        assert_eq!(queue.next(), None);
        assert!(ask(&queue, usual(SESSION)).serve, "it is made anew");
    }

    #[test]
    fn what_nobody_waits_for_is_neither_begun_nor_counted() {
        let queue = Queue::default();
        for trip in others(SESSION).take(20) {
            let asked = ask(&queue, trip);
            asked.leaves();
            assert!(asked.refused().is_none());
        }
        let stays = ask(&queue, usual(SESSION));
        assert_eq!(queue.next(), Some(usual(SESSION)));
        assert!(queue.land(&MADE));
        assert_eq!(queue.next(), None);
        assert_eq!(stays.answers.try_iter().count(), 1);
    }

    #[test]
    fn what_is_being_made_goes_on_as_long_as_it_is_of_use() {
        let queue = Queue::default();
        let view = ask(&queue, usual(RECORDING));
        queue.next();
        assert!(queue.is_wanted());
        view.leaves();
        assert!(!queue.is_wanted(), "a passing view is of no use to others");
        assert!(!queue.land(&MADE));
        assert_eq!(view.answers.try_iter().count(), 0);

        let last = ask(&queue, usual(SESSION));
        queue.next();
        last.leaves();
        assert!(queue.is_wanted(), "who asks again finds it");
        let other = ask(&queue, usual(kept(1)));
        assert!(!queue.is_wanted(), "somebody else waits");
        assert!(!queue.land(&MADE));
        assert_eq!(queue.next(), Some(usual(kept(1))));
        assert!(queue.land(&MADE));
        assert_eq!(other.answers.try_iter().count(), 1);
    }

    #[test]
    fn a_session_that_ends_interrupts_and_goes_first_and_the_others_come_after_it() {
        let queue = Queue::default();
        let client = ask(&queue, usual(kept(1)));
        let second = ask(&queue, usual(kept(2)));
        queue.next();
        queue.hold();
        assert!(!queue.is_wanted());
        let report = ask_as(&queue, usual(SESSION), true);
        assert!(!report.serve, "the thread is at work");
        assert!(!queue.land(&MADE), "interrupted");
        assert_eq!(queue.next(), Some(usual(SESSION)));
        assert!(queue.is_wanted(), "it is not interrupted itself");
        assert!(queue.land(&MADE));
        assert_eq!(queue.next(), None, "still held");
        assert_eq!(client.answers.try_iter().count(), 0);
        assert!(queue.release());
        for (number, asked) in [(1, client), (2, second)] {
            assert_eq!(queue.next(), Some(usual(kept(number))));
            assert!(queue.is_wanted());
            assert!(queue.land(&MADE));
            assert_eq!(asked.answers.try_iter().count(), 1);
        }
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn an_urgent_waiter_makes_urgent_what_was_interrupted_a_moment_ago() {
        let queue = Queue::default();
        let client = ask(&queue, usual(SESSION));
        queue.next();
        queue.hold();
        assert!(!queue.is_wanted());
        let report = ask_as(&queue, usual(SESSION), true);
        assert!(!queue.land(&MADE), "the failure is the interruption's");
        assert_eq!(queue.next(), Some(usual(SESSION)));
        assert!(queue.land(&MADE));
        assert_eq!(client.answers.try_iter().count(), 1);
        assert_eq!(report.answers.try_iter().count(), 1);
    }

    #[test]
    fn what_was_finished_all_the_same_is_handed_out() {
        let queue = Queue::default();
        let client = ask(&queue, usual(kept(1)));
        queue.next();
        queue.hold();
        assert!(queue.land(&MADE), "it was never told to end");
        assert_eq!(client.answers.try_iter().count(), 1);
    }

    #[test]
    fn the_places_are_limited_and_the_usual_outputs_have_theirs() {
        let queue = Queue::default();
        let mut clients = Vec::new();
        for origin in [SESSION, kept(1), kept(2), kept(3)] {
            clients.extend(others(origin).take(20).map(|trip| ask(&queue, trip)));
        }
        let refused: Vec<_> = clients.iter().map(Asked::refused).collect();
        let taken = refused.iter().filter(|refused| refused.is_none()).count();
        assert_eq!(taken, OTHERS);
        assert!(refused[..OF_ONE].iter().all(Option::is_none));
        assert!(matches!(refused[OF_ONE], Some(Error::TooManyOutputs)));
        assert!(refused[20].is_none(), "another report has places left");
        let flamegraph = ask(&queue, usual(SESSION));
        assert!(flamegraph.refused().is_none());
        // At most one of the others goes before it.
        let first = [queue.next(), {
            queue.land(&MADE);
            queue.next()
        }];
        assert!(first.contains(&Some(usual(SESSION))));
    }

    #[test]
    fn there_is_a_limit_to_everything() {
        let queue = Queue::default();
        let kinds = [OutputKind::Report, OutputKind::Stats, OutputKind::Tree];
        let sessions = (0..ALL as u64).flat_map(|number| {
            let origin = Origin::Session {
                number,
                recording: false,
            };
            kinds.map(|kind| Trip {
                origin,
                key: OutputKey::new(kind),
            })
        });
        let clients: Vec<_> = sessions.map(|trip| ask(&queue, trip)).collect();
        let taken = clients.iter().filter(|asked| asked.refused().is_none());
        assert_eq!(taken.count(), ALL);
        let report = ask_as(&queue, usual(SESSION), true);
        assert!(
            report.refused().is_none(),
            "a session's report has its place"
        );
        assert_eq!(queue.next(), Some(usual(SESSION)));
    }

    #[test]
    fn usual_and_other_outputs_take_turns() {
        let queue = Queue::default();
        let mut clients: Vec<_> = others(kept(1))
            .take(4)
            .map(|trip| ask(&queue, trip))
            .collect();
        for kind in [OutputKind::Report, OutputKind::Stats, OutputKind::Tree] {
            let key = OutputKey::new(kind);
            clients.push(ask(
                &queue,
                Trip {
                    origin: SESSION,
                    key,
                },
            ));
        }
        let mut order = Vec::new();
        while let Some(trip) = queue.next() {
            order.push(trip.is_usual());
            queue.land(&MADE);
        }
        assert_eq!(order, [true, false, true, false, true, false, false]);
    }

    #[test]
    fn at_the_end_of_the_service_everybody_is_told_and_the_report_is_made() {
        let queue = Queue::default();
        let running = ask(&queue, usual(RECORDING));
        let waiting = ask(&queue, usual(kept(1)));
        let gone = ask(&queue, usual(kept(2)));
        gone.leaves();
        queue.next();
        assert_eq!(queue.end(), 2);
        assert!(matches!(waiting.refused(), Some(Error::Ending)));
        assert!(!queue.is_wanted());
        assert!(queue.land(&MADE));
        assert!(matches!(running.refused(), Some(Error::Ending)));
        let late = ask(&queue, usual(kept(1)));
        assert!(matches!(late.refused(), Some(Error::Ending)));
        let report = ask_as(&queue, usual(SESSION), true);
        assert_eq!(queue.next(), Some(usual(SESSION)));
        assert!(queue.is_wanted());
        assert!(queue.land(&MADE));
        assert_eq!(report.answers.try_iter().count(), 1);
        queue.go_on();
        assert!(ask(&queue, usual(kept(1))).refused().is_none());
    }
}
