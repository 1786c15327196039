//! A thread that watches the workers: their CPU clocks, the process's memory, and, with a sampler each, their stacks.

use std::collections::HashSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use heapray_report::parallel::Moment;

use super::pool::Members;
use crate::capture::cpu::{CpuError, Sampler};
use crate::capture::untracked;
use crate::capture::{arch, sys};
use crate::os::memory::resident;
use crate::os::{process, signal};
use crate::profiles::cpu::{Samples, Stats, StatsBuilder};

/// Time from one reading to the next, at first.
const STEP: Duration = Duration::from_millis(10);
/// Number of moments at which neighbours are joined and steps become twice as long.
const MOST_MOMENTS: usize = 2000;
/// CPU time between two samples of a worker.
const INTERVAL_NS: u64 = 1_000_000;
/// Interval of the search for new threads.
const SEARCH: Duration = Duration::from_millis(50);

/// Observations of the monitor.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) workers: Vec<Worker>,
    pub(super) moments: Vec<Moment>,
    pub(super) stats: Stats,
    pub(super) lost: u64,
    pub(super) error: Option<CpuError>,
}

#[derive(Debug)]
pub(super) struct Worker {
    pub(super) tid: u32,
    pub(super) name: String,
    /// CPU time of the worker when it was first seen, and last.
    first_ns: u64,
    last_ns: u64,
    sampler: Option<Sampler>,
}

impl Worker {
    pub(super) fn cpu_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}

/// Running monitor.
#[derive(Debug)]
pub(super) struct Monitor {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<Observed>>,
}

impl Monitor {
    /// Watches `members`, or all threads of the process. They are sampled when this returns.
    pub(super) fn start(members: Members, everybody: bool) -> Monitor {
        let done = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&done);
        let mut watch = Watch::new(members, everybody);
        watch.search();
        watch.look();
        // The monitor's thread handles no signal of the service's.
        let _signals = signal::BlockSignals::all();
        let thread = process::check_thread_start().and_then(|()| {
            std::thread::Builder::new()
                .name("heapray-watch".to_owned())
                .spawn(move || {
                    untracked::for_good();
                    watch.run(&until)
                })
        });
        let thread = thread
            .inspect_err(|error| tracing::warn!(%error, "heapray can't watch workers"))
            .ok();
        Monitor { done, thread }
    }

    /// Ends the monitor.
    pub(super) fn finish(mut self) -> Observed {
        self.done.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else {
            return Observed::default();
        };
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

struct Watch {
    members: Members,
    everybody: bool,
    began: Instant,
    step: Duration,
    searched: Option<Instant>,
    workers: Vec<Worker>,
    known: HashSet<u32>,
    moments: Vec<Moment>,
    error: Option<CpuError>,
}

impl Watch {
    fn new(members: Members, everybody: bool) -> Watch {
        Watch {
            members,
            everybody,
            began: Instant::now(),
            step: STEP,
            searched: None,
            workers: Vec::new(),
            known: HashSet::new(),
            moments: Vec::new(),
            error: None,
        }
    }

    fn run(mut self, done: &AtomicBool) -> Observed {
        while !done.load(Ordering::Relaxed) {
            std::thread::park_timeout(self.step);
            self.search();
            self.look();
        }
        let mut samples = Samples::new();
        for worker in &mut self.workers {
            if let Some(mut sampler) = worker.sampler.take() {
                samples.add(&mut sampler, &HashSet::new());
            }
        }
        let lost = samples.lost();
        let mut stats = StatsBuilder::default();
        samples.into_stats(&mut stats);
        Observed {
            workers: self.workers,
            moments: self.moments,
            stats: stats.finish(),
            lost,
            error: self.error,
        }
    }

    /// Adds new workers.
    fn search(&mut self) {
        let members = self.members.lock();
        let joined = members.unwrap_or_else(PoisonError::into_inner).clone();
        for (tid, name) in joined {
            self.add(tid, name);
        }
        let is_time = self.searched.is_none_or(|last| last.elapsed() >= SEARCH);
        if !self.everybody || !is_time {
            return;
        }
        self.searched = Some(Instant::now());
        for tid in threads() {
            if !self.known.contains(&tid) {
                let name = name_of(tid);
                // Heapray's own threads do not belong to the program.
                if name.starts_with("heapray") {
                    self.known.insert(tid);
                } else {
                    self.add(tid, name);
                }
            }
        }
    }

    fn add(&mut self, tid: u32, name: String) {
        if !self.known.insert(tid) {
            return;
        }
        let now = cpu_ns_of(tid).unwrap_or(0);
        // A thread that is found late has worked before its first reading. A thread that exists at the start has worked for
        // something else.
        let first_ns = if self.moments.is_empty() { now } else { 0 };
        let sampler = Sampler::new(INTERVAL_NS).and_then(|mut sampler| {
            sampler.resume_on(tid)?;
            Ok(sampler)
        });
        self.workers.push(Worker {
            tid,
            name,
            first_ns,
            last_ns: now,
            sampler: sampler.inspect_err(|error| self.error = Some(*error)).ok(),
        });
    }

    fn look(&mut self) {
        for worker in &mut self.workers {
            // A worker that has ended keeps its last time.
            if let Some(now) = cpu_ns_of(worker.tid) {
                worker.last_ns = now.max(worker.last_ns);
            }
        }
        self.moments.push(Moment {
            at_ns: u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            rss: resident().unwrap_or(0),
            cpu_ns: self.workers.iter().map(Worker::cpu_ns).collect(),
        });
        if self.moments.len() > MOST_MOMENTS {
            thin(&mut self.moments);
            self.step *= 2;
        }
    }
}

/// Joins pairs of moments into the later one, with the larger of their sizes.
fn thin(moments: &mut Vec<Moment>) {
    let mut thinned = Vec::with_capacity(MOST_MOMENTS + 1);
    let mut before: Option<Moment> = None;
    for mut moment in moments.drain(..) {
        match before.take() {
            Some(earlier) => {
                moment.rss = moment.rss.max(earlier.rss);
                thinned.push(moment);
            }
            None => before = Some(moment),
        }
    }
    thinned.extend(before);
    *moments = thinned;
}

fn cpu_ns_of(tid: u32) -> Option<u64> {
    arch::cpu_ns_of(tid)
}

/// Returns the numbers of the process's threads, or none where the system does not list them.
fn threads() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut threads: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
    threads.sort_unstable();
    threads
}

fn name_of(tid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/self/task/{tid}/comm"));
    let name = name.map(|name| name.trim_end().to_owned());
    name.unwrap_or_else(|_| format!("thread {tid}"))
}

/// Returns the calling thread's name, as the kernel has it.
pub(super) fn own_name() -> String {
    let name = sys::thread_name();
    let length = name.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&name[..length.unwrap_or(name.len())]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_moments_become_one_with_the_larger_size() {
        let mut moments: Vec<Moment> = [(1, 10), (2, 30), (3, 20), (4, 5), (5, 7)]
            .map(|(at_ns, rss)| Moment {
                at_ns,
                rss,
                cpu_ns: vec![at_ns],
            })
            .into();
        thin(&mut moments);
        let seen: Vec<_> = moments
            .iter()
            .map(|m| (m.at_ns, m.rss, m.cpu_ns[0]))
            .collect();
        assert_eq!(seen, [(2, 30, 2), (4, 20, 4), (5, 7, 5)]);
    }
}
