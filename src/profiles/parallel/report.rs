//! Makes the page from the observations.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use heapray_report::parallel::{FunctionTime, Outcome, ParallelReport, Task, Worker, write_page};

use super::allocations::Found;
use super::monitor::Observed;
use super::tasks::Recorded;
use crate::os::command_line;

/// Largest number of functions on a page.
const MOST_FUNCTIONS: usize = 2000;

/// Data of a function that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) title: String,
    pub(super) started: SystemTime,
    pub(super) duration_ns: u64,
    pub(super) outcome: Outcome,
    pub(super) pool: String,
    pub(super) note: Option<String>,
    pub(super) observed: Observed,
    pub(super) recorded: Recorded,
    pub(super) allocations: Option<Found>,
}

impl Ended {
    /// Writes the page.
    pub(super) fn write(self, path: &Path) -> io::Result<()> {
        let report = self.into_report();
        let mut out = BufWriter::new(File::create(path)?);
        write_page(&report, &mut out)?;
        out.flush()
    }

    fn into_report(self) -> ParallelReport {
        let mut notes: Vec<String> = self.note.into_iter().collect();
        if let Some(error) = self.observed.error {
            notes.push(format!("Some or all workers were not sampled: {error}."));
        }
        if self.observed.lost > 0 {
            let lost = self.observed.lost;
            notes.push(format!("{lost} samples were lost for lack of memory."));
        }
        let (allocations, allocated) = self.allocations.unzip();
        let mut workers = workers(&self.observed, &self.recorded);
        for worker in &mut workers {
            let of = allocated.as_ref();
            worker.allocated = of.map(|of| of.get(&worker.tid).copied().unwrap_or_default());
        }
        let rows: HashMap<u32, u32> = (0..).zip(&workers).map(|(row, w)| (w.tid, row)).collect();
        let end = self.duration_ns;
        let tasks = self.recorded.ran.iter().filter_map(|ran| {
            Some(Task {
                worker: *rows.get(&ran.tid)?,
                name: ran.name,
                depth: ran.depth,
                start_ns: ran.start_ns.min(end),
                end_ns: ran.end_ns.min(end),
            })
        });
        let stats = &self.observed.stats;
        let functions = stats
            .functions()
            .take(MOST_FUNCTIONS)
            .map(|function| FunctionTime {
                name: function.name.clone(),
                file: function.file.clone(),
                line: function.line,
                own: (function.own.samples, function.own.ns),
                cumulative: (function.cumulative.samples, function.cumulative.ns),
            });
        let since = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        ParallelReport {
            title: self.title,
            producer: concat!("heapray ", env!("CARGO_PKG_VERSION")).to_owned(),
            command_line: command_line::read(),
            pid: std::process::id(),
            start_ms: u64::try_from(since.as_millis()).unwrap_or(0),
            duration_ns: self.duration_ns,
            pool: self.pool,
            outcome: self.outcome,
            tasks: tasks.collect(),
            functions: functions.collect(),
            samples: stats.total().samples,
            workers,
            task_names: self.recorded.names,
            tasks_dropped: self.recorded.dropped,
            moments: self.observed.moments,
            allocations: allocations.clone(),
            notes,
        }
    }
}

/// Returns the watched threads, and those that are only known by tasks because they ended before the monitor saw them.
fn workers(observed: &Observed, recorded: &Recorded) -> Vec<Worker> {
    let watched = observed.workers.iter().map(|worker| Worker {
        name: worker.name.clone(),
        tid: worker.tid,
        cpu_ns: worker.cpu_ns(),
        allocated: None,
    });
    let mut workers: Vec<Worker> = watched.collect();
    let mut others: Vec<(&u32, &String)> = recorded.threads.iter().collect();
    others.retain(|(tid, _)| observed.workers.iter().all(|worker| worker.tid != **tid));
    others.sort_unstable();
    workers.extend(others.into_iter().map(|(&tid, name)| Worker {
        name: name.clone(),
        tid,
        ..Worker::default()
    }));
    workers
}
