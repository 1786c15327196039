//! Tests of the files of processes that end during a session. The next process on the same directory makes a report from the
//! event log, leftover files do not disturb it, and all files together stay within a bound.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::support::process::{only, passed, play, test_name};
use crate::support::{Dir, turn};
use heapray::{Builder, KeptReport, OutputKey, OutputKind, Profiler, ReportId, TriggerKind};
use heapray_report::memray;

/// Set in a child process, which is this program again: its directory.
const CHILD: &str = "HEAPRAY_TEST_LEFTOVERS_DIR";

/// Set in a child process: the number of living child processes, including itself.
const LIVING: &str = "HEAPRAY_TEST_LEFTOVERS_LIVING";

const BYTES: usize = 1_000_003;

fn settings(dir: &Path) -> Builder {
    let builder = heapray::builder().ignore_environment().enabled(true);
    builder.dir(dir)
}

fn waiting(dir: &Path) -> Profiler {
    settings(dir).wait_for_start().build().unwrap()
}

#[inline(never)]
fn leak_of_a_killed_process() {
    black_box(vec![1_u8; BYTES].leak());
}

/// Starts `test` as a process of its own on `dir`, and waits until it says that it is ready.
fn child(test: &str, dir: &Path) -> Child {
    let mut child = only(test)
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.as_mut().unwrap());
    assert!(output.lines().any(|line| line.unwrap().ends_with("ready")));
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Lets a process record on `dir`, and kills it.
fn leave_a_log(test: &str, dir: &Path) {
    kill(child(test, dir));
}

/// Records until the process is killed.
fn record_until_killed(dir: &Path) -> ! {
    let profiler = settings(dir).init();
    leak_of_a_killed_process();
    // A snapshot flushes the log, which otherwise happens once a second.
    profiler.report().unwrap();
    println!("ready");
    loop {
        thread::park();
    }
}

/// In a child process, records until it is killed.
fn record_if_child() {
    if let Some(dir) = std::env::var_os(CHILD) {
        record_until_killed(dir.as_ref());
    }
}

