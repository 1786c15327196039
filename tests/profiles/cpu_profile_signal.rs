//! The program's own handler of `SIGPROF` gets what is its own, and is back when the last profile ends; a thread that
//! blocks the signal is sampled all the same. In a process of its own: handlers are the process's.
#![cfg(all(heapray_native, target_env = "gnu"))]

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::process::{in_own_process, test_name};
use heapray::cpu_profile;

static OWN: AtomicU32 = AtomicU32::new(0);

extern "C" fn own_handler(_: i32) {
    OWN.fetch_add(1, Ordering::Relaxed);
}

fn handler() -> usize {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks only; the result goes to a live place.
    unsafe {
        assert_eq!(
            libc::sigaction(libc::SIGPROF, null_mut(), now.as_mut_ptr()),
            0
        );
        now.assume_init().sa_sigaction
    }
}

fn raise() {
    // SAFETY: the signal has a handler.
    unsafe { libc::raise(libc::SIGPROF) };
}

/// Blocks or unblocks the signal on this thread: whether it was blocked.
fn mask(how: i32) -> bool {
    // SAFETY: signal sets may be all zeros; both are live for the calls.
    unsafe {
        let mut set: libc::sigset_t = MaybeUninit::zeroed().assume_init();
        let mut before: libc::sigset_t = MaybeUninit::zeroed().assume_init();
        libc::sigaddset(&raw mut set, libc::SIGPROF);
        libc::pthread_sigmask(how, &raw const set, &raw mut before);
        libc::sigismember(&raw const before, libc::SIGPROF) == 1
    }
}

fn burns(for_so_long: Duration) -> u64 {
    let now = || Duration::from_nanos(heapray::capture::arch::thread_cpu_ns());
    let end = now() + for_so_long;
    let mut sum = 0u64;
    while now() < end {
        sum = (0..20_000u64).fold(sum, |sum, n| black_box(sum).wrapping_add(n));
    }
    sum
}

/// Whether `profiles`, which is told how much CPU time to take, sees samples in all its profiles. Timers of CPU time strike
/// at the kernel's ticks, which a thread that is interrupted all the time seldom meets: then it is given more.
fn has_samples(profiles: impl Fn(Duration) -> bool) -> bool {
    (0..6).any(|longer| profiles(Duration::from_millis(250 << longer)))
}

#[test]
fn foreign_signals_go_to_the_handler_that_was_there_and_it_comes_back() {
    in_own_process(test_name!(), foreign_signals);
}

fn foreign_signals() {
    let own = own_handler as extern "C" fn(i32) as usize;
    // SAFETY: a handler of the right type.
    unsafe { libc::signal(libc::SIGPROF, own) };

    assert!(has_samples(|time| {
        let raised = OWN.load(Ordering::Relaxed);
        let outer = cpu_profile::start();
        assert_ne!(handler(), own);
        let (_, inner) = cpu_profile::run(|| {
            raise();
            black_box(burns(time));
            raise();
        });
        assert_ne!(handler(), own, "one profile is still under way");
        let both = outer.finish().total().samples > 0 && inner.total().samples > 0;
        assert_eq!(
            OWN.load(Ordering::Relaxed) - raised,
            2,
            "its own, and none of the timers'"
        );
        assert_eq!(handler(), own);
        raise();
        assert_eq!(OWN.load(Ordering::Relaxed) - raised, 3);
        both
    }));

    mask(libc::SIG_BLOCK);
    assert!(has_samples(|time| {
        let (_, stats) = cpu_profile::run(|| black_box(burns(time)));
        assert!(mask(libc::SIG_BLOCK), "blocked again");
        stats.total().samples > 0
    }));
}
