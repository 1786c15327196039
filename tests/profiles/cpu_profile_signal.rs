//! Tests of the program's own handler of `SIGPROF`: it gets the program's own signals, and it is back after the last
//! profile. A thread that blocks the signal is sampled nevertheless. Handlers belong to the process, so the test has one of
//! its own.
#![cfg(all(heapray_native, target_env = "gnu"))]

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::cpu_samples::sampled;
use crate::support::process::{in_own_process, test_name};
use heapray::cpu_profile;

static OWN: AtomicU32 = AtomicU32::new(0);

extern "C" fn own_handler(_: i32) {
    OWN.fetch_add(1, Ordering::Relaxed);
}

fn handler() -> usize {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call only reads the handler into a live variable.
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

/// Blocks or unblocks the signal on this thread. Returns whether it was blocked before.
fn mask(how: i32) -> bool {
    // SAFETY: signal sets may be all zeros, and both live until the calls return.
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

#[test]
fn foreign_signals_go_to_the_programs_handler_which_is_restored_afterwards() {
    in_own_process(test_name!(), foreign_signals);
}

fn foreign_signals() {
    let own = own_handler as extern "C" fn(i32) as usize;
    // SAFETY: a handler of the right type.
    unsafe { libc::signal(libc::SIGPROF, own) };

    let in_both = |time| {
        let raised = OWN.load(Ordering::Relaxed);
        let outer = cpu_profile::start();
        assert_ne!(handler(), own);
        let (_, inner) = cpu_profile::run(|| {
            raise();
            black_box(burns(time));
            raise();
        });
        assert_ne!(handler(), own, "one profile still runs");
        let both = outer.finish().total().samples > 0 && inner.total().samples > 0;
        assert_eq!(
            OWN.load(Ordering::Relaxed) - raised,
            2,
            "the handler gets the program's own signals, and not the timers'"
        );
        assert_eq!(handler(), own);
        raise();
        assert_eq!(OWN.load(Ordering::Relaxed) - raised, 3);
        both
    };
    sampled(in_both, |&both| both);

    mask(libc::SIG_BLOCK);
    let blocked = |time| {
        let (_, stats) = cpu_profile::run(|| black_box(burns(time)));
        assert!(mask(libc::SIG_BLOCK), "the signal is blocked again");
        stats.total().samples > 0
    };
    sampled(blocked, |&has_samples| has_samples);
}
