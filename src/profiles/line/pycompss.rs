//! PyCOMPSs' additions to memory_profiler in `@profile`: the machine's memory, times, and a line of eight fields.

use std::time::UNIX_EPOCH;

use super::calls::Job;
use super::function::Source;

/// Returns the used memory of the machine, like psutil: all memory minus what could be had without swapping.
pub(super) fn used_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    parse(&text).unwrap_or(0)
}

fn parse(meminfo: &str) -> Option<u64> {
    let field = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    };
    field("MemTotal:")?.checked_sub(field("MemAvailable:")?)
}

/// JobFigures that a job's reports have in common.
#[derive(Debug)]
pub(super) struct JobFigures {
    start: f64,
    elapsed: f64,
    initial: u64,
    last: u64,
}

impl JobFigures {
    pub(super) fn of(job: &Job) -> JobFigures {
        let start = job.time.duration_since(UNIX_EPOCH).unwrap_or_default();
        JobFigures {
            start: start.as_secs_f64(),
            elapsed: job.since.elapsed().as_secs_f64(),
            initial: job.memory,
            last: used_memory(),
        }
    }

    /// Returns the lines after the table.
    pub(super) fn lines(&self) -> String {
        format!(
            "Job name: {NAME}\nTask start time: {:.7}\nElapsed time: {:.7}\nInitial memory: {}\nFinal memory: {}\n",
            self.start, self.elapsed, self.initial, self.last
        )
    }

    /// Returns the short form: `start job file function elapsed initial final peak MiB`.
    pub(super) fn line(&self, source: &Source, peak: &str) -> String {
        format!(
            "{:.7} {NAME} {} {} {:.7} {} {} {peak}\n",
            self.start, source.file, source.name, self.elapsed, self.initial, self.last
        )
    }
}

/// Name of the main program: PyCOMPSs uses it for everything that is not a task on a worker.
const NAME: &str = "master";

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn used_is_total_less_available() {
        let text = "MemTotal:       16000 kB\nMemFree:   1 kB\nMemAvailable:   6000 kB\n";
        assert_eq!(parse(text), Some(10_000 * 1024));
        assert_eq!(parse("MemTotal: 5 kB\n"), None);
    }
}
