//! Tests of the flight recorder: memory that really runs out, a process that is killed right after the report, growth, and
//! `SIGUSR2`.
//!
//! Each test starts this program again as a child process, and checks what the child has left, as a service does after a
//! restart.

use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::Dir;
use crate::support::process::{only, test_name};
use heapray::{Builder, KeptReport, OutputKey, OutputKind, Profiler, ReportId, State, TriggerKind};

const MIB: usize = 1 << 20;
/// Set in the child: its directory.
const CHILD: &str = "HEAPRAY_TEST_FLIGHT_DIR";

fn settings(dir: &Path) -> Builder {
    heapray::builder()
        .ignore_environment()
        .enabled(true)
        .dir(dir)
}

/// Leaks memory. The report must name this function.
#[inline(never)]
fn hog_of_memory(bytes: usize) {
    black_box(vec![1_u8; bytes].leak());
}

/// Returns the child's directory, if this is the child.
fn child_dir() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Prints that a report was written. The parent then kills this process.
fn tell(trigger: &heapray::Trigger) {
    println!(
        "\ntold {} {:?} {:?}",
        trigger.kind.name(),
        trigger.report,
        trigger.trouble
    );
}

/// Runs `test` in a process of its own, with `dir`, and kills the process after it has printed that a report was written.
/// Returns its exit status and its output.
fn run(test: &str, dir: &Path) -> (ExitStatus, String) {
    let mut child = only(test)
        .env(CHILD, dir)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = String::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        seen.push_str(&line);
        seen.push('\n');
        if line.starts_with("told ") {
            child.kill().unwrap();
        }
    }
    (child.wait().unwrap(), seen)
}

/// Returns the latest report that the next process on the same directory lists, and checks that memray can read it.
fn left(dir: &Path, kind: TriggerKind) -> KeptReport {
    let profiler = settings(dir).wait_for_start().build().unwrap();
    let reports = profiler.kept_reports().unwrap();
    let report = reports.first().expect("a report is listed").clone();
    let trigger = report.trigger.clone().expect("the report has a trigger");
    assert_eq!(trigger.kind, kind, "{trigger:?}");
    let leak = report.largest.clone().unwrap();
    assert!(leak.function.contains("hog_of_memory"), "{leak:?}");
    assert!(leak.live.bytes > report.live.bytes / 2, "{report:?}");
    let id = ReportId::parse(&report.id).unwrap();
    let output = |kind| profiler.kept_output(id, OutputKey::new(kind)).unwrap();
    let mut page = String::new();
    std::io::Read::read_to_string(&mut output(OutputKind::Flamegraph), &mut page).unwrap();
    assert!(page.ends_with("</html>\n"));
    let mut file = fs::File::create(dir.join("copy.bin")).unwrap();
    std::io::copy(&mut output(OutputKind::Report), &mut file).unwrap();
    profiler.shutdown().unwrap();
    opens_in_memray(&dir.join("copy.bin"));
    println!(
        "{kind:?}: {}; {} bytes",
        trigger.reason, report.report_bytes
    );
    report
}

fn opens_in_memray(file: &Path) {
    let Some(memray) = crate::support::tool("memray") else {
        println!("skipped: memray is not installed");
        return;
    };
    let page = file.with_extension("html");
    let mut command = Command::new(memray);
    let output = command
        .args(["flamegraph", "-f", "-o"])
        .arg(&page)
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(fs::read_to_string(&page).unwrap().contains("hog_of_memory"));
}

/// Returns the address space that is in use.
fn address_space() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    pages * 4096
}

