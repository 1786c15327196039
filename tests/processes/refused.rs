//! Tests of services that install a seccomp filter after `init`: a system call that is refused to the profiler must not harm
//! the service, and the profiler must report the consequences.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

use std::env;
use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::sync::Barrier;
use std::thread;

use crate::support::Dir;
use crate::support::process::{only, test_name};
use heapray::State;
use heapray::capture::sys;

const ROUNDS: u64 = 200;
const THREADS: usize = 3;
const SIZE: u64 = 7_777;

/// Length of a large mapping, at least.
const LARGE: u32 = 1 << 20;

/// A refused system call. With `longer`, only calls whose second argument is at least that are refused.
#[derive(Debug, Clone, Copy)]
struct Refused {
    name: &'static str,
    numbers: &'static [libc::c_long],
    longer: u32,
}

const fn refused(name: &'static str, numbers: &'static [libc::c_long]) -> Refused {
    Refused {
        name,
        numbers,
        longer: 0,
    }
}

const ALL: [Refused; 9] = [
    refused("membarrier", &[libc::SYS_membarrier]),
    refused("mprotect", &[libc::SYS_mprotect]),
    refused("madvise", &[libc::SYS_madvise]),
    Refused {
        name: "mmap",
        numbers: &[libc::SYS_mmap],
        longer: LARGE,
    },
    refused("clone", &[libc::SYS_clone, libc::SYS_clone3]),
    // No helper process can be started.
    refused("execve", &[libc::SYS_execve, libc::SYS_execveat]),
    refused("memfd", &[libc::SYS_memfd_create]),
    refused("openat", &[libc::SYS_openat]),
    refused("mremap", &[libc::SYS_mremap]),
];

/// Makes the kernel answer these calls with `error`, on every thread of the process.
fn refuse(what: Refused, error: u32) {
    let statement = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let (load, equal, at_least, answer) = (
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16,
        (libc::BPF_RET | libc::BPF_K) as u16,
    );
    let refusal = statement(answer, 0, 0, libc::SECCOMP_RET_ERRNO | error);
    let mut program = Vec::new();
    for &number in what.numbers {
        // `struct seccomp_data`: the number at 0, the second argument's halves at 24 and 28.
        program.push(statement(load, 0, 0, 0));
        if what.longer == 0 {
            program.push(statement(equal, 0, 1, number as u32));
        } else {
            program.push(statement(equal, 0, 5, number as u32));
            program.push(statement(load, 0, 0, 28));
            program.push(statement(at_least, 2, 0, 1));
            program.push(statement(load, 0, 0, 24));
            program.push(statement(at_least, 0, 1, what.longer));
        }
        program.push(refusal);
    }
    program.push(statement(answer, 0, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program lives until the call returns, which copies it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let how = libc::SECCOMP_FILTER_FLAG_TSYNC;
        let set = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            how,
            &raw const filter,
        );
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }
}

/// Runs the service: threads from before the filter allocate in three rounds, and the profiler is stopped and started in
/// between. Prints the profiler's answers.
fn serve(what: Refused, error: u32) {
    // The parent removes the directory: a process that must not open files cannot.
    let dir = ManuallyDrop::new(Dir::new(&format!("refused-{}", what.name)));
    let profiler = heapray::builder()
        .ignore_environment()
        .enabled(true)
        .dir(&dir.0)
        .oom(false)
        .init();
    assert_eq!(profiler.status().state, State::Recording);
    let barrier = Barrier::new(THREADS + 1);
    let work = || {
        for _ in 0..ROUNDS {
            drop(black_box(vec![0_u8; SIZE as usize]));
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..3 {
                    barrier.wait();
                    work();
                    barrier.wait();
                }
            });
        }
        barrier.wait();
        barrier.wait();
        refuse(what, error);
        let before = profiler.status().allocated;
        barrier.wait();
        barrier.wait();
        let after = profiler.status();
        println!(
            "seen {} lost {}",
            (after.allocated.bytes - before.bytes) >= THREADS as u64 * ROUNDS * SIZE,
            after.lost_events
        );
        println!("membarrier {}", sys::has_membarrier());
        let stopped = profiler.stop();
        println!("stop {:?}", stopped.map(|status| status.state));
        println!("notes {:?}", profiler.status().notes);
        let started = profiler.start();
        println!("start {:?}", started.map(|status| status.state));
        println!("trouble {:?}", profiler.status().trouble);
        barrier.wait();
        barrier.wait();
        println!(
            "again {}",
            profiler.status().allocated.bytes >= THREADS as u64 * ROUNDS * SIZE
        );
        println!(
            "stop again {:?}",
            profiler.stop().map(|status| status.state)
        );
        println!("end {:?}", profiler.shutdown().is_ok());
    });
}

