//! Readings from a script instead of the system, and reports into a string instead of the output. For tests, on the calling
//! thread alone.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

struct Test {
    readings: VecDeque<u64>,
    last: u64,
    taken: Vec<(u32, u64)>,
    printed: String,
}

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
    static TEST: RefCell<Test> = const { RefCell::new(Test {
        readings: VecDeque::new(),
        last: 0,
        taken: Vec::new(),
        printed: String::new(),
    }) };
}

/// Result of a [`run`].
#[derive(Debug)]
pub struct Outcome<R> {
    /// The result of the work.
    pub result: R,
    /// All reports.
    pub printed: String,
    /// The readings that were taken from the script, each with the line that control left.
    pub readings: Vec<(u32, u64)>,
}

/// Does `work` on this thread with the `readings` (in bytes) one after the other. The last one repeats. Without any,
/// readings are real ones.
pub fn run<R>(readings: impl IntoIterator<Item = u64>, work: impl FnOnce() -> R) -> Outcome<R> {
    TEST.with_borrow_mut(|test| {
        test.readings = readings.into_iter().collect();
        test.last = 0;
        test.taken.clear();
        test.printed.clear();
    });
    RUNNING.set(true);
    let result = work();
    RUNNING.set(false);
    let (printed, readings) = TEST.with_borrow_mut(|test| {
        (
            std::mem::take(&mut test.printed),
            std::mem::take(&mut test.taken),
        )
    });
    Outcome {
        result,
        printed,
        readings,
    }
}

/// Returns the next reading of the script, if there is one.
#[inline]
pub(super) fn scripted(line: u32) -> Option<u64> {
    if RUNNING.try_with(Cell::get) != Ok(true) {
        return None;
    }
    TEST.with_borrow_mut(|test| {
        test.last = match test.readings.pop_front() {
            Some(reading) => reading,
            None if test.taken.is_empty() => return None,
            None => test.last,
        };
        test.taken.push((line, test.last));
        Some(test.last)
    })
}

/// Takes a report, if the thread runs a test. Returns whether it did.
pub(super) fn captures(text: &str) -> bool {
    let runs = RUNNING.try_with(Cell::get) == Ok(true);
    if runs {
        TEST.with_borrow_mut(|test| test.printed.push_str(text));
    }
    runs
}
