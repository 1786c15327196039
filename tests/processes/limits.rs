//! Tests of a profiler that gets no more memory or disk space, or loses its directory: it stops the recording or gives up
//! the event log, the status and the log messages say so, and the service goes on.

use std::ffi::CString;
use std::fmt::Write;
use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::ptr::null;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::process::{in_own_process, test_name};
use crate::support::{Dir, churn};
use heapray::{Error, Profiler, State, Status};
use heapray_report::memray;
use tracing::field::{Field, Visit};
use tracing::span;

/// Keeps every line that heapray logs.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<String>>);

impl Lines {
    fn listen() -> Lines {
        let lines = Lines::default();
        tracing::subscriber::set_global_default(lines.clone()).unwrap();
        lines
    }

    fn has(&self, line: &str) -> bool {
        self.0.lock().unwrap().contains(line)
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Text<'a>(&'a mut String);
        impl Visit for Text<'_> {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                write!(self.0, "{field}={value:?} ").unwrap();
            }
        }
        let mut lines = self.0.lock().unwrap();
        write!(lines, "{} ", event.metadata().level()).unwrap();
        event.record(&mut Text(&mut lines));
        lines.push('\n');
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Returns the bytes of address space that this process uses.
fn mapped() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
    pages * 4096
}

fn record_in(dir: &Path) -> Profiler {
    let builder = heapray::builder().ignore_environment().enabled(true);
    builder.dir(dir).try_init().unwrap()
}

/// Waits until the status fulfils the condition.
fn status_once(profiler: &Profiler, so: impl Fn(&Status) -> bool) -> Status {
    loop {
        let status = profiler.status();
        if so(&status) {
            return status;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn limit_address_space_to(bytes: u64) {
    limit(libc::RLIMIT_AS, bytes);
}

fn limit(resource: libc::__rlimit_resource_t, bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit lives until the call returns.
    let set = unsafe { libc::setrlimit(resource, &raw const limit) };
    assert_eq!(set, 0);
}

#[test]
fn recording_ends_before_the_tables_take_what_the_service_needs() {
    in_own_process(test_name!(), fill_memory);
}

fn fill_memory() {
    // The arena of a thread takes 64 MiB of the limit, at whatever time the thread first allocates.
    // SAFETY: no precondition.
    assert_eq!(unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) }, 1);
    let lines = Lines::listen();
    let dir = Dir::new("memory");
    let profiler = record_in(&dir.0);
    limit_address_space_to(mapped() + (120 << 20));
    let mut held = Vec::with_capacity(4 << 20);
    // Small blocks, each of which takes about as much memory in the tables as in the service.
    while held.len() < held.capacity() && profiler.status().state == State::Recording {
        held.extend((0..10_000).map(|number| black_box(Box::new(number))));
    }
    status_once(&profiler, |status| status.state == State::Stopped);
    // The service can use the memory that the tables have freed, and goes on.
    let more = black_box(vec![1_u8; 32 << 20]);
    held.extend((0..10_000).map(|number| black_box(Box::new(number))));

    // The reason is set shortly after the state.
    let trouble = status_once(&profiler, |status| status.trouble.is_some()).trouble;
    let trouble = trouble.unwrap();
    assert!(trouble.contains("RLIMIT_AS"), "{trouble}");
    assert!(lines.has("ERROR message=recording has ended"), "{lines:?}");
    let status = profiler.status();
    assert!(status.allocated.count > 100_000, "{status:?}");
    assert!(
        status.live.count < held.len() as u64,
        "later blocks must not be recorded"
    );
    let report = memray::read(File::open(dir.0.join("memray-report.bin")).unwrap()).unwrap();
    assert_eq!(report.report.totals.allocated.count, status.allocated.count);
    let notes = report.report.conditions.notes;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("recording ended before")),
        "{notes:?}"
    );

    // With too little memory, the recording does not start again, and the error says why. With enough memory, it starts.
    limit_address_space_to(mapped() + (40 << 20));
    let refused = profiler.start().unwrap_err().to_string();
    assert!(refused.contains("RLIMIT_AS"), "{refused}");
    limit_address_space_to(libc::RLIM_INFINITY);
    assert_eq!(profiler.start().unwrap().state, State::Recording);
    assert_eq!(profiler.status().trouble, None);
    // After this, nothing is written any more.
    profiler.shutdown().unwrap();
    println!("{} blocks were seen; {trouble}", status.allocated.count);
    drop((held, more));
}

