//! The signal handler, which is installed as long as a thread is sampled. All but [`on_signal`] is ordinary code that locks.
//!
//! `SIGPROF`, which debuggers ignore, is also used by other profilers. A signal that is not from a timer of ours goes to the
//! handler that was there before. That handler is restored with the last sampler, unless the program has replaced ours
//! meanwhile; then ours stays in that chain and passes everything on.

use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::CpuError;
use super::slot::Slot;

/// The signal that timers send.
pub(super) const SIGNAL: c_int = libc::SIGPROF;

/// Number of samplers.
static USERS: Mutex<usize> = Mutex::new(0);

/// The handler that was there before, and its flags.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static BEFORE_FLAGS: AtomicI32 = AtomicI32::new(0);

/// Guard that keeps the handler installed.
#[derive(Debug)]
pub(super) struct Installed;

fn users() -> MutexGuard<'static, usize> {
    // A panic cannot leave a number half changed.
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Installed {
    /// Installs the handler, if it is not installed yet.
    pub(super) fn new() -> Result<Installed, CpuError> {
        let mut users = users();
        let before = current()?;
        if before.sa_sigaction != on_signal as *const () as usize {
            BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
            BEFORE_FLAGS.store(before.sa_flags, Ordering::Release);
            // SAFETY: integers and a mask, of which all zeros is the empty one.
            let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
            action.sa_sigaction = on_signal as *const () as usize;
            // The kernel restarts interrupted system calls where possible. No SA_ONSTACK: signal stacks are small, and made
            // for the case that a thread's own stack is full.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            set(&action)?;
        }
        *users += 1;
        Ok(Installed)
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let mut users = users();
        *users -= 1;
        let is_ours =
            current().is_ok_and(|now| now.sa_sigaction == on_signal as *const () as usize);
        if *users > 0 || !is_ours {
            return;
        }
        // SAFETY: integers and a mask, of which all zeros is the empty one.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        // Signals of deleted timers may still be on their way to other threads, and the default action would end the
        // process. Ignoring the signal discards them (POSIX, 2.4.3).
        action.sa_sigaction = libc::SIG_IGN;
        let _ = set(&action);
        action.sa_sigaction = BEFORE.load(Ordering::Relaxed);
        action.sa_flags = BEFORE_FLAGS.load(Ordering::Relaxed);
        let _ = set(&action);
    }
}

fn current() -> Result<libc::sigaction, CpuError> {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks only; the result goes to a live place, for which all zeros would be valid too.
    let answer = unsafe { libc::sigaction(SIGNAL, null_mut(), now.as_mut_ptr()) };
    if answer != 0 {
        return Err(CpuError::System(libc::EINVAL));
    }
    // SAFETY: written, or zeroed.
    Ok(unsafe { now.assume_init() })
}

fn set(action: &libc::sigaction) -> Result<(), CpuError> {
    // SAFETY: the action is live; its handler is `on_signal`, which is made for a handler, one that was there before, or
    // one of the system's.
    match unsafe { libc::sigaction(SIGNAL, action, null_mut()) } {
        0 => Ok(()),
        _ => Err(CpuError::System(libc::EINVAL)),
    }
}

/// Handles the signal. It neither locks nor allocates nor touches a thread-local.
extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: `SA_SIGINFO` promises a structure for which `si_code` says what is in it.
    let (code, value) = unsafe { ((*info).si_code, (*info).si_value().sival_ptr as usize) };
    let slot = (code == libc::SI_TIMER).then(|| Slot::at(value)).flatten();
    match slot {
        // SAFETY: the handler's own context.
        Some(slot) => unsafe { slot.on_signal(context) },
        None => pass_on(signal, info, context),
    }
}

/// Does with a signal that is not ours what would have been done without us.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let flags = BEFORE_FLAGS.load(Ordering::Acquire);
    match BEFORE.load(Ordering::Relaxed) {
        libc::SIG_IGN => {}
        libc::SIG_DFL => {
            // SAFETY: both are async-signal-safe. The signal is blocked here; it comes again, to its default action,
            // when the handler returns.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
        before if flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with this flag, the handler was installed as a function of this type.
            let before: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { transmute(before) };
            before(signal, info, context);
        }
        before => {
            // SAFETY: without the flag, it was installed as a function of this type.
            let before: extern "C" fn(c_int) = unsafe { transmute(before) };
            before(signal);
        }
    }
}