/// Limits the address space to `more` bytes beyond the present use. Returns the limit.
fn limit_address_space(more: u64) -> u64 {
    let limit = libc::rlimit {
        rlim_cur: address_space() + more,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit lives until the call returns.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    assert_eq!(set, 0);
    limit.rlim_cur
}

#[test]
fn a_failed_allocation_leaves_a_report_although_the_process_aborts() {
    if let Some(dir) = child_dir() {
        limit_address_space(1 << 30);
        let _profiler = settings(&dir).init();
        (0..100).for_each(|_| hog_of_memory(MIB));
        black_box(vec![1_u8; 4 << 30]);
        unreachable!("there is no memory for that");
    }
    let dir = Dir::new("flight-failed");
    let test = test_name!();
    let (status, seen) = run(test, &dir.0);
    assert_eq!(status.signal(), Some(libc::SIGABRT), "{status} {seen}");
    let report = left(&dir.0, TriggerKind::AllocationFailed);
    assert!(report.live.bytes >= 100 << 20);
    assert!(report.trigger.unwrap().reason.contains("4.295GB failed"));
}

#[test]
fn large_blocks_up_to_the_limit_leave_a_report_from_the_memory_reserved_for_it() {
    if let Some(dir) = child_dir() {
        limit_address_space(1 << 30);
        let _profiler = settings(&dir).oom_exit_code(53).init();
        loop {
            // The pages are not touched, so that only the limit slows this down.
            zeros_of_a_hog_of_memory();
        }
    }
    let dir = Dir::new("flight-chunks");
    let test = test_name!();
    let (status, seen) = run(test, &dir.0);
    assert_eq!(status.code(), Some(53), "{status} {seen}");
    let profiler = settings(&dir.0).wait_for_start().build().unwrap();
    let reports = profiler.kept_reports().unwrap();
    let kind = reports.first().unwrap().trigger.as_ref().unwrap().kind;
    assert!(kind.is_out_of_memory(), "{reports:?}");
    left(&dir.0, kind);
}

#[inline(never)]
fn zeros_of_a_hog_of_memory() {
    black_box(vec![0_u8; 48 * MIB].leak());
}

#[test]
fn near_the_limit_the_service_is_notified_and_the_report_outlives_a_kill() {
    if let Some(dir) = child_dir() {
        let limit = limit_address_space(2 << 30);
        let _profiler = settings(&dir).on_trigger(tell).init();
        // Near means within at least 100 MiB. If the service allocated on, a busy machine might reach the limit before the
        // report is written. If it measured its room only once, memory that is freed meanwhile could keep it from coming
        // near.
        loop {
            if address_space() < limit - (90 << 20) {
                hog_of_memory(MIB);
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
    let dir = Dir::new("flight-near");
    let test = test_name!();
    let (status, seen) = run(test, &dir.0);
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status} {seen}");
    left(&dir.0, TriggerKind::AddressSpace);
}

/// Makes the files of a control group with this limit below `dir/machine`. Returns a function that sets how much of it is in
/// use.
fn group_with_limit(dir: &Path, limit: usize) -> impl Fn(usize) {
    let group = dir.join("machine/sys/fs/cgroup/app");
    fs::create_dir_all(&group).unwrap();
    fs::create_dir_all(dir.join("machine/proc/self")).unwrap();
    fs::write(dir.join("machine/proc/self/cgroup"), "0::/app\n").unwrap();
    fs::write(group.join("memory.max"), limit.to_string()).unwrap();
    let put = move |bytes: usize| {
        // The file changes in one step, like the kernel's own.
        fs::write(group.join("draft"), bytes.to_string()).unwrap();
        fs::rename(group.join("draft"), group.join("memory.current")).unwrap();
    };
    put(100 * MIB);
    put
}

#[cfg(feature = "store")]
#[test]
fn a_report_is_in_the_object_storage_before_the_process_ends_for_want_of_memory() {
    if let Some(dir) = child_dir() {
        let put = group_with_limit(&dir, 512 * MIB);
        let builder = settings(&dir).system_root(dir.join("machine"));
        let bucket = format!("file://{}", dir.join("bucket").display());
        let _profiler = builder.oom_exit_code(53).store(bucket).init();
        for used in 100.. {
            hog_of_memory(MIB);
            put(used * MIB);
        }
    }
    let dir = Dir::new("flight-store");
    let test = test_name!();
    let (status, seen) = run(test, &dir.0);
    assert_eq!(status.code(), Some(53), "{status} {seen}");
    let inside = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let [service] = &inside(&dir.0.join("bucket"))[..] else {
        panic!("one service")
    };
    let [day] = &inside(service)[..] else {
        panic!("one day")
    };
    let [report, note] = &inside(day)[..] else {
        panic!("a report and its note")
    };
    let note = fs::read_to_string(note).unwrap();
    assert!(
        note.contains("\"control_group\"") && note.contains("hog_of_memory"),
        "{note}"
    );
    opens_in_memray(report);
}

#[test]
fn near_a_groups_limit_the_service_is_notified_and_the_report_outlives_a_kill() {
    if let Some(dir) = child_dir() {
        let put = group_with_limit(&dir, 512 * MIB);
        let builder = settings(&dir).system_root(dir.join("machine"));
        let profiler = builder.on_trigger(tell).init();
        for used in 100.. {
            hog_of_memory(MIB);
            put(used * MIB);
            if used < 448 {
                assert_eq!(profiler.status().trigger, None, "too early");
            }
        }
    }
    let dir = Dir::new("flight-group");
    let test = test_name!();
    let (status, seen) = run(test, &dir.0);
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status} {seen}");
    let report = left(&dir.0, TriggerKind::ControlGroup);
    let reason = report.trigger.unwrap().reason;
    assert!(
        reason.contains("memory.max of /sys/fs/cgroup/app"),
        "{reason}"
    );
}

/// A control group below this process's own. It is removed when the value is dropped.
struct Group(PathBuf);

impl Group {
    /// Makes a group with a limit of `bytes`. Returns `None` if that is not allowed.
    fn new(bytes: usize) -> Option<Group> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let name = format!("heapray-test-{}", std::process::id());
        own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let (mount, limit) = match controllers {
                "" => ("/sys/fs/cgroup", "memory.max"),
                "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                _ => return None,
            };
            let dir = Path::new(mount)
                .join(path.trim_start_matches('/'))
                .join(&name);
            fs::create_dir(&dir).ok()?;
            let group = Group(dir);
            fs::write(group.0.join(limit), bytes.to_string()).ok()?;
            Some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The group's processes have ended, but the kernel may need a moment to notice it.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn in_a_real_group_the_report_is_written_before_the_kernel_kills_the_process() {
    if let Some(dir) = child_dir() {
        let group = fs::read_to_string(dir.join("group")).unwrap();
        fs::write(
            Path::new(&group).join("cgroup.procs"),
            std::process::id().to_string(),
        )
        .unwrap();
        let _profiler = settings(&dir).on_trigger(tell).init();
        loop {
            hog_of_memory(MIB);
            thread::sleep(Duration::from_millis(4));
        }
    }
    let Some(group) = Group::new(512 * MIB) else {
        // The test above, on a tree of files, runs on every machine.
        println!("no control group can be made here");
        return;
    };
    let dir = Dir::new("flight-real-group");
    fs::write(dir.0.join("group"), group.0.to_str().unwrap()).unwrap();
    let (status, seen) = run(test_name!(), &dir.0);
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status} {seen}");
    assert!(seen.contains("told control_group"), "{seen}");
    let report = left(&dir.0, TriggerKind::ControlGroup);
    assert!(report.live.bytes > 300 << 20, "{report:?}");
}

/// Waits for a trigger of this kind.
fn trigger_once(profiler: &Profiler, kind: TriggerKind) -> heapray::Trigger {
    loop {
        if let Some(trigger) = profiler.status().trigger.filter(|one| one.kind == kind) {
            return trigger;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

static SERVICES_OWN: AtomicU32 = AtomicU32::new(0);

extern "C" fn services_own(_: libc::c_int) {
    SERVICES_OWN.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn sigusr2_writes_a_report_recording_goes_on_and_the_services_own_handler_is_called() {
    if let Some(dir) = child_dir() {
        // SAFETY: a handler that only adds to an atomic.
        unsafe { libc::signal(libc::SIGUSR2, services_own as *const () as usize) };
        let profiler = settings(&dir).sigusr2(true).init();
        hog_of_memory(3 * MIB);
        for times in 1..=2 {
            // SAFETY: the signal's handlers are the function above and heapray's.
            unsafe { libc::raise(libc::SIGUSR2) };
            let trigger = trigger_once(&profiler, TriggerKind::Signal);
            assert_eq!(trigger.trouble, None);
            assert_eq!(SERVICES_OWN.load(Ordering::Relaxed), times);
            assert_eq!(profiler.status().state, State::Recording);
        }
        hog_of_memory(3 * MIB);
        println!("\ntold of all");
        thread::sleep(Duration::from_secs(600));
    }
    let dir = Dir::new("flight-signal");
    let test = test_name!();
    let (status, seen) = run(test, &dir.0);
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status} {seen}");
    let report = left(&dir.0, TriggerKind::Signal);
    assert!(
        (3 << 20..4 << 20).contains(&report.live.bytes),
        "{report:?}"
    );
}

#[cfg(feature = "http")]
#[test]
fn growth_is_reported_listed_served_and_kept_over_a_restart() {
    if let Some(dir) = child_dir() {
        let profiler = settings(&dir)
            .oom(false)
            .trigger_size(20 << 20)
            .trigger_step(8 << 20)
            .trigger_pause(Duration::ZERO)
            .trigger_keep(2)
            .oom_threshold(heapray::OomThreshold::Percent(2))
            .init();
        thread::sleep(Duration::from_millis(20));
        for _ in 0..30 {
            hog_of_memory(MIB);
            thread::sleep(Duration::from_millis(30));
        }
        trigger_once(&profiler, TriggerKind::Step);
        println!("\ntold of all");
        thread::sleep(Duration::from_secs(600));
    }
    let dir = Dir::new("flight-growth");
    let test = test_name!();
    let (status, seen) = run(test, &dir.0);
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status} {seen}");
    let report = left(&dir.0, TriggerKind::Step);
    let profiler = settings(&dir.0).wait_for_start().build().unwrap();
    let reports = profiler.kept_reports().unwrap();
    assert!((1..=4).contains(&reports.len()), "{reports:?}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let get = |path: String| {
        use http_body_util::BodyExt;
        use tower::ServiceExt;
        let router = profiler.router();
        let path = format!("/api/v1/profiler/memray/{path}");
        let request = axum::http::Request::get(path)
            .body(axum::body::Body::empty())
            .unwrap();
        runtime.block_on(async {
            let response = router.oneshot(request).await.unwrap();
            assert_eq!(response.status(), 200);
            response.into_body().collect().await.unwrap().to_bytes()
        })
    };
    let list: serde_json::Value = serde_json::from_slice(&get("reports".into())).unwrap();
    assert_eq!(list[0]["trigger"]["kind"], "step");
    assert_eq!(list[0]["id"], *report.id);
    let status: serde_json::Value = serde_json::from_slice(&get("status".into())).unwrap();
    assert!(
        status["trigger"].is_null(),
        "the trigger belongs to another process"
    );
    let text = get(format!("reports/{}/stats", report.id));
    assert!(String::from_utf8_lossy(&text).contains("written because the heap has grown"));
}
