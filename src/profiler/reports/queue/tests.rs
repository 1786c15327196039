use super::{ALL, Error, Made, OF_ONE, OTHERS, Origin, OutputKey, OutputSpec, Queue};
use crate::profiler::store::{OutputKind, ReportId};
use crate::profiler::waiter::Wait;
use heapray_report::formats::Format;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

/// A client that waits, and may go.
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

fn ask_as(queue: &Queue, spec: OutputSpec, urgent: bool) -> Asked {
    let (answer, answers) = mpsc::channel();
    let gone = Arc::new(AtomicBool::new(false));
    let client = Client {
        answer,
        gone: Arc::clone(&gone),
    };
    Asked {
        serve: queue.enqueue(spec, Box::new(client), urgent),
        answers,
        gone,
    }
}

fn ask(queue: &Queue, spec: OutputSpec) -> Asked {
    ask_as(queue, spec, false)
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

fn usual(origin: Origin) -> OutputSpec {
    let key = OutputKey::new(OutputKind::Flamegraph);
    OutputSpec { origin, key }
}

/// Different outputs, none of which is usual.
fn others(origin: Origin) -> impl Iterator<Item = OutputSpec> {
    let formats = Format::ALL.iter();
    formats.flat_map(move |format| {
        let key = OutputKey::new(OutputKind::File(*format));
        let keys = [key.full(true), key.lines(true), key.inverted(true)];
        keys.map(|key| OutputSpec { origin, key })
    })
}

/// An answer unlike all others.
const MADE: Made = Err(Error::NoReport);

#[test]
fn an_output_that_many_ask_for_at_once_is_made_once_and_all_get_it() {
    let queue = Queue::new();
    let asked: Vec<_> = (0..20).map(|_| ask(&queue, usual(SESSION))).collect();
    assert_eq!(asked.iter().filter(|asked| asked.serve).count(), 1);
    assert_eq!(queue.take_next(), Some(usual(SESSION)));
    let late = ask(&queue, usual(SESSION));
    assert!(queue.complete(&MADE));
    for asked in asked.iter().chain([&late]) {
        assert!(matches!(asked.refused(), Some(Error::NoReport)));
    }
    assert_eq!(queue.take_next(), None);
    assert!(ask(&queue, usual(SESSION)).serve, "it is made anew");
}

#[test]
fn an_output_that_nobody_waits_for_is_neither_begun_nor_counted() {
    let queue = Queue::new();
    for spec in others(SESSION).take(20) {
        let asked = ask(&queue, spec);
        asked.leaves();
        assert!(asked.refused().is_none());
    }
    let stays = ask(&queue, usual(SESSION));
    assert_eq!(queue.take_next(), Some(usual(SESSION)));
    assert!(queue.complete(&MADE));
    assert_eq!(queue.take_next(), None);
    assert_eq!(stays.answers.try_iter().count(), 1);
}

#[test]
fn what_is_being_made_goes_on_as_long_as_it_is_of_use() {
    let queue = Queue::new();
    let view = ask(&queue, usual(RECORDING));
    queue.take_next();
    assert!(queue.is_wanted());
    view.leaves();
    assert!(!queue.is_wanted(), "a passing view is of no use to others");
    assert!(!queue.complete(&MADE));
    assert_eq!(view.answers.try_iter().count(), 0);

    let last = ask(&queue, usual(SESSION));
    queue.take_next();
    last.leaves();
    assert!(queue.is_wanted(), "who asks again finds it");
    let other = ask(&queue, usual(kept(1)));
    assert!(!queue.is_wanted(), "somebody else waits");
    assert!(!queue.complete(&MADE));
    assert_eq!(queue.take_next(), Some(usual(kept(1))));
    assert!(queue.complete(&MADE));
    assert_eq!(other.answers.try_iter().count(), 1);
}

#[test]
fn a_session_that_ends_interrupts_and_goes_first_and_the_others_come_after_it() {
    let queue = Queue::new();
    let client = ask(&queue, usual(kept(1)));
    let second = ask(&queue, usual(kept(2)));
    queue.take_next();
    queue.hold();
    assert!(!queue.is_wanted());
    let report = ask_as(&queue, usual(SESSION), true);
    assert!(!report.serve, "the thread is at work");
    assert!(!queue.complete(&MADE), "interrupted");
    assert_eq!(queue.take_next(), Some(usual(SESSION)));
    assert!(queue.is_wanted(), "it is not interrupted itself");
    assert!(queue.complete(&MADE));
    assert_eq!(queue.take_next(), None, "still held");
    assert_eq!(client.answers.try_iter().count(), 0);
    assert!(queue.release());
    for (number, asked) in [(1, client), (2, second)] {
        assert_eq!(queue.take_next(), Some(usual(kept(number))));
        assert!(queue.is_wanted());
        assert!(queue.complete(&MADE));
        assert_eq!(asked.answers.try_iter().count(), 1);
    }
    assert_eq!(queue.take_next(), None);
}

#[test]
fn an_urgent_waiter_makes_urgent_what_was_interrupted_a_moment_ago() {
    let queue = Queue::new();
    let client = ask(&queue, usual(SESSION));
    queue.take_next();
    queue.hold();
    assert!(!queue.is_wanted());
    let report = ask_as(&queue, usual(SESSION), true);
    assert!(!queue.complete(&MADE), "the failure is the interruption's");
    assert_eq!(queue.take_next(), Some(usual(SESSION)));
    assert!(queue.complete(&MADE));
    assert_eq!(client.answers.try_iter().count(), 1);
    assert_eq!(report.answers.try_iter().count(), 1);
}

#[test]
fn what_was_finished_all_the_same_is_handed_out() {
    let queue = Queue::new();
    let client = ask(&queue, usual(kept(1)));
    queue.take_next();
    queue.hold();
    assert!(queue.complete(&MADE), "it was never told to end");
    assert_eq!(client.answers.try_iter().count(), 1);
}

#[test]
fn the_places_are_limited_and_the_usual_outputs_have_theirs() {
    let queue = Queue::new();
    let mut clients = Vec::new();
    for origin in [SESSION, kept(1), kept(2), kept(3)] {
        clients.extend(others(origin).take(20).map(|spec| ask(&queue, spec)));
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
    let first = [queue.take_next(), {
        queue.complete(&MADE);
        queue.take_next()
    }];
    assert!(first.contains(&Some(usual(SESSION))));
}

#[test]
fn there_is_a_limit_to_everything() {
    let queue = Queue::new();
    let kinds = [OutputKind::Report, OutputKind::Stats, OutputKind::Tree];
    let sessions = (0..ALL as u64).flat_map(|number| {
        let origin = Origin::Session {
            number,
            recording: false,
        };
        kinds.map(|kind| OutputSpec {
            origin,
            key: OutputKey::new(kind),
        })
    });
    let clients: Vec<_> = sessions.map(|spec| ask(&queue, spec)).collect();
    let taken = clients.iter().filter(|asked| asked.refused().is_none());
    assert_eq!(taken.count(), ALL);
    let report = ask_as(&queue, usual(SESSION), true);
    assert!(
        report.refused().is_none(),
        "a session's report has its place"
    );
    assert_eq!(queue.take_next(), Some(usual(SESSION)));
}

#[test]
fn usual_and_other_outputs_take_turns() {
    let queue = Queue::new();
    let mut clients: Vec<_> = others(kept(1))
        .take(4)
        .map(|spec| ask(&queue, spec))
        .collect();
    for kind in [OutputKind::Report, OutputKind::Stats, OutputKind::Tree] {
        let key = OutputKey::new(kind);
        clients.push(ask(
            &queue,
            OutputSpec {
                origin: SESSION,
                key,
            },
        ));
    }
    let mut order = Vec::new();
    while let Some(spec) = queue.take_next() {
        order.push(spec.is_usual());
        queue.complete(&MADE);
    }
    assert_eq!(order, [true, false, true, false, true, false, false]);
}

#[test]
fn at_the_end_of_the_service_all_waiters_get_an_error_and_the_report_is_made() {
    let queue = Queue::new();
    let running = ask(&queue, usual(RECORDING));
    let waiting = ask(&queue, usual(kept(1)));
    let gone = ask(&queue, usual(kept(2)));
    gone.leaves();
    queue.take_next();
    assert_eq!(queue.end(), 2);
    assert!(matches!(waiting.refused(), Some(Error::Ending)));
    assert!(!queue.is_wanted());
    assert!(queue.complete(&MADE));
    assert!(matches!(running.refused(), Some(Error::Ending)));
    let late = ask(&queue, usual(kept(1)));
    assert!(matches!(late.refused(), Some(Error::Ending)));
    let report = ask_as(&queue, usual(SESSION), true);
    assert_eq!(queue.take_next(), Some(usual(SESSION)));
    assert!(queue.is_wanted());
    assert!(queue.complete(&MADE));
    assert_eq!(report.answers.try_iter().count(), 1);
    queue.go_on();
    assert!(ask(&queue, usual(kept(1))).refused().is_none());
}