/// Runs the service in a process of its own with each of these error numbers. Returns what it printed.
fn served(test: &str, name: &str) -> Vec<String> {
    let what = *ALL.iter().find(|what| what.name == name).unwrap();
    if let Some(error) = env::var_os("HEAPRAY_REFUSE") {
        serve(what, error.to_str().unwrap().parse().unwrap());
        // The usual end of a test may need the refused call.
        std::process::exit(0);
    }
    let outputs = [libc::EPERM, libc::ENOSYS].map(|error| {
        let child = only(test)
            .env("HEAPRAY_REFUSE", error.to_string())
            .env("RUST_BACKTRACE", "0")
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let left = format!("refused-{name}-{}", child.id());
        let output = child.wait_with_output().unwrap();
        drop(std::fs::remove_dir_all(
            std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(left),
        ));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && text.contains("end "),
            "{name} refused with {error}: {}\n{text}{errors}",
            output.status
        );
        assert!(!errors.contains("panicked"), "{name}: {errors}");
        assert!(text.contains("seen true lost 0"), "{name}: {text}");
        text
    });
    outputs.into()
}

/// Checks what a service prints that records, stops and records again as if nothing were refused.
fn assert_undisturbed(text: &str) {
    for line in [
        "stop Ok(Stopped)",
        "notes []",
        "start Ok(Recording)",
        "again true",
        "stop again Ok(Stopped)",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_refused_membarrier_costs_nothing_but_time() {
    for text in served(test_name!(), "membarrier") {
        assert!(text.contains("membarrier false"), "{text}");
        assert_undisturbed(&text);
    }
}

#[test]
fn if_mprotect_is_refused_the_remaining_hooks_are_reported_and_no_session_starts() {
    let test = test_name!();
    for text in served(test, "mprotect") {
        assert!(text.contains("stop Ok(Stopped)"), "{text}");
        assert!(text.contains("could not be put back"), "{text}");
        assert!(text.contains("start Err("), "{text}");
        assert!(text.contains("trouble Some("), "{text}");
    }
}

#[test]
fn a_refused_madvise_changes_nothing() {
    for text in served(test_name!(), "madvise") {
        assert_undisturbed(&text);
    }
}

#[test]
fn a_refused_execve_changes_nothing() {
    for text in served(test_name!(), "execve") {
        assert_undisturbed(&text);
    }
}

#[test]
fn the_service_survives_refused_large_mappings() {
    served(test_name!(), "mmap");
}

#[test]
fn no_session_starts_if_threads_are_refused() {
    for text in served(test_name!(), "clone") {
        assert!(
            text.contains("stop Ok(Stopped)") && text.contains("start Err("),
            "{text}"
        );
    }
}

#[test]
fn a_refused_memfd_changes_nothing() {
    for text in served(test_name!(), "memfd") {
        assert!(
            text.contains("start Ok(Recording)") && text.contains("again true"),
            "{text}"
        );
    }
}

#[test]
fn the_service_survives_a_refused_openat() {
    served(test_name!(), "openat");
}

#[test]
fn the_service_survives_a_refused_mremap() {
    served(test_name!(), "mremap");
}