/// Waits until the kept reports fulfil the condition, and returns them.
fn once(profiler: &Profiler, mut so: impl FnMut(&[KeptReport]) -> bool) -> Vec<KeptReport> {
    loop {
        let kept = profiler.kept_reports().unwrap();
        if so(&kept) {
            return kept;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn spools(dir: &Path) -> usize {
    let names = names(dir);
    names.iter().filter(|name| name.ends_with(".spool")).count()
}

/// Sums the bytes of all files below `dir`, each counted once.
fn bytes(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut seen = std::collections::HashMap::new();
    let mut below = vec![dir.to_owned()];
    while let Some(dir) = below.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            // The file may have been removed meanwhile.
            let Ok(about) = entry.metadata() else {
                continue;
            };
            if about.is_dir() {
                below.push(entry.path());
            } else {
                seen.insert(about.ino(), about.len());
            }
        }
    }
    seen.values().sum()
}

fn leaks(report: &KeptReport) -> bool {
    let leak = report.largest.as_ref();
    leak.is_some_and(|leak| leak.function.contains("leak_of_a_killed_process"))
}

#[test]
fn the_next_process_makes_a_report_of_a_killed_process() {
    let test = test_name!();
    let _turn = turn();
    record_if_child();
    let dir = Dir::new("recovered");
    leave_a_log(test, &dir.0);
    assert_eq!(spools(&dir.0), 1);

    // Two profilers at once: one of them makes the report.
    let (one, two) = (waiting(&dir.0), waiting(&dir.0));
    let kept = once(&one, |kept| !kept.is_empty());
    once(&two, |kept| !kept.is_empty());
    while spools(&dir.0) > 0 {
        thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(two.kept_reports().unwrap(), kept);
    let [report] = &kept[..] else {
        panic!("{kept:?}")
    };
    let trigger = report.trigger.as_ref().unwrap();
    assert_eq!(trigger.kind, TriggerKind::Killed);
    assert!(
        trigger.reason.contains("ended while it recorded"),
        "{trigger:?}"
    );
    assert!(leaks(report), "{report:?}");
    assert!(report.live.bytes >= BYTES as u64);
    assert_ne!(report.pid, std::process::id());
    let id = ReportId::parse(&report.id).unwrap();
    let output = one.kept_output(id, OutputKey::new(OutputKind::Report));
    let capture = memray::read(output.unwrap()).unwrap();
    assert!(capture.complete);
    assert_eq!(capture.format, memray::Format::AllAllocations);
    let mut stats = String::new();
    let output = one.kept_output(id, OutputKey::new(OutputKind::Stats));
    output.unwrap().read_to_string(&mut stats).unwrap();
    assert!(stats.contains("recovered from the event log"), "{stats}");
    assert_eq!(names(&dir.0), ["heapray-reports"]);
    drop((one, two));
}

#[test]
fn the_report_of_a_replaced_program_says_so_and_has_no_wrong_names() {
    let test = test_name!();
    let _turn = turn();
    record_if_child();
    let dir = Dir::new("replaced");
    let own = dir.0.join("program");
    fs::copy(std::env::current_exe().unwrap(), &own).unwrap();
    let mut process = Command::new(&own);
    play(&mut process, test);
    let mut process = process
        .env(CHILD, dir.0.join("reports"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(process.stdout.as_mut().unwrap());
    assert!(output.lines().any(|line| line.unwrap().ends_with("ready")));
    kill(process);
    fs::remove_file(&own).unwrap();
    fs::copy("/bin/true", &own).unwrap();
    let profiler = waiting(&dir.0.join("reports"));
    let kept = once(&profiler, |kept| !kept.is_empty());
    assert!(!leaks(&kept[0]), "{kept:?}");
    assert!(kept[0].live.bytes >= BYTES as u64);
    let id = ReportId::parse(&kept[0].id).unwrap();
    let output = profiler.kept_output(id, OutputKey::new(OutputKind::Report));
    let notes = memray::read(output.unwrap())
        .unwrap()
        .report
        .conditions
        .notes;
    let said = |note: &String| note.contains("program") && note.contains("was replaced");
    assert!(notes.iter().any(said), "{notes:?}");
}

#[test]
fn files_that_a_killed_process_leaves_do_not_disturb_the_next_process() {
    let _turn = turn();
    let dir = Dir::new("in-the-way");
    // Names from earlier versions, with the process numbers in a container and of this process.
    for pid in [1, std::process::id()] {
        for last in ["0", "1", "probe", "room"] {
            File::create(dir.0.join(format!(".heapray-{pid}-{last}"))).unwrap();
        }
    }
    fs::write(dir.0.join("heapray-1-1795252380250-1.spool"), "no log").unwrap();
    fs::write(dir.0.join("heapray-1-0123456789abcdef-1.spool"), "").unwrap();
    fs::write(dir.0.join(".heapray-AbC123"), "not ours").unwrap();
    let profiler = settings(&dir.0).build().unwrap();
    profiler.stop().unwrap();
    assert_eq!(profiler.kept_reports().unwrap().len(), 1);
    while spools(&dir.0) > 0 {
        thread::sleep(Duration::from_millis(2));
    }
    // After this, nothing is written any more.
    profiler.shutdown().unwrap();
    let drafts = names(&dir.0);
    let drafts: Vec<_> = drafts.iter().filter(|name| name.starts_with('.')).collect();
    assert_eq!(drafts, [".heapray-AbC123"]);
}

#[test]
fn reports_without_a_note_and_drafts_among_the_reports_are_removed() {
    let _turn = turn();
    let dir = Dir::new("orphans");
    {
        let profiler = settings(&dir.0).build().unwrap();
        profiler.stop().unwrap();
        profiler.shutdown().unwrap();
    }
    let reports = dir.0.join("heapray-reports");
    let before = names(&reports);
    fs::write(reports.join("1795252380250.bin"), vec![0; 1000]).unwrap();
    fs::write(reports.join(".1795252380250-1"), vec![0; 1000]).unwrap();
    let profiler = waiting(&dir.0);
    while names(&reports) != before {
        thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(profiler.status().disk.bytes, bytes(&dir.0));
}

#[test]
fn a_crash_loop_loses_no_report_and_stays_within_its_bound() {
    let test = test_name!();
    const BOUND: u64 = 3 << 20;
    let _turn = turn();
    if let Some(dir) = std::env::var_os(CHILD) {
        let dir = PathBuf::from(dir);
        let profiler = settings(&dir).keep_bytes(BOUND).init();
        leak_of_a_killed_process();
        profiler.report().unwrap();
        // Wait until the previous process's report has been made.
        once(&profiler, |_| spools(&dir) == 1);
        println!("ready");
        loop {
            thread::park();
        }
    }
    let dir = Dir::new("loop");
    // The report of a session that was stopped must outlive the crash loop.
    {
        let profiler = settings(&dir.0).keep_bytes(BOUND).build().unwrap();
        profiler.stop().unwrap();
        profiler.shutdown().unwrap();
    }
    let profiler = settings(&dir.0).wait_for_start().keep_bytes(BOUND);
    let profiler = profiler.build().unwrap();
    let first = profiler.kept_reports().unwrap()[0].id.clone();
    let mut seen = std::collections::BTreeSet::new();
    let lives = 12;
    for life in 0..=lives {
        // The last process only makes the report of the previous one.
        let child = child(test, &dir.0);
        // A list of files that are being renamed may lack one, so the child may have counted too early.
        once(&profiler, |kept| {
            let killed = kept.iter().filter(|kept| kept.trigger.is_some());
            seen.extend(killed.map(|kept| (kept.pid, kept.started)));
            seen.len() >= life
        });
        assert_eq!(seen.len(), life);
        let bytes = bytes(&dir.0);
        assert!(bytes <= BOUND, "{bytes} bytes after {life} lives");
        kill(child);
    }
    let kept = profiler.kept_reports().unwrap();
    assert!(kept.iter().any(|kept| kept.id == first), "{kept:?}");
    assert!(
        kept.len() <= 1 + 6,
        "at most the latest three and the three with the most live bytes are kept"
    );
}

#[test]
fn each_process_on_a_shared_directory_has_its_own_reports() {
    let _turn = turn();
    let dir = Dir::new("together");
    // Two profilers in one process share the directory like two processes: sessions take turns, but outputs do not.
    let (one, two) = (waiting(&dir.0), waiting(&dir.0));
    for _ in 0..10 {
        let mut own = Vec::new();
        for profiler in [&one, &two] {
            profiler.start().unwrap();
            let status = profiler.stop().unwrap();
            own.push((profiler, status.allocated.count));
        }
        for (profiler, allocated) in own {
            let report = memray::read(profiler.report().unwrap()).unwrap();
            assert!(report.complete);
            assert_eq!(report.report.totals.allocated.count, allocated);
            let mut present = profiler.kept_reports().unwrap();
            present.retain(|kept| kept.present);
            assert_eq!(present.len(), 1);
            assert_eq!(present[0].allocated.count, allocated);
        }
    }
    // The latest report has the documented name, and only its own profiler removes it.
    let latest = fs::read(dir.0.join("memray-report.bin")).unwrap();
    let mut report = Vec::new();
    two.report().unwrap().read_to_end(&mut report).unwrap();
    assert_eq!(latest, report);
    one.start().unwrap();
    assert_eq!(fs::read(dir.0.join("memray-report.bin")).unwrap(), latest);
    one.shutdown().unwrap();
    drop((one, two));
}

#[test]
fn a_start_and_outputs_at_the_same_moment_do_not_disturb_each_other() {
    let _turn = turn();
    let dir = Dir::new("same-moment");
    let profiler = settings(&dir.0).oom(false).build().unwrap();
    profiler.stop().unwrap();
    for _ in 0..60 {
        let together = Barrier::new(2);
        thread::scope(|scope| {
            let start = scope.spawn(|| {
                together.wait();
                profiler.start()
            });
            let kind = OutputKind::Summary;
            together.wait();
            profiler.output(OutputKey::new(kind)).unwrap();
            start.join().unwrap().unwrap();
        });
        profiler.stop().unwrap();
    }
    profiler.shutdown().unwrap();
}

#[test]
fn the_next_start_makes_the_report_after_a_failed_stop() {
    let test = test_name!();
    let _turn = turn();
    if std::env::var_os(CHILD).is_none() {
        // Runs in a process of its own: other tests need file descriptors.
        let dir = Dir::new("no-descriptor");
        let mut child = only(test);
        child.env(CHILD, &dir.0);
        passed(child);
        return;
    }
    let dir = PathBuf::from(std::env::var_os(CHILD).unwrap());
    // The flight recorder keeps a descriptor in reserve, with which the stop would succeed.
    let profiler = settings(&dir).oom(false).build().unwrap();
    leak_of_a_killed_process();
    let mut all = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        all.push(file);
    }
    profiler.stop().unwrap_err();
    assert_eq!(profiler.status().report, None);
    drop(all);
    assert_eq!(spools(&dir), 1);
    profiler.start().unwrap();
    let kept = once(&profiler, |kept| !kept.is_empty());
    assert_eq!(
        kept[0].trigger.as_ref().unwrap().kind,
        TriggerKind::Unwritten
    );
    assert!(leaks(&kept[0]), "{kept:?}");
    once(&profiler, |_| spools(&dir) == 1);
    profiler.shutdown().unwrap();
}

#[test]
fn a_private_directory_is_taken_over_by_the_next_process_of_the_program() {
    let test = test_name!();
    let _turn = turn();
    let of_child = |builder: Builder| builder.ignore_environment().enabled(true);
    if std::env::var_os(CHILD).is_some() {
        let profiler = of_child(heapray::builder()).init();
        leak_of_a_killed_process();
        profiler.stop().unwrap();
        profiler.start().unwrap();
        leak_of_a_killed_process();
        profiler.report().unwrap();
        // Wait until the directories of the killed processes are taken over, and their logs are recovered.
        let living: usize = std::env::var(LIVING).unwrap().parse().unwrap();
        once(&profiler, |_| {
            let directories = names(&std::env::temp_dir());
            let own = |name: &String| spools(&std::env::temp_dir().join(name));
            (directories.len(), directories.iter().map(own).sum()) == (living, living)
        });
        println!("ready");
        loop {
            thread::park();
        }
    }
    let dir = Dir::new("private");
    let life = |living: u32| {
        let mut child = only(test)
            .env(CHILD, &dir.0)
            .env("TMPDIR", &dir.0)
            .env(LIVING, living.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.as_mut().unwrap());
        assert!(output.lines().any(|line| line.unwrap().ends_with("ready")));
        child
    };
    for _ in 0..3 {
        kill(life(1));
    }
    // Two living processes have a directory each.
    let (one, two) = (life(1), life(2));
    let directories = names(&dir.0);
    assert_eq!(directories.len(), 2, "{directories:?}");
    let kept = || -> usize {
        let reports = |directory| dir.0.join(directory).join("heapray-reports");
        let files = directories.iter().map(|name| names(&reports(name)));
        files.map(|names| names.len()).sum()
    };
    // Each of the three killed processes leaves two reports, of its stopped session and of its killed one. The two living
    // processes have one each, of the stopped session. A list of files that are being renamed may lack one.
    while kept() < 2 * (3 + 3 + 2) {
        thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(kept(), 2 * (3 + 3 + 2), "{directories:?}");
    kill(one);
    kill(two);
}

#[test]
fn at_the_bound_a_report_has_only_sums_and_a_living_process_keeps_its_log() {
    use std::os::fd::AsRawFd;
    const BOUND: u64 = 1 << 20;
    let _turn = turn();
    let dir = Dir::new("bound");
    // The log of another process, which still writes to it.
    let other = dir.0.join("heapray-1-0123456789abcdef-1.spool");
    let file = File::create(&other).unwrap();
    file.set_len(BOUND).unwrap();
    // SAFETY: an open descriptor.
    let locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) };
    assert_eq!(locked, 0);
    let profiler = settings(&dir.0).keep_bytes(BOUND).build().unwrap();
    leak_of_a_killed_process();
    let status = profiler.stop().unwrap();
    assert_eq!(status.disk.bound_bytes, BOUND);
    assert_eq!(status.log_given_up, None);
    let report = memray::read(profiler.report().unwrap()).unwrap();
    assert!(report.complete);
    assert_eq!(report.format, memray::Format::Aggregated);
    assert_eq!(report.report.totals.live.bytes, status.live.bytes);
    assert!(other.exists());
    profiler.shutdown().unwrap();
}