/// Mounts a disk of `bytes` at `dir` for the calling thread and the threads that it starts. Returns false if that is not
/// allowed.
fn mount_disk(dir: &Path, bytes: u64) -> bool {
    let dir = CString::new(dir.as_os_str().as_encoded_bytes()).unwrap();
    let size = CString::new(format!("size={bytes}")).unwrap();
    let (none, root) = (c"none".as_ptr(), c"/".as_ptr());
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: texts that end with a zero. Only this process sees the mount, which ends with the process.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(none, root, null(), private, null()) == 0
            && libc::mount(
                none,
                dir.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                size.as_ptr().cast(),
            ) == 0
    }
}

#[test]
fn a_full_disk_ends_the_log_and_leaves_room_for_the_report() {
    in_own_process(test_name!(), fill_the_disk);
}

fn fill_the_disk() {
    const DISK: u64 = 1 << 20;
    let lines = Lines::listen();
    let dir = Dir::new("full");
    let disk = dir.0.join("disk");
    std::fs::create_dir(&disk).unwrap();
    let is_disk = mount_disk(&disk, DISK);
    let profiler = record_in(&disk);
    if !is_disk {
        // A limit on the size of files stands in for a full disk.
        limit(libc::RLIMIT_FSIZE, DISK);
    }
    let status = status_once(&profiler, |status| {
        churn(10_000);
        status.log_given_up.is_some()
    });
    let reason = if is_disk {
        "the disk is full"
    } else {
        "the file is larger than the system allows"
    };
    assert_eq!(status.log_given_up.as_deref(), Some(reason));
    assert_eq!(status.state, State::Recording);
    while !lines.has("WARN message=the event log was given up") {
        thread::sleep(Duration::from_millis(1));
    }
    // Everything is still counted, and the log does not take the space for the report.
    churn(10_000);
    let status = profiler.stop().unwrap();
    assert_eq!((status.state, status.trouble), (State::Stopped, None));
    let report = memray::read(File::open(disk.join("memray-report.bin")).unwrap()).unwrap();
    assert!(report.complete);
    assert_eq!(report.report.totals.allocated.count, status.allocated.count);
    println!(
        "{reason}; {} blocks are in the report",
        status.allocated.count
    );
    // After this, nothing is written any more: else it might be written where the disk was.
    profiler.shutdown().unwrap();
    if is_disk {
        let disk = CString::new(disk.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: a text that ends with a zero. Open files stay open.
        unsafe { libc::umount2(disk.as_ptr(), libc::MNT_DETACH) };
    }
    limit(libc::RLIMIT_FSIZE, libc::RLIM_INFINITY);
}

#[test]
fn without_its_directory_the_report_stays_in_memory_until_the_directory_can_be_made() {
    in_own_process(test_name!(), lose_the_directory);
}

fn lose_the_directory() {
    let lines = Lines::listen();
    let dir = Dir::new("lost");
    let inner = dir.0.join("inner");
    let profiler = record_in(&inner);
    churn(10_000);
    std::fs::remove_dir_all(&inner).unwrap();
    // A missing directory would be made again, so a file takes its place.
    std::fs::write(&inner, "in its place").unwrap();
    churn(10_000);
    let error = profiler.stop().unwrap_err();
    assert!(matches!(error, Error::Output { .. }), "{error}");
    assert!(
        lines.has("ERROR message=the session ended without a report"),
        "{lines:?}"
    );
    let status = profiler.status();
    assert_eq!(status.state, State::Stopped);
    assert!(
        status
            .trouble
            .unwrap()
            .contains("the output could not be written")
    );
    churn(1_000);

    std::fs::remove_file(&inner).unwrap();
    let report = memray::read(profiler.report().unwrap()).unwrap();
    assert!(report.complete);
    assert!(report.report.totals.allocated.count >= 20_000);
    profiler.shutdown().unwrap();
}
