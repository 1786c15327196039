//! Tests that the attribute does not change a function's behaviour, and that its profile is reported in every case.
#![cfg(all(feature = "macros", heapray_native, target_env = "gnu"))]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

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

fn burns() -> u64 {
    let now = || Duration::from_nanos(heapray::capture::arch::thread_cpu_ns());
    let end = now() + Duration::from_millis(250);
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
        let _ = std::fs::remove_file(report());
        assert_eq!(fallible(fails).is_err(), fails);
        let bytes = std::fs::read(report()).unwrap();
        assert_eq!(bytes[0], b'{');
        assert!(bytes.windows(5).any(|part| part == b"burns"));
    }
    std::fs::remove_file(report()).unwrap();
}

#[test]
fn borrows_generics_and_question_marks_work_as_without_the_attribute() {
    let _turn = turn();
    let mut owner = Owner {
        text: "a".to_owned(),
    };
    assert_eq!(owner.borrows("b"), "ab");
    assert!(has(&taken("borrows")[0], "burns"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    assert_eq!(runtime.block_on(owner.waits("12")), Ok(12));
    assert!(runtime.block_on(owner.waits("x")).is_err());
    let waits = taken("waits");
    assert_eq!(waits.len(), 2);
    assert!(waits.iter().all(|stats| has(stats, "burns")));
}

#[test]
fn a_panic_goes_on_and_the_profile_is_reported() {
    let _turn = turn();
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(panics).unwrap_err();
    let _ = std::panic::take_hook();
    assert_eq!(caught.downcast_ref::<&str>(), Some(&"expected"));
    assert!(has(&taken("panics")[0], "burns"));
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
    let outcome =
        runtime.block_on(async { tokio::time::timeout(Duration::from_millis(1), never()).await });
    assert!(outcome.is_err());
    assert!(has(&taken("dropped")[0], "burns"));
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
    black_box(recursive(3));
    let all = taken("recursive");
    assert_eq!(all.len(), 4);
    assert!(all.iter().any(|stats| has(stats, "burns")));
}
