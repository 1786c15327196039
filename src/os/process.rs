//! System calls about this process. Never in a hook: `local_time` takes a lock.

use std::ffi::CStr;
use std::io;
use std::sync::OnceLock;
#[cfg(feature = "push")]
use std::time::Duration;

/// Returns whether the process has children, running or not waited for; true where the system does not tell. Code that waits
/// for them is not disturbed.
#[must_use]
pub(crate) fn has_children() -> bool {
    #[cfg(target_os = "linux")]
    const ALL: libc::c_int = libc::__WALL;
    #[cfg(not(target_os = "linux"))]
    const ALL: libc::c_int = 0;
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | ALL;
    // SAFETY: a `siginfo_t` may be all zeros, and is live for the call, which writes nothing else. WNOWAIT leaves a
    // child that has ended to its owner.
    let asked = unsafe {
        let mut info: libc::siginfo_t = core::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, how)
    };
    asked == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ECHILD)
}

/// Returns year, month (1 to 12), day, hour, minute and second, in the local time zone, `seconds` after the Unix epoch.
/// Returns `None` for a year outside of the calendar.
#[must_use]
pub(crate) fn local_time(seconds: i64) -> Option<[i32; 6]> {
    let time = libc::time_t::from(seconds);
    // SAFETY: a `tm` may be all zeros; both places are live for the call. It reads `TZ`, which a program may change only
    // while no other thread reads the environment (`std::env::set_var`).
    let broken = unsafe {
        let mut broken: libc::tm = core::mem::zeroed();
        let filled = libc::localtime_r(&raw const time, &raw mut broken);
        (!filled.is_null()).then_some(broken)
    }?;
    Some([
        broken.tm_year.checked_add(1900)?,
        broken.tm_mon + 1,
        broken.tm_mday,
        broken.tm_hour,
        broken.tm_min,
        broken.tm_sec,
    ])
}

/// Returns the name of the machine, or of the container that the process runs in. Returns an empty text if the system does
/// not say.
#[must_use]
pub(crate) fn host() -> String {
    // Longer than any name that Linux or POSIX allows (64 and 255 bytes).
    let mut name = [0_u8; 257];
    // SAFETY: the buffer is live for the call, which writes at most the length that it is told. The last byte stays 0.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    if failed {
        return String::new();
    }
    name.to_string_lossy().into_owned()
}

/// Returns the CPU time of all children that have ended and were waited for, and of their own children.
#[cfg(feature = "push")]
pub(crate) fn children_cpu_time() -> Duration {
    // SAFETY: an `rusage` may be all zeros, and is live for the call, which writes nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let time = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let micros = u64::try_from(time.tv_usec).unwrap_or(0);
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Returns the bytes of a page.
pub(crate) fn page_size() -> u64 {
    static SIZE: OnceLock<u64> = OnceLock::new();
    // SAFETY: no precondition.
    *SIZE.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 })
}

/// Checks whether a thread can be started. The standard library aborts the process if a new thread may not map and protect
/// the stack on which it handles signals.
///
/// # Errors
/// The system call that is refused.
pub(crate) fn check_thread_start() -> io::Result<()> {
    let (size, page) = (16 * page_size() as usize, page_size() as usize);
    // SAFETY: a new mapping, which is this function's own until it is given back.
    unsafe {
        let stack = libc::mmap(
            core::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if stack == libc::MAP_FAILED {
            return Err(refused("mmap", &io::Error::last_os_error()));
        }
        let is_refused = libc::mprotect(stack, page, libc::PROT_NONE) != 0;
        let error = io::Error::last_os_error();
        libc::munmap(stack, size);
        if is_refused {
            return Err(refused("mprotect", &error));
        }
    }
    Ok(())
}

fn refused(call: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "no thread can be started, since the system refuses {call} ({error}): allow it in the process's seccomp filter"
    ))
}

/// Returns whether the process may map less memory than the machine could give it.
#[must_use]
pub(crate) fn memory_is_limited() -> bool {
    mapping_limits().iter().any(Option::is_some)
}

/// Returns how many bytes the process may map (`RLIMIT_AS`), and how many bytes of data (`RLIMIT_DATA`), or `None` if there
/// is no limit.
#[must_use]
pub(crate) fn mapping_limits() -> [Option<u64>; 2] {
    [libc::RLIMIT_AS, libc::RLIMIT_DATA].map(|limit| {
        let mut found = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: a limit that exists and a live place for it.
        unsafe { libc::getrlimit(limit, &raw mut found) };
        (found.rlim_cur != libc::RLIM_INFINITY).then_some(found.rlim_cur)
    })
}

/// Returns whether the process's thread `tid` works, or needs nothing but a processor to do so. Otherwise it waits, for a disk
/// or a lock. Returns `None` where the system does not tell.
pub(crate) fn thread_runs(tid: u32) -> Option<bool> {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).ok()?;
    Some(stat_fields(&stat)?.next()? == "R")
}

/// Returns the fields of a `/proc/…/stat` from the third on, which is the state (proc_pid_stat(5)). The name before it, in
/// parentheses, may have blanks and parentheses itself.
pub(crate) fn stat_fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split(' '))
}

/// Has `last` called when the process exits by `exit` or at the end of `main`. Returns false if the system has no place
/// left.
pub(crate) fn at_exit(last: extern "C" fn()) -> bool {
    // SAFETY: a function that may be called at any time; this library is part of the program and is not unloaded before.
    unsafe { libc::atexit(last) == 0 }
}

/// Ends the process at once, without destructors or exit handlers, which may need memory that is used up.
pub(crate) fn exit_at_once(code: i32) -> ! {
    // SAFETY: no precondition.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_that_waits_does_not_run() {
        let own = crate::capture::arch::gettid();
        assert_eq!(thread_runs(own), Some(true));
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel::<()>();
            let other = scope.spawn(move || {
                let waits = || thread_runs(own) == Some(false);
                while !waits() {
                    std::thread::yield_now();
                }
                drop(tell);
            });
            told.recv().unwrap_err();
            other.join().unwrap();
        });
        assert_eq!(thread_runs(0), None);
    }

    #[test]
    fn a_child_is_known_until_it_was_waited_for() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        // `has_children` does not reap the child.
        for _ in 0..3 {
            assert!(has_children());
        }
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn local_time_is_no_more_than_a_day_from_universal_time() {
        // 2026-11-21T12:00:00Z
        let [year, month, day, hour, minute, second] = local_time(1_795_262_400).unwrap();
        assert_eq!((year, month), (2026, 11));
        assert!((20..=22).contains(&day) && (0..24).contains(&hour));
        assert!((0..60).contains(&minute) && second == 0);
        assert_eq!(local_time(i64::MAX), None);
    }
}
