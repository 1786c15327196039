//! Sums over the calls of one function: `sum = true`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::calls::Ended;
use super::function::Function;
use super::lines::{Lines, Row, difference};
use super::{output, report};
use crate::capture::untracked;
use crate::os::process;
use crate::profiler::print_at_shutdown;

/// Sums of a function.
#[derive(Debug)]
pub(super) struct Sums {
    rows: Vec<Row>,
    calls: u64,
    panicked: u64,
    dropped: u64,
    allocations: bool,
    /// The first note of all calls.
    note: Option<&'static str>,
    listed: bool,
}

impl Sums {
    pub(super) const fn new() -> Sums {
        Sums {
            rows: Vec::new(),
            calls: 0,
            panicked: 0,
            dropped: 0,
            allocations: false,
            note: None,
            listed: false,
        }
    }
}

/// Functions with something to print, in the order of their first calls.
static FUNCTIONS: Mutex<Vec<&Function>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a call.
pub(super) fn add(
    function: &'static Function,
    lines: &Lines,
    allocations: bool,
    note: Option<&'static str>,
    ended: Ended,
) {
    let mut sums = lock(&function.sums);
    sums.rows.resize(lines.rows().len(), Row::default());
    for (sum, row) in sums.rows.iter_mut().zip(lines.rows()) {
        sum.add(row);
    }
    if sums.calls > 0 {
        // The memory at the beginning of a later call is not an increment: it is in the sum already.
        sums.rows[0].increment -= difference(lines.entry(), 0);
    }
    sums.calls += 1;
    sums.panicked += u64::from(ended == Ended::Panicked);
    sums.dropped += u64::from(ended == Ended::Dropped);
    sums.allocations |= allocations;
    sums.note = sums.note.or(note);
    if !std::mem::replace(&mut sums.listed, true) {
        drop(sums);
        lock(&FUNCTIONS).push(function);
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| {
            OWNER.store(std::process::id(), Ordering::Relaxed);
            print_at_shutdown(print_profiles);
            // If the system refuses, `print_profiles` and `shutdown` still print.
            let _: bool = process::at_exit(print_at_exit);
        });
    }
}

/// The process that prints at its exit. Its forked children must not print its calls.
static OWNER: AtomicU32 = AtomicU32::new(0);

extern "C" fn print_at_exit() {
    if OWNER.load(Ordering::Relaxed) == std::process::id() {
        print_profiles();
    }
}

/// Prints the tables of the functions with `#[heapray::profile(sum = true)]`, since the program began or since the last
/// print: one table each, in the order of their first calls.
///
/// Called by [`shutdown`](crate::shutdown) and when the process exits. Tables without a call are left out.
pub fn print_profiles() {
    let _untracked = untracked::enter();
    let functions = std::mem::take(&mut *lock(&FUNCTIONS));
    for function in functions {
        let Sums {
            rows,
            calls,
            panicked,
            dropped,
            allocations,
            note,
            listed: _,
        } = std::mem::replace(&mut *lock(&function.sums), Sums::new());
        let mut notes = vec![match calls {
            1 => "1 call".to_owned(),
            calls => format!("{calls} calls"),
        }];
        for (number, how) in [(panicked, "panicked"), (dropped, "dropped before the end")] {
            if number > 0 {
                notes[0].push_str(&format!(", {number} {how}"));
            }
        }
        notes.extend(note.map(str::to_owned));
        output::print(&report::full(function, &rows, allocations, &notes));
    }
}
