//! The events as a response body. Each event is made from the latest state when the client has room for it. So a slow client
//! costs no memory and simply gets fewer events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use heapray_report::model::Moment;
use http_body::{Body, Frame};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::profiler::{LiveFeed, LiveState, Mark};

/// Largest number of clients that watch at once. Each costs a connection.
const MAX_CLIENTS: usize = 32;
/// Updates in one answer, a second apart.
const UPDATES_PER_ANSWER: u32 = 10;

/// Counter of the clients that watch.
#[derive(Debug, Clone, Default)]
pub(in crate::endpoints) struct LiveSlots(Arc<AtomicUsize>);

/// Permission to watch. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct LiveSlot(Arc<AtomicUsize>);

impl LiveSlots {
    /// Takes a slot, if one is free.
    pub(super) fn take(&self) -> Option<LiveSlot> {
        let taken = self.0.fetch_add(1, Ordering::Relaxed);
        // Made first, so that dropping it undoes the increment.
        let slot = LiveSlot(Arc::clone(&self.0));
        (taken < MAX_CLIENTS).then_some(slot)
    }
}

impl Drop for LiveSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Body with the events of ten seconds. The first poll requests the first update.
#[derive(Debug)]
pub(super) struct LiveBody {
    feed: Arc<LiveFeed>,
    next: Option<oneshot::Receiver<Arc<LiveState>>>,
    left: u32,
    sites: bool,
    sent: Sent,
    _slot: LiveSlot,
}

impl LiveBody {
    /// `sites`: what the lines are made of, instead of the lines.
    pub(super) fn new(feed: Arc<LiveFeed>, sites: bool, slot: LiveSlot) -> LiveBody {
        LiveBody {
            feed,
            next: None,
            left: UPDATES_PER_ANSWER,
            sites,
            sent: Sent::default(),
            _slot: slot,
        }
    }
}

impl Body for LiveBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let body = &mut *self;
        if body.left == 0 {
            return Poll::Ready(None);
        }
        let mut next = body
            .next
            .take()
            .unwrap_or_else(|| body.feed.next(body.sites));
        let Poll::Ready(state) = Pin::new(&mut next).poll(context) else {
            body.next = Some(next);
            return Poll::Pending;
        };
        let Ok(state) = state else {
            // The profiler failed: the client will ask again.
            body.left = 0;
            return Poll::Ready(None);
        };
        body.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(
            body.sent.events(&state, body.sites).into(),
        ))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}

/// Values that the client has already received.
#[derive(Debug, Default)]
struct Sent {
    /// Session of the sent curve, and the number of marks in it.
    curve: Option<(Option<SystemTime>, usize)>,
    top: String,
    leaks: String,
    routes: String,
    reports: String,
}

#[derive(Serialize)]
struct Curve<'g> {
    points: Vec<[u64; 4]>,
    marks: &'g [Mark],
}

impl Sent {
    /// Returns the text of the events for `state`. `sites`: with what the lines are made of, instead of the lines.
    fn events(&mut self, state: &LiveState, sites: bool) -> String {
        // The page reconnects at once: the end of an answer is not a failure.
        let mut text = String::from("retry: 500\n");
        push(&mut text, "status", &state.status);
        let curve = (state.status.recording_since, state.marks.len());
        if self.curve.replace(curve) == Some(curve) {
            if let Some(now) = state.curve.last() {
                push(&mut text, "now", &row(now));
            }
        } else {
            let points = state.curve.iter().map(row).collect();
            let marks = &state.marks;
            push(&mut text, "curve", &Curve { points, marks });
        }
        let (top, leaks) = match sites {
            true => (
                ("top-sites", json(&state.sites.top)),
                ("leak-sites", json(&state.sites.leaks)),
            ),
            false => (("top", json(&state.top)), ("leaks", json(&state.leaks))),
        };
        for (name, new, old) in [
            (top.0, top.1, &mut self.top),
            (leaks.0, leaks.1, &mut self.leaks),
            ("routes", json(&state.routes), &mut self.routes),
            ("reports", json(&state.kept), &mut self.reports),
        ] {
            if *old != new {
                push_json(&mut text, name, &new);
                *old = new;
            }
        }
        text
    }
}

fn row(moment: &Moment) -> [u64; 4] {
    [moment.at_ms, moment.rss, moment.heap, moment.own]
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("our own plain types can be written as JSON")
}

fn push(text: &mut String, event: &str, value: &impl Serialize) {
    push_json(text, event, &json(value));
}

/// Appends an event. JSON has no line break outside of strings, and writes those in strings as `\n`.
fn push_json(text: &mut String, event: &str, json: &str) {
    for part in ["event: ", event, "\ndata: ", json, "\n\n"] {
        text.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::{LiveSlots, LiveState, MAX_CLIENTS, Mark, Moment, Sent};
    use crate::profiler::{Blocks, LiveSites, State, Status};

    fn state() -> LiveState {
        LiveState {
            status: Status::bare(State::Stopped),
            curve: vec![Moment::default(); 3],
            marks: Vec::new(),
            top: None,
            leaks: Vec::new(),
            sites: LiveSites::default(),
            routes: Vec::new(),
            kept: Vec::new(),
        }
    }

    fn names(events: &str) -> Vec<&str> {
        let lines = events.lines();
        lines
            .filter_map(|line| line.strip_prefix("event: "))
            .collect()
    }

    #[test]
    fn what_has_not_changed_is_not_sent_again() {
        let mut sent = Sent::default();
        let mut state = state();
        assert_eq!(
            names(&sent.events(&state, false)),
            ["status", "curve", "top", "leaks", "routes", "reports"]
        );
        assert_eq!(names(&sent.events(&state, false)), ["status", "now"]);
        state.marks.push(Mark {
            name: "line\nbreak\n\nevent: forged".into(),
            at_ms: 1,
            live: Blocks::default(),
        });
        let events = sent.events(&state, false);
        assert_eq!(names(&events), ["status", "curve"], "{events}");
    }

    #[test]
    fn sites_are_in_the_place_of_lines() {
        let mut state = state();
        state.sites.top = Some("bWVtcmF5".into());
        let events = Sent::default().events(&state, true);
        assert_eq!(
            names(&events),
            [
                "status",
                "curve",
                "top-sites",
                "leak-sites",
                "routes",
                "reports"
            ]
        );
        assert!(events.contains("data: \"bWVtcmF5\"\n"), "{events}");
    }

    #[test]
    fn there_are_so_many_seats_and_one_that_is_left_is_free() {
        let slots = LiveSlots::default();
        let mut taken: Vec<_> = (0..MAX_CLIENTS).map(|_| slots.take().unwrap()).collect();
        assert!(slots.take().is_none());
        assert!(slots.take().is_none());
        taken.pop();
        assert!(slots.take().is_some());
    }
}
