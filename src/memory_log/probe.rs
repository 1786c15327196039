//! Memory of a process and its descendants, from `/proc`, which psutil (and so mprof) reads too.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;

use super::descendants;
use crate::config::{MemoryChildren, MemoryMetric};
use crate::os::memory::resident_by;
use crate::os::{helper, process};

/// Probe that measures one process again and again.
#[derive(Debug)]
pub struct Probe {
    process: Process,
    children: MemoryChildren,
    metric: MemoryMetric,
    /// Open files of the descendants that were alive last time. If a number was given to another process meanwhile, the open
    /// file is still the former's.
    known: HashMap<u32, Process>,
}

/// Result of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readings {
    /// Bytes of the process, and of its descendants if they are included.
    pub memory: u64,
    /// Resident bytes of the process itself, with any metric.
    pub rss: u64,
    /// Bytes of each descendant that is alive, if they have lines.
    pub children: Vec<(u32, u64)>,
}

/// Process, held by its open `statm`.
#[derive(Debug)]
struct Process {
    pid: u32,
    statm: File,
}

impl Probe {
    /// Makes a probe for the process of this number.
    ///
    /// # Errors
    /// The process does not exist, or there is no `/proc`.
    pub fn new(pid: u32, children: MemoryChildren, metric: MemoryMetric) -> io::Result<Probe> {
        let process = Process::open(pid)?;
        let rss = process.rss()?;
        // Fail here if the kernel has no such figures (before 4.14) or does not let us read them.
        process.bytes(metric, rss)?;
        Ok(Probe {
            process,
            children,
            metric,
            known: HashMap::new(),
        })
    }

    /// Returns the present memory, or `None` if the process has ended.
    pub fn read(&mut self) -> Option<Readings> {
        let rss = self.process.rss().ok()?;
        let memory = self.process.bytes(self.metric, rss).ok()?;
        let mut readings = Readings {
            memory,
            rss,
            children: Vec::new(),
        };
        if self.children == MemoryChildren::None {
            return Some(readings);
        }
        let own = self.process.pid == std::process::id();
        if own && !process::has_children() {
            self.known.clear();
            return Some(readings);
        }
        let mut alive = descendants::of(self.process.pid);
        if own {
            // The profiler's own are none of the service's work.
            let helpers = helper::alive();
            alive.retain(|pid| !helpers.contains(pid));
        }
        self.known.retain(|pid, _| alive.contains(pid));
        for pid in alive {
            let Some(bytes) = self.child(pid) else {
                continue;
            };
            if self.children.are_included() {
                readings.memory += bytes;
            }
            if self.children.have_lines() {
                readings.children.push((pid, bytes));
            }
        }
        Some(readings)
    }

    /// Returns the bytes of a descendant, or `None` if it is gone, or a zombie, which has no memory.
    fn child(&mut self, pid: u32) -> Option<u64> {
        if let Some(known) = self.known.get(&pid) {
            match known.rss() {
                Ok(rss @ 1..) => return known.bytes(self.metric, rss).ok(),
                Ok(0) => return None,
                // Another process may have the number now.
                Err(_) => drop(self.known.remove(&pid)),
            }
        }
        let process = Process::open(pid).ok()?;
        let rss = process.rss().ok().filter(|&rss| rss > 0)?;
        let bytes = process.bytes(self.metric, rss).ok();
        self.known.insert(pid, process);
        bytes
    }
}

impl Process {
    fn open(pid: u32) -> io::Result<Process> {
        let statm = File::open(format!("/proc/{pid}/statm"))?;
        Ok(Process { pid, statm })
    }

    fn rss(&self) -> io::Result<u64> {
        resident_by(&self.statm)
    }

    /// Returns the bytes of the process by `metric`. The process has `rss` resident bytes.
    fn bytes(&self, metric: MemoryMetric, rss: u64) -> io::Result<u64> {
        let prefixes: &[&str] = match metric {
            MemoryMetric::Rss => return Ok(rss),
            MemoryMetric::Pss => &["Pss:"],
            MemoryMetric::Uss => &["Private_Clean:", "Private_Dirty:", "Private_Hugetlb:"],
        };
        // Opened each time: a file that was opened before an `execve` shows the former program.
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid))?;
        Ok(sum(&rollup, prefixes))
    }
}

/// Returns the sum of the fields of those names, `<name>: <number> kB` per line, in bytes.
fn sum(rollup: &str, names: &[&str]) -> u64 {
    let field = |line: &str| {
        let value = names.iter().find_map(|name| line.strip_prefix(name))?;
        value.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    rollup.lines().filter_map(field).sum::<u64>() * 1024
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_rollup_is_summed_by_field() {
        let rollup = "55-7f ---p 0 00:00 0 [rollup]\nRss:  9 kB\nPss:   5 kB\nPss_Dirty: 4 kB\n\
                      Private_Clean:   1 kB\nPrivate_Dirty:  2 kB\nPrivate_Hugetlb:  0 kB\n";
        assert_eq!(sum(rollup, &["Pss:"]), 5 << 10);
        assert_eq!(sum(rollup, &["Private_Clean:", "Private_Dirty:"]), 3 << 10);
    }

    #[test]
    fn a_process_that_shares_pages_has_more_rss_than_pss_than_uss() {
        let child = Command::new("sleep").arg("600").spawn();
        let mut child = child.unwrap();
        let read = |metric| {
            let mut probe = Probe::new(child.id(), MemoryChildren::None, metric).unwrap();
            probe.read().unwrap().memory
        };
        // A process that has just begun grows from one reading to the next.
        let mut before = 0;
        while before < 256 << 10 || before != read(MemoryMetric::Rss) {
            before = read(MemoryMetric::Rss);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let [rss, pss, uss] = [MemoryMetric::Rss, MemoryMetric::Pss, MemoryMetric::Uss].map(read);
        assert!(rss >= pss && pss >= uss && uss > 0, "{rss} {pss} {uss}");
        let mut probe = Probe::new(child.id(), MemoryChildren::None, MemoryMetric::Rss).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(probe.read(), None);
    }

    #[test]
    fn children_appear_are_summed_and_vanish() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 600 & echo $!; wait; echo; read wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = io::BufRead::lines(io::BufReader::new(shell.stdout.take().unwrap()));
        let sleeper: u32 = lines.next().unwrap().unwrap().parse().unwrap();
        let mut probe = Probe::new(shell.id(), MemoryChildren::Both, MemoryMetric::Rss).unwrap();
        let both = probe.read().unwrap();
        let [(pid, bytes)] = both.children[..] else {
            panic!("{both:?}");
        };
        assert_eq!(pid, sleeper);
        assert_eq!(both.memory, both.rss + bytes);
        // The shell's own `kill`: a system may lack the program of that name.
        let kill = format!("kill {sleeper}");
        let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(status.success());
        lines.next();
        let alone = probe.read().unwrap();
        assert_eq!((alone.children.len(), alone.memory), (0, alone.rss));
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
