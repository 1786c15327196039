//! Executes the steps of a program on real threads, at the times that they name.
//!
//! Whatever this module needs for itself is allocated before the first step and never grows, so that a profiler finds
//! no leak but the program's own.

use crate::schedule::{Batch, batches};
use leak_programs::sites::{obtain, release};
use leak_programs::{Operation, Program, Step};
use std::ptr::{NonNull, null_mut};
use std::sync::Barrier;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The live blocks by key: null where a block is not live. The barrier between two batches orders what different
/// threads do with one entry.
type Blocks = [AtomicPtr<u8>];

/// Executes `program` so that it takes `real` time, and leaves its live blocks to the end of the process.
pub(crate) fn run(program: &Program, real: Duration) {
    let steps: Vec<Step> = program.steps().collect();
    let count = steps
        .iter()
        .map(|step| step.operation.block() as usize + 1)
        .max()
        .unwrap_or(0);
    let blocks: Vec<AtomicPtr<u8>> = (0..count).map(|_| AtomicPtr::new(null_mut())).collect();
    let batches = batches(&steps, count);
    let real_per_virtual = real.as_secs_f64() / program.duration_ms() as f64;
    // One more than the threads: this one, which says when a batch begins.
    let barrier = Barrier::new(usize::from(program.threads()) + 1);

    thread::scope(|scope| {
        for number in 0..program.threads() {
            let (steps, batches, blocks, barrier) = (&steps, &batches, &blocks, &barrier);
            thread::Builder::new()
                .name(format!("service-{number}"))
                .spawn_scoped(scope, move || {
                    serve(number, steps, batches, blocks, barrier)
                })
                .unwrap_or_else(|error| {
                    // The threads that did start wait at the barrier for this one.
                    eprintln!("cannot start thread {number}: {error}");
                    std::process::exit(1)
                });
        }
        let started = Instant::now();
        let sleep_until = |virtual_ms: u64| {
            let due = Duration::from_secs_f64(virtual_ms as f64 * real_per_virtual);
            thread::sleep(due.saturating_sub(started.elapsed()));
        };
        for batch in &batches {
            sleep_until(batch.starts_ms);
            barrier.wait();
        }
        sleep_until(program.duration_ms());
    });
}

/// Executes the steps of one thread.
fn serve(number: u8, steps: &[Step], batches: &[Batch], blocks: &Blocks, barrier: &Barrier) {
    for batch in batches {
        barrier.wait();
        for step in &steps[batch.steps.clone()] {
            if step.thread == number {
                execute(&step.operation, blocks);
            }
        }
    }
}

fn execute(operation: &Operation, blocks: &Blocks) {
    let entry = &blocks[operation.block() as usize];
    let block = entry.swap(null_mut(), Relaxed);
    match *operation {
        Operation::Allocate { site, bytes, .. } | Operation::Resize { site, bytes, .. } => {
            // SAFETY: what the table holds came from `obtain`. The entry is taken out of the table before the block is
            // resized or freed, so that nobody can do either a second time.
            let Some(block) = (unsafe { obtain(site, block, bytes as usize) }) else {
                eprintln!(
                    "no memory for {bytes} bytes at {}: give the process more",
                    site.name()
                );
                std::process::abort();
            };
            entry.store(block.as_ptr(), Relaxed);
        }
        Operation::Free { .. } => {
            if let Some(block) = NonNull::new(block) {
                // SAFETY: as above: the block came from `obtain`, and its entry is empty now.
                unsafe { release(block) };
            }
        }
    }
}
