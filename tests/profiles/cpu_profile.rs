//! Tests of CPU profiles on real threads.
#![cfg(all(heapray_native, target_env = "gnu"))]

use std::hint::black_box;
use std::time::Duration;

use crate::cpu_samples::sampled;
use crate::support::turn;
use heapray::cpu_profile::{self, Function, SortBy, Stats};

/// Returns the CPU time that the calling thread has used.
fn cpu_time() -> Duration {
    Duration::from_nanos(heapray::capture::arch::thread_cpu_ns())
}

fn spin(turns: u64) -> u64 {
    (0..turns).fold(1, |sum, n| black_box(sum).wrapping_mul(31).wrapping_add(n))
}

#[inline(never)]
fn burns(for_so_long: Duration) -> u64 {
    let end = cpu_time() + for_so_long;
    let mut sum = 0;
    while cpu_time() < end {
        sum ^= spin(20_000);
    }
    sum
}

#[inline(never)]
fn also_burns(for_so_long: Duration) -> u64 {
    burns(for_so_long).wrapping_add(black_box(1))
}

#[inline(never)]
fn sleeps() {
    std::thread::sleep(Duration::from_millis(60));
    black_box(());
}

fn find<'s>(stats: &'s Stats, name: &str) -> Option<&'s Function> {
    stats.functions().find(|function| {
        let last = function.name.rsplit("::").next().unwrap();
        last == name
    })
}

/// Returns the share of the samples with the function on their stacks.
fn share(stats: &Stats, name: &str) -> f64 {
    let samples = find(stats, name).map_or(0, |function| function.cumulative.samples);
    samples as f64 / stats.total().samples.max(1) as f64
}

#[test]
fn the_function_that_burns_has_the_samples_and_the_one_that_sleeps_has_none() {
    let _turn = turn();
    let profile = |time| {
        let (sum, stats) = cpu_profile::run(|| {
            sleeps();
            burns(time)
        });
        black_box(sum);
        stats
    };
    let stats = sampled(profile, |stats| {
        stats.total().samples >= 30 || stats.error().is_some()
    });
    assert_eq!(stats.error(), None);
    assert!(share(&stats, "burns") > 0.9, "{stats}");
    assert!(share(&stats, "sleeps") < 0.05, "{stats}");
    let burns = find(&stats, "burns").unwrap();
    assert!(burns.file.ends_with("tests/profiles/cpu_profile.rs"));
    assert!(share(&stats, "spin") > 0.5, "{stats}");
    // The samples account for all CPU time up to the last sample.
    let (sampled, used) = (stats.total().ns, stats.cpu_time().as_nanos() as u64);
    assert!(sampled <= used && sampled * 2 > used, "{sampled} of {used}");
}

#[test]
fn a_stack_begins_with_the_function_that_started_the_profile() {
    let _turn = turn();
    #[inline(never)]
    fn profiled(time: Duration) -> Stats {
        let profile = cpu_profile::start();
        black_box(burns(time));
        profile.finish()
    }
    let stats = sampled(profiled, |stats| stats.total().samples > 0).sort_by(SortBy::Cumulative);
    let first = stats.functions().next().unwrap();
    let outermost = find(&stats, "profiled").unwrap();
    assert_eq!(outermost.cumulative, first.cumulative, "{stats}");
    assert!(find(&stats, "lang_start").is_none() && find(&stats, "clone3").is_none());
    let burns = find(&stats, "burns").unwrap();
    let callers = burns.callers.iter();
    let callers: Vec<_> = callers
        .map(|caller| stats.function(caller.function).unwrap().name.clone())
        .collect();
    assert!(
        callers.iter().all(|name| name.ends_with("profiled")),
        "{callers:?}"
    );
}

#[test]
fn threads_are_profiled_at_once_and_do_not_mix() {
    let _turn = turn();
    let at_once = |time| {
        std::thread::scope(|scope| {
            let one = scope.spawn(move || cpu_profile::run(|| burns(time)).1);
            let two = scope.spawn(move || cpu_profile::run(|| also_burns(time)).1);
            let bystander = scope.spawn(move || burns(time));
            let both = [one.join().unwrap(), two.join().unwrap()];
            black_box(bystander.join().unwrap());
            for stats in &both {
                let used = stats.cpu_time();
                assert!(used >= time && used < time * 3 / 2);
            }
            both
        })
    };
    let enough = |both: &[Stats; 2]| both.iter().all(|stats| stats.total().samples > 0);
    let [one, two] = sampled(at_once, enough);
    assert!(find(&one, "also_burns").is_none(), "{one}");
    assert!(share(&two, "also_burns") > 0.9, "{two}");
}

#[test]
fn recursion_counts_once() {
    let _turn = turn();
    #[inline(never)]
    fn recurses(depth: u32, time: Duration) -> u64 {
        let below = match depth {
            0 => burns(time),
            depth => recurses(depth - 1, time),
        };
        below.wrapping_add(black_box(1))
    }
    let profile = |time| cpu_profile::run(|| recurses(40, time)).1;
    let stats = sampled(profile, |stats| stats.total().samples > 0);
    let recursive = find(&stats, "recurses").unwrap();
    assert!(recursive.cumulative.samples <= stats.total().samples);
    assert!(recursive.cumulative.ns <= stats.total().ns);
    assert!(share(&stats, "recurses") > 0.9, "{stats}");
}

#[test]
fn a_future_is_sampled_while_it_is_polled() {
    let _turn = turn();
    async fn task(part: Duration) -> u64 {
        let mut sum = 0;
        for _ in 0..60 {
            sum ^= burns(part);
            tokio::task::yield_now().await;
        }
        sum
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let profile = |time: Duration| {
        let part = time / 60;
        let stats = runtime.block_on(async {
            let other = tokio::spawn(async move {
                for _ in 0..60 {
                    black_box(also_burns(part));
                    tokio::task::yield_now().await;
                }
            });
            let (_, stats) = cpu_profile::run_async(task(part)).await;
            other.await.unwrap();
            stats
        });
        let used = stats.cpu_time();
        assert!(used >= part * 60 && used < time * 3 / 2, "{used:?}");
        stats
    };
    // With few samples, one outside of the function is a large share.
    let stats = sampled(profile, |stats| stats.total().samples >= 10);
    assert!(find(&stats, "also_burns").is_none(), "{stats}");
    assert!(share(&stats, "burns") > 0.8, "{stats}");
}
