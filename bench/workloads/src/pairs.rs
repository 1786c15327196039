//! Pairs of `malloc` and `free`, one after the other, from about a thousand call stacks, on one thread or several.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::measure::{Result, Stretch, thread_cpu};
use crate::options::Options;
use crate::profiler::Profiler;
use crate::random::Random;
use crate::stacks;

/// Pairs between two readings of the clock.
const BATCH: u64 = 1024;
/// Pairs on one stack before a warm thread goes to another.
const RUN: u64 = 8;

/// Relation of a pair's call stack to that of the pair before.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Runs of eight on one stack; stacks differ in their innermost ten frames.
    Warm,
    /// Another one each time; stacks differ in their innermost ten frames.
    Cold,
    /// Another one each time, and it differs from its root on.
    Scattered,
}

/// Makes pairs. Prints their number, and the CPU time of the threads that made them.
pub(crate) fn run(options: &Options, profiler: &mut dyn Profiler) -> Result<()> {
    let shape = match options.text("shape") {
        None | Some("warm") => Shape::Warm,
        Some("cold") => Shape::Cold,
        Some("scattered") => Shape::Scattered,
        Some(other) => return Err(format!("{other} is not a shape").into()),
    };
    let depth = options.number("depth", 60)? as usize;
    let threads = options.number("threads", 1)?;
    let until = match options.number("count", 0)? {
        0 => Until::Time(Duration::from_millis(options.number("ms", 200)?)),
        count => Until::Count(count),
    };
    // Three meetings: all threads are warm; the clocks have been read; all have finished.
    let barrier = Barrier::new(threads as usize + 1);
    let (pairs, cpu) = thread::scope(|scope| -> Result<(u64, Duration)> {
        let running: Vec<_> = (0..threads)
            .map(|number| {
                let barrier = &barrier;
                scope.spawn(move || thread(shape, depth, number, until, barrier))
            })
            .collect();
        barrier.wait();
        let stretch = Stretch::begin();
        barrier.wait();
        barrier.wait();
        stretch.end(profiler);
        let (mut pairs, mut cpu) = (0, Duration::ZERO);
        for thread in running {
            let of_thread = thread.join().map_err(|_| "a thread panicked")?;
            pairs += of_thread.0;
            cpu += of_thread.1;
        }
        Ok((pairs, cpu))
    })?;
    println!("pairs={pairs}\nthread_cpu_ns={}", cpu.as_nanos());
    println!("warm_up_pairs={}", threads * stacks::STACKS);
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Until {
    /// CPU time of the thread, so that other load on the machine does not shorten the measurement.
    Time(Duration),
    Count(u64),
}

fn thread(
    shape: Shape,
    depth: usize,
    number: u64,
    until: Until,
    barrier: &Barrier,
) -> (u64, Duration) {
    let mut result = (0, Duration::ZERO);
    let mut random = Random::new(number + 1);
    let mut work = || {
        // Each stack once, so that the first capture of a stack is not measured.
        for stack in 0..stacks::STACKS {
            once(shape, depth, stack, 1, &mut random);
        }
        barrier.wait();
        barrier.wait();
        let before = thread_cpu();
        let pairs = measured(shape, depth, until, &mut random);
        result = (pairs, thread_cpu() - before);
        barrier.wait();
    };
    match shape {
        Shape::Scattered => work(),
        Shape::Warm | Shape::Cold => {
            stacks::trunk(depth.saturating_sub(stacks::BITS as usize), &mut work);
        }
    }
    result
}

/// Makes the measured pairs. A separate function, so that callgrind finds it by name.
#[inline(never)]
fn measured(shape: Shape, depth: usize, until: Until, random: &mut Random) -> u64 {
    let (start, mut pairs) = (thread_cpu(), 0);
    let run = if matches!(shape, Shape::Warm) { RUN } else { 1 };
    loop {
        for _ in 0..BATCH / run {
            let stack = random.below(stacks::STACKS);
            once(shape, depth, stack, run, random);
        }
        pairs += BATCH;
        let done = match until {
            Until::Time(time) => thread_cpu() - start >= time,
            Until::Count(count) => pairs >= count,
        };
        if done {
            return black_box(pairs);
        }
    }
}

#[inline(always)]
fn once(shape: Shape, depth: usize, stack: u64, run: u64, random: &mut Random) {
    let mut leaf = || {
        for _ in 0..run {
            stacks::pair(16 + random.below(1009) as usize);
        }
    };
    match shape {
        Shape::Warm | Shape::Cold => stacks::branch(stack, &mut leaf),
        Shape::Scattered => stacks::scatter(stack, depth, &mut leaf),
    }
}
