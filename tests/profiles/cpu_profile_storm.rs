//! Tests signals at any instruction of the allocator, of heapray's hook, and of the unwinder in it: nothing hangs, nothing
//! is lost, and the report of the allocations is right. The test has a process of its own, because all samples of the
//! process are counted.
#![cfg(all(heapray_native, target_env = "gnu"))]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::process::{in_own_process, test_name};
use heapray::cpu_profile;
use heapray::session::{Session, SessionOptions};

const SIGNALS: u64 = 100_000;

/// Sends thread `tid` the signal of a timer.
fn send(tid: i32, value: usize) {
    /// The kernel's `siginfo_t` of a timer's signal.
    #[repr(C)]
    struct Info {
        signal: i32,
        error: i32,
        code: i32,
        unused: i32,
        timer: i32,
        overrun: i32,
        value: usize,
        rest: [u64; 12],
    }
    let info = Info {
        signal: libc::SIGPROF,
        error: 0,
        code: libc::SI_TIMER,
        unused: 0,
        timer: 0,
        overrun: 0,
        value,
        rest: [0; 12],
    };
    // SAFETY: the kernel reads one structure of this layout, and the signal has a handler as long as a profile runs.
    unsafe {
        let pid = libc::getpid();
        libc::syscall(
            libc::SYS_rt_tgsigqueueinfo,
            pid,
            tid,
            libc::SIGPROF,
            &raw const info,
        );
    }
}

#[inline(never)]
fn storm(depth: u32, kept: &mut Vec<Box<[u8]>>) {
    if depth > 0 {
        storm(depth - 1, kept);
        black_box(&kept);
        return;
    }
    for size in 1..40usize {
        kept.push(vec![1; size * 24].into());
        let mut grows = vec![0u8; size];
        grows.reserve(size * 7);
        black_box(&grows);
    }
    kept.truncate(20);
}

#[test]
fn a_hundred_thousand_signals_in_a_storm_of_allocations() {
    in_own_process(test_name!(), signals_in_a_storm);
}

fn signals_in_a_storm() {
    let directory = std::env::temp_dir().join(format!("heapray-storm-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let session = Session::start(&SessionOptions {
        spool_dir: directory.clone(),
        log_limit: 1 << 20,
        overhead_limit: u64::MAX,
        sample: 0,
    })
    .unwrap();

    let done = AtomicBool::new(false);
    let profile = cpu_profile::start();
    let taken = profile.samples().unwrap();
    let value = profile.signal_value();
    // SAFETY: no argument, no failure.
    let tid = unsafe { libc::gettid() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // A pending signal is not queued a second time, so the samples are counted and not the calls.
            while taken.load(Ordering::Relaxed) < SIGNALS {
                send(tid, value);
                for _ in 0..100 {
                    std::hint::spin_loop();
                }
                std::thread::yield_now();
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut kept = Vec::new();
        let mut depth = 0;
        while !done.load(Ordering::Relaxed) {
            depth = (depth * 5 + 3) % 37;
            storm(depth, &mut kept);
        }
    });
    let stats = profile.finish();
    let snapshot = session.stop().unwrap();
    std::fs::remove_dir_all(directory).unwrap();

    let samples = stats.total().samples;
    assert!(samples >= SIGNALS, "{samples} samples");
    assert_eq!(stats.lost(), 0);
    let in_storm = stats
        .functions()
        .find(|f| f.name.ends_with("::storm"))
        .unwrap();
    assert!(
        in_storm.cumulative.samples * 10 > samples * 8,
        "{}",
        stats.top(30)
    );
    // On a busy machine the collector may fall behind. Lost events are counted, and no stack is broken.
    assert!(snapshot.totals.allocated.count > 0);
    assert_eq!(snapshot.stacks_incomplete, 0);
}
