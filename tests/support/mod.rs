//! Helpers that the test programs share: turns, a session in a directory of its own, and ([`process`]) tests in processes of
//! their own.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    unused_macros,
    clippy::print_stdout,
    clippy::unwrap_used
)] // each program uses a part of it

pub mod process;

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use heapray::capture::event::Kind;
use heapray::collector::snapshot::{RawSite, Snapshot};
use heapray::session::{Session, SessionOptions};
use heapray_report::model::Tally;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits for the test's turn. A process has one session, and some tests count what belongs to the whole process.
pub fn turn() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocates and frees `count` blocks of random sizes, whose events do not compress well.
pub fn churn(count: u64) {
    let mut random = 1_u64;
    for _ in 0..count {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        drop(black_box(vec![0_u8; 1 + (random >> 50) as usize]));
    }
}

/// Returns the names of this process's threads.
pub fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let name =
        |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks
        .map(|task| name(task.unwrap()).trim().to_owned())
        .collect()
}

/// A flag that tells other threads to stop. It is set at the latest when its guard is dropped: a failed assertion must not
/// leave the threads running.
#[derive(Debug, Default)]
pub struct StopFlag(pub AtomicBool);

impl StopFlag {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn guard(&self) -> StopGuard<'_> {
        StopGuard(self)
    }
}

#[derive(Debug)]
pub struct StopGuard<'a>(&'a StopFlag);

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// A directory below cargo's own. It is removed when the value is dropped.
#[derive(Debug)]
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new(name: &str) -> Dir {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    pub fn options(&self) -> SessionOptions {
        SessionOptions {
            spool_dir: self.0.clone(),
            log_limit: 1 << 30,
            overhead_limit: u64::MAX,
            sample: 0,
        }
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Records all allocations of the process while `work` runs.
pub fn record(name: &str, work: impl FnOnce()) -> Snapshot {
    let dir = Dir::new(name);
    let session = Session::start(&dir.options()).unwrap();
    work();
    session.stop().unwrap()
}

/// Returns the call sites of the calling thread.
pub fn my_sites(snapshot: &Snapshot) -> Vec<RawSite> {
    sites_of_thread(snapshot, my_tid())
}

pub fn sites_of_thread(snapshot: &Snapshot, tid: u32) -> Vec<RawSite> {
    let numbers: Vec<u32> = snapshot
        .stacks
        .threads
        .iter()
        .filter(|thread| thread.tid == tid)
        .map(|thread| thread.number)
        .collect();
    snapshot
        .stacks
        .sites
        .iter()
        .filter(|site| numbers.contains(&site.thread))
        .copied()
        .collect()
}

pub fn my_tid() -> u32 {
    // SAFETY: no argument, no failure.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Sums over sites, of one kind or of all.
pub fn sum(sites: &[RawSite], kind: Option<Kind>, tally: impl Fn(&RawSite) -> Tally) -> Tally {
    let mut sum = Tally::default();
    for site in sites
        .iter()
        .filter(|site| kind.is_none_or(|kind| site.kind == kind))
    {
        sum += tally(site);
    }
    sum
}

pub fn tally(count: u64, bytes: u64) -> Tally {
    Tally { count, bytes }
}

/// Returns the return addresses from the leaf to the root.
pub fn stack(snapshot: &Snapshot, site: &RawSite) -> Vec<u64> {
    let mut addresses = Vec::new();
    let mut at = site.node;
    while at.0 != 0 {
        let node = snapshot.stacks.nodes[at.0 as usize];
        addresses.push(node.address);
        at = node.parent;
    }
    addresses
}

/// Finds a program in the Python environment that `scripts/install-test-tools` makes.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/tools/python/bin");
    Some(path.join(name)).filter(|path| path.exists())
}
