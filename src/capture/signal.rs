//! `SIGUSR2`, counted for the collector. A handler that was there before is called as well.

use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use libc::{c_int, c_void, sigaction, siginfo_t};

use super::control;

static RECEIVED: AtomicU32 = AtomicU32::new(0);

/// Former action of `SIGUSR2`; null while our handler is not installed. Never freed, and never written to after it is set.
static BEFORE: AtomicPtr<sigaction> = AtomicPtr::new(ptr::null_mut());

/// Returns how often the signal was received. Wraps around.
#[must_use]
pub fn received() -> u32 {
    RECEIVED.load(Ordering::Relaxed)
}

/// Installs our handler in front of the former one, and returns whether it is installed. A second call does no harm.
pub fn handle() -> bool {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    static mut PLACE: mem::MaybeUninit<sigaction> = mem::MaybeUninit::uninit();
    if TAKEN.swap(true, Ordering::SeqCst) {
        return true;
    }
    let place = &raw mut PLACE;
    // SAFETY: `TAKEN` lets one thread in here, once, so nobody else writes to `PLACE`; it is published after it is
    // filled in, and never written again. An all-zero `sigaction` is valid. The handler is async-signal-safe, see there.
    unsafe {
        let before = place.cast::<sigaction>();
        before.write(mem::zeroed());
        if libc::sigaction(libc::SIGUSR2, ptr::null(), before) != 0 {
            return false;
        }
        BEFORE.store(before, Ordering::Release);
        let mut ours: sigaction = mem::zeroed();
        ours.sa_sigaction = on_signal as *const () as usize;
        // Interrupted system calls go on, and a signal stack is used if there is one.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        ours.sa_mask = (*before).sa_mask;
        libc::sigaction(libc::SIGUSR2, &raw const ours, ptr::null_mut()) == 0
    }
}

/// Async-signal-safe: it touches atomics, makes one futex call that does not change `errno`, and calls the service's former
/// handler, which must be async-signal-safe anyway.
extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    RECEIVED.fetch_add(1, Ordering::Relaxed);
    control::wake_collector();
    // SAFETY: null, or filled in for good before it was published.
    let Some(before) = (unsafe { BEFORE.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    // By default the signal would end the process, but the configuration asked for this signal.
    if before.sa_sigaction == libc::SIG_DFL || before.sa_sigaction == libc::SIG_IGN {
        return;
    }
    // SAFETY: the kernel had this address as the signal's handler, with the arguments that its flags say.
    unsafe {
        if before.sa_flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                mem::transmute(before.sa_sigaction);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(c_int) = mem::transmute(before.sa_sigaction);
            handler(signal);
        }
    }
}
