//! Measures the cost of profiling single functions: `profile_cost MODE ROUNDS`, to be counted from outside (`perf stat -e
//! instructions:u`, `valgrind --tool=callgrind`, `time`). It prints only CPU time per round.
//!
//! | mode | a round |
//! |---|---|
//! | `plain`, `sampled` | 10 ms of arithmetic, in a function without and with the sampler |
//! | `empty`, `enabled_false`, `profile` | a call of an empty function: plain, with `enable = false` at run time, profiled |
//! | `task_off`, `task_on` | 1000 tasks, while nothing is profiled and while a parallel profile is |
#![allow(clippy::print_stdout)]

use std::hint::black_box;

fn work() -> u64 {
    (0..4_000_000u64).fold(1, |sum, n| black_box(sum).wrapping_mul(31).wrapping_add(n))
}

#[inline(never)]
fn empty(n: u64) -> u64 {
    black_box(n)
}

#[heapray::single_thread_profiler(enable = black_box(false))]
fn disabled(n: u64) -> u64 {
    empty(n)
}

fn tasks() -> u64 {
    for n in 0..1000 {
        let _task = heapray::parallel_profile::task("a task");
        black_box(n);
    }
    0
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let rounds: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100);
    let before = heapray::capture::arch::thread_cpu_ns();
    let loop_of = |f: &dyn Fn(u64) -> u64| {
        for n in 0..rounds {
            black_box(f(n));
        }
    };
    match mode.as_str() {
        "plain" => loop_of(&|_| work()),
        "sampled" => {
            let profile = heapray::cpu_profile::start();
            loop_of(&|_| work());
            let used = heapray::capture::arch::thread_cpu_ns() - before;
            println!("{mode}: {} ns of CPU time a round", used / rounds);
            println!("{} samples", profile.finish().total().samples);
            return;
        }
        "empty" => loop_of(&|n| empty(n)),
        "enabled_false" => loop_of(&|n| disabled(n)),
        "profile" => loop_of(&|n| heapray::cpu_profile::run(|| empty(n)).0),
        "task_off" => loop_of(&|_| tasks()),
        "task_on" => {
            let profile = heapray::parallel_profile::builder("tasks")
                .report_name(std::env::temp_dir().join("heapray-profile-cost.html"))
                .start();
            loop_of(&|_| tasks());
            let used = heapray::capture::arch::thread_cpu_ns() - before;
            println!("{mode}: {} ns of CPU time a round", used / rounds);
            drop(profile);
            return;
        }
        _ => return println!("modes: plain sampled empty enabled_false profile task_off task_on"),
    }
    let used = heapray::capture::arch::thread_cpu_ns() - before;
    println!("{mode}: {} ns of CPU time a round", used / rounds);
}
