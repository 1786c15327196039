//! Which line leaks: the ranking that every page, text, endpoint and the command show.
//!
//! Three questions about each line of code, all asked of the *work* of the session, so that a pause, a burst or a slow start
//! does not change the answer:
//!
//! - Does it **keep** what it allocates? [`Survivors`](crate::model::Survivors) tell when the blocks that are still live were
//!   allocated. Those of a leak are of all ages; those of requests in flight and of sessions are young; those of set-up are old.
//! - Does it **grow**? [`History`](crate::model::History) tells what the line held before. A cache that is full also keeps
//!   what it allocates, and gives back as much.
//! - Does it **still** do so? What grew in the first half of the work and not in the second was set up, or has filled.
//!
//! `work` measures the work, `lines` makes the curves of each line, `judge` answers the questions, `text` says it in words.

mod judge;
mod lines;
mod text;
mod work;

use std::cmp::Reverse;

use self::judge::judge;
use self::lines::lines;
use self::work::Work;
pub(crate) use self::work::allocated_by_time;
use super::Origins;
use crate::model::{FrameId, Report, StackId, Tally};

/// Line of code that probably leaks.
#[derive(Debug, Clone, PartialEq)]
pub struct Leak {
    /// The line: the service's own frame that its call stacks have nearest to the leaf, or a package's if they have none of
    /// the service's own.
    pub frame: FrameId,
    /// Whether `frame` is the service's own code.
    pub is_own: bool,
    /// The call stack through the line that kept most.
    pub stack: StackId,
    /// Live memory of the line at the end.
    pub live: Tally,
    /// Growth of the line in bytes per hour, from the time at which it began to grow.
    pub growth_bytes_per_hour: u64,
    /// Part of the bytes allocated while the line grew that is still live, from 0 to 1. `None` if it is not known how much
    /// was allocated.
    pub survival: Option<f64>,
    /// How sure the ranking is.
    pub confidence: Confidence,
    /// What speaks for a leak, a sentence each, with its numbers.
    pub evidence: Vec<String>,
    /// What speaks against it.
    pub against: Vec<String>,
}

/// Confidence in a [`Leak`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Confidence {
    /// It may be a coincidence, or too little to matter.
    Low,
    /// A leak, or a collection whose bound is not reached.
    Medium,
    /// Somebody should act.
    High,
}

impl Confidence {
    /// Returns `low`, `medium` or `high`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }

    /// Returns the confidence of this [`name`](Confidence::name).
    #[must_use]
    pub fn parse(name: &str) -> Option<Confidence> {
        let all = [Confidence::Low, Confidence::Medium, Confidence::High];
        all.into_iter().find(|confidence| confidence.name() == name)
    }
}

/// Result of [`leaks`].
#[derive(Debug, Clone, PartialEq)]
pub enum Leaks {
    /// The lines, the likeliest leak first. Empty if nothing leaks.
    Ranked(Vec<Leak>),
    /// It cannot be told, for the reason given.
    Unknown(&'static str),
}

impl Leaks {
    /// Returns the lines, the likeliest leak first; none if it cannot be told.
    #[must_use]
    pub fn list(&self) -> &[Leak] {
        match self {
            Leaks::Ranked(list) => list,
            Leaks::Unknown(_) => &[],
        }
    }

    /// Returns the reason why it cannot be told, if it cannot.
    #[must_use]
    pub fn unknown(&self) -> Option<&'static str> {
        match self {
            Leaks::Ranked(_) => None,
            Leaks::Unknown(reason) => Some(reason),
        }
    }
}

/// Ranks the lines of `report` that probably leak.
#[must_use]
pub fn leaks(report: &Report) -> Leaks {
    if report.history.moments.is_empty() || report.survivors.starts_ms.is_empty() {
        return Leaks::Unknown(
            "The report does not tell when memory was allocated, so what grows is not known. A report that Heapray made, \
             or a capture of memray with every event, does.",
        );
    }
    let work = Work::of(report);
    if !work.is_long_enough() {
        return Leaks::Unknown(
            "The recording is too short to tell what grows: record a few seconds of work.",
        );
    }
    let origins = Origins::of(report);
    let mut list: Vec<(u64, Leak)> = lines(report, &origins, &work)
        .into_iter()
        .filter_map(|line| judge(report, &work, &line).map(|verdict| verdict.into_leak(&line)))
        .collect();
    list.sort_by_key(|(kept, leak)| (Reverse(leak.confidence), Reverse(*kept), leak.frame));
    Leaks::Ranked(list.into_iter().map(|(_, leak)| leak).collect())
}
