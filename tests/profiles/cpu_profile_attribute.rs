//! Tests that the attribute does not change a function's behaviour, and that its profile is reported in every case.
#![cfg(all(feature = "macros", heapray_native, target_env = "gnu"))]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::cpu_samples::sampled;
use crate::support::turn;
use heapray::cpu_profile::Stats;

static GIVEN: Mutex<Vec<(&str, Stats)>> = Mutex::new(Vec::new());

fn taken(of: &str) -> Vec<Stats> {
    let given = GIVEN.lock().unwrap();
    let of_this = given.iter().filter(|(name, _)| *name == of);
    of_this.map(|(_, stats)| stats.clone()).collect()
}

macro_rules! keep {
    ($name:literal) => {
        |stats| GIVEN.lock().unwrap().push(($name, stats))
    };
}

/// CPU time that [`burns`] uses, in milliseconds.
static BURNS_FOR: AtomicU64 = AtomicU64::new(0);

/// Calls `run`, which calls [`burns`] and reports the profile as `of`, until that has samples. Returns it.
fn sampled_in(of: &str, run: impl Fn()) -> Stats {
    sampled(
        |cpu| {
            BURNS_FOR.store(cpu.as_millis() as u64, Relaxed);
            let before = taken(of).len();
            run();
            let reported = taken(of);
            assert_eq!(reported.len(), before + 1);
            reported[before].clone()
        },
        |stats| has(stats, "burns"),
    )
}

fn burns() -> u64 {
    let now = || Duration::from_nanos(heapray::capture::arch::thread_cpu_ns());
    let end = now() + Duration::from_millis(BURNS_FOR.load(Relaxed));
    let mut sum = 0u64;
    while now() < end {
        sum = (0..20_000u64).fold(sum, |sum, n| black_box(sum).wrapping_add(n));
    }
    sum
}

fn has(stats: &Stats, name: &str) -> bool {
    stats
        .functions()
        .any(|function| function.name.contains(name))
}

fn report() -> PathBuf {
    std::env::temp_dir().join(format!("heapray-attribute-{}.pstats", std::process::id()))
}

#[heapray::single_thread_profiler(report_name = report(), print = false, strip_dirs = true, limit = 5, sort_by = "tottime")]
fn fallible(fails: bool) -> Result<u64, String> {
    let sum = burns();
    if fails {
        Err("it failed")?;
    }
    Ok(sum)
}

struct Owner {
    text: String,
}

impl Owner {
    #[heapray::single_thread_profiler(callback = keep!("borrows"))]
    fn borrows<'o>(&'o mut self, more: &str) -> &'o str {
        black_box(burns());
        self.text.push_str(more);
        &self.text
    }

    #[heapray::single_thread_profiler(callback = keep!("waits"), interval_us = 500)]
    async fn waits<T: Into<String>>(&mut self, more: T) -> Result<usize, std::num::ParseIntError> {
        black_box(burns());
        tokio::task::yield_now().await;
        self.text = more.into();
        let number = self.text.parse::<usize>()?;
        Ok(number)
    }
}

#[heapray::single_thread_profiler(callback = keep!("panics"))]
fn panics() -> u64 {
    black_box(burns());
    panic!("expected");
}

#[heapray::single_thread_profiler(enable = false)]
const fn would_be_an_error() {}

#[heapray::single_thread_profiler(enable = cfg!(not(test)) && burns() == 0, callback = keep!("switched"))]
fn switched_off() -> u8 {
    7
}

#[heapray::single_thread_profiler(callback = keep!("recursive"), print = false)]
fn recursive(depth: u32) -> u64 {
    match depth {
        0 => burns(),
        depth => recursive(depth - 1) ^ 1,
    }
}

#[test]
fn results_and_errors_are_the_functions_own_and_a_file_is_written_for_each() {
    let _turn = turn();
    for fails in [false, true] {
        let run = |cpu: Duration| {
            BURNS_FOR.store(cpu.as_millis() as u64, Relaxed);
            let _ = std::fs::remove_file(report());
            assert_eq!(fallible(fails).is_err(), fails);
            let bytes = std::fs::read(report()).unwrap();
            assert_eq!(bytes[0], b'{');
            bytes
        };
        sampled(run, |bytes| bytes.windows(5).any(|part| part == b"burns"));
    }
    std::fs::remove_file(report()).unwrap();
}

#[test]
fn borrows_generics_and_question_marks_work_as_without_the_attribute() {
    let _turn = turn();
    let owner = |text: &str| Owner {
        text: text.to_owned(),
    };
    sampled_in("borrows", || assert_eq!(owner("a").borrows("b"), "ab"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let waits = |more: &str| runtime.block_on(owner("").waits(more));
    sampled_in("waits", || assert_eq!(waits("12"), Ok(12)));
    sampled_in("waits", || assert!(waits("x").is_err()));
}

#[test]
fn a_panic_goes_on_and_the_profile_is_reported() {
    let _turn = turn();
    sampled_in("panics", || {
        std::panic::set_hook(Box::new(|_| {}));
        let caught = std::panic::catch_unwind(panics).unwrap_err();
        let _ = std::panic::take_hook();
        assert_eq!(caught.downcast_ref::<&str>(), Some(&"expected"));
    });
}

#[test]
fn a_future_that_is_dropped_half_way_is_reported_too() {
    let _turn = turn();
    #[heapray::single_thread_profiler(callback = keep!("dropped"))]
    async fn never() {
        black_box(burns());
        std::future::pending::<()>().await;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    sampled_in("dropped", || {
        let outcome = runtime
            .block_on(async { tokio::time::timeout(Duration::from_millis(1), never()).await });
        assert!(outcome.is_err());
    });
}

#[test]
fn a_function_with_the_attribute_switched_off_is_not_profiled() {
    let _turn = turn();
    would_be_an_error();
    assert_eq!(switched_off(), 7);
    assert!(taken("switched").is_empty());
}

#[test]
fn a_profiled_function_may_call_itself() {
    let _turn = turn();
    let run = |cpu: Duration| {
        BURNS_FOR.store(cpu.as_millis() as u64, Relaxed);
        let before = taken("recursive").len();
        black_box(recursive(3));
        taken("recursive").split_off(before)
    };
    let all = sampled(run, |all| all.iter().any(|stats| has(stats, "burns")));
    assert_eq!(all.len(), 4);
}
