//! Threads that live for a few allocations.

use std::collections::VecDeque;
use std::thread;

use crate::measure::{Result, Stretch, resident};
use crate::options::Options;
use crate::profiler::Profiler;
use crate::stacks;

/// Number of threads that live at one time.
const AT_ONCE: usize = 8;
/// Number of pairs of each thread.
const PAIRS: usize = 16;

/// Starts and ends threads, one after the other.
pub(crate) fn run(options: &Options, profiler: &mut dyn Profiler) -> Result<()> {
    let count = options.number("count", 100_000)?;
    let mut running = VecDeque::with_capacity(AT_ONCE + 1);
    let stretch = Stretch::begin();
    for number in 0..count {
        running.push_back(thread::spawn(move || short_life(number)));
        if running.len() > AT_ONCE
            && let Some(oldest) = running.pop_front()
        {
            oldest.join().map_err(|_| "a thread panicked")?;
        }
    }
    for thread in running {
        thread.join().map_err(|_| "a thread panicked")?;
    }
    stretch.end(profiler);
    println!("threads={count}");
    println!("rss_most={}", resident(std::process::id())?.most);
    Ok(())
}

fn short_life(number: u64) {
    stacks::branch(number % stacks::STACKS, &mut || {
        for size in 1..=PAIRS {
            stacks::pair(32 * size);
        }
    });
}
