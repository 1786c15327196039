//! Tests the temporary blocks of threads with one name: memray tells threads apart by number and must count the same blocks.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Barrier, mpsc};
use std::thread::{self, JoinHandle};

use crate::support::{Dir, tool, turn};
use heapray_report::Report;
use heapray_report::memray;
use heapray_report::model::{StackId, Tally};

const HANDED_OVER: u64 = 500;
const THREADS: u64 = 4;
const ROUNDS: u64 = 200;

fn worker(work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let named = thread::Builder::new().name("worker".into());
    named.spawn(work).unwrap()
}

#[inline(never)]
fn make_for_another(number: u64) -> Box<[u64; 32]> {
    black_box(Box::new([number; 32]))
}

#[inline(never)]
fn make_for_now(number: u64) -> Vec<u64> {
    black_box(vec![number; 100])
}

/// Starts a thread that makes blocks and a thread that frees each block before the next one is made.
fn hand_over() {
    let (to, from) = mpsc::sync_channel(0);
    let maker = worker(move || {
        for number in 0..HANDED_OVER {
            to.send(make_for_another(number)).unwrap();
        }
    });
    let taker = worker(move || {
        while let Ok(block) = from.recv() {
            drop(block);
        }
    });
    maker.join().unwrap();
    taker.join().unwrap();
}

/// Starts threads that each make a block at the same time, and then each free their own block.
fn work_at_once() {
    let barrier = Arc::new(Barrier::new(THREADS as usize));
    let work = || {
        let barrier = Arc::clone(&barrier);
        worker(move || {
            for number in 0..ROUNDS {
                let block = make_for_now(number);
                barrier.wait();
                drop(block);
                barrier.wait();
            }
        })
    };
    let all: Vec<_> = (0..THREADS).map(|_| work()).collect();
    for one in all {
        one.join().unwrap();
    }
}

/// Counts the temporary blocks below each of the two functions.
fn temporary(report: &Report) -> [u64; 2] {
    ["make_for_another", "make_for_now"].map(|function| {
        let mut sum = Tally::default();
        for site in &report.sites {
            let mut at: StackId = site.stack;
            while let Some(node) = report.stacks.node(at) {
                let frame = report.frames[node.frame.0 as usize];
                if report.strings.get(frame.function).contains(function) {
                    sum += site.temporary;
                    break;
                }
                at = node.parent;
            }
        }
        sum.count
    })
}

const COUNT: &str = "
import sys
from memray import FileReader
counts = [0, 0]
for record in FileReader(sys.argv[1]).get_temporary_allocation_records(merge_threads=True):
    functions = ' '.join(frame[0] for frame in record.stack_trace())
    for at, name in enumerate(['make_for_another', 'make_for_now']):
        counts[at] += record.n_allocations * (name in functions)
print(counts)
";

fn as_memray_counts(file: &Path) -> Option<String> {
    let output = Command::new(tool("python")?)
        .args(["-c", COUNT])
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn memray_counts_the_same_temporary_blocks_of_threads_with_one_name() {
    let _turn = turn();
    let dir = Dir::new("memray-threads");
    let builder = heapray::builder().ignore_environment().enabled(true);
    let profiler = builder.wait_for_start().dir(&dir.0).build().unwrap();
    profiler.start().unwrap();
    hand_over();
    work_at_once();
    profiler.stop().unwrap();
    // After this, nothing is written to the directory, which is removed.
    profiler.shutdown().unwrap();

    let file = dir.0.join("memray-report.bin");
    let read = memray::read_file(std::fs::File::open(&file).unwrap()).unwrap();
    let expected = [0, THREADS * ROUNDS];
    assert_eq!(temporary(&read.report), expected);
    // Counted again from the file's events.
    let events = memray::events_of_file(std::fs::File::open(&file).unwrap()).unwrap();
    let counted = heapray_report::views::temporary(&read.report, events, 1).unwrap();
    assert_eq!(temporary(&counted), expected);
    let Some(theirs) = as_memray_counts(&file) else {
        eprintln!("memray is not installed: see scripts/install-test-tools");
        return;
    };
    assert_eq!(theirs.trim(), format!("{expected:?}"));
}
