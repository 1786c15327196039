//! Tests time stamps from `CLOCK_MONOTONIC`, as on machines whose time stamp counter cannot be trusted: the figures are the
//! same, and the report names the clock. The clock is set for the whole process and cannot be changed back.

use std::hint::black_box;
use std::thread;

use crate::support::process::{in_own_process, test_name};
use crate::support::{record, tally};
use heapray::capture::clock;

#[test]
fn order_is_right_and_the_report_says_which_clock_was_used() {
    in_own_process(test_name!(), monotonic_stamps);
}

fn monotonic_stamps() {
    clock::use_monotonic();
    let snapshot = record("monotonic", || {
        for _ in 0..2000 {
            let block = black_box(vec![0_u8; 12_345]);
            thread::scope(|scope| scope.spawn(move || drop(block)).join().unwrap());
        }
    });
    let sites = snapshot
        .stacks
        .sites
        .iter()
        .filter(|site| site.allocated.bytes == 12_345 * site.allocated.count);
    let (mut allocated, mut live) = (tally(0, 0), tally(0, 0));
    for site in sites {
        allocated += site.allocated;
        live += site.live;
    }
    assert_eq!((allocated.count, live.count), (2000, 0));
    assert!(
        snapshot
            .notes
            .iter()
            .any(|note| note.contains("CLOCK_MONOTONIC")),
        "{:?}",
        snapshot.notes
    );
}
