//! A C++ library that allocates from eight threads of its own.

use std::hint::black_box;

use crate::measure::{Result, Stretch, resident};
use crate::options::Options;
use crate::profiler::Profiler;

unsafe extern "C" {
    /// `cpp/index.cpp`.
    fn heapray_bench_index(threads: u32, words: u32) -> u64;
}

/// Runs the library.
pub(crate) fn run(options: &Options, profiler: &mut dyn Profiler) -> Result<()> {
    let threads = options.number("threads", 8)? as u32;
    let words = options.number("words", 200_000)? as u32;
    let stretch = Stretch::begin();
    // SAFETY: it takes two numbers, gives one, and all its threads have ended when it returns.
    black_box(unsafe { heapray_bench_index(threads, words) });
    stretch.end(profiler);
    println!("words={}", u64::from(threads) * u64::from(words));
    println!("rss_most={}", resident(std::process::id())?.most);
    Ok(())
}
