//! Tables as columns, which compress well and are quick to read in the page.

use serde::Serialize;

use super::{ParallelReport, Task};

/// All data of a report for the page.
#[derive(Serialize)]
pub(super) struct Data<'r> {
    #[serde(flatten)]
    report: &'r ParallelReport,
    tasks: Tasks,
    moments: Moments,
}

/// Tasks by worker, depth and start; starts are differences to the task before in the same row.
#[derive(Serialize, Default)]
struct Tasks {
    worker: Vec<u32>,
    depth: Vec<u32>,
    name: Vec<u32>,
    start: Vec<u64>,
    length: Vec<u64>,
}

#[derive(Serialize, Default)]
struct Moments {
    at: Vec<u64>,
    rss: Vec<u64>,
    /// CPU time since the moment before, by worker.
    cpu: Vec<Vec<u64>>,
}

impl<'r> Data<'r> {
    pub(super) fn of(report: &'r ParallelReport) -> Data<'r> {
        Data {
            report,
            tasks: tasks(&report.tasks),
            moments: moments(report),
        }
    }
}

fn tasks(tasks: &[Task]) -> Tasks {
    let mut sorted: Vec<&Task> = tasks.iter().collect();
    sorted.sort_by_key(|task| (task.worker, task.depth, task.start_ns));
    let mut columns = Tasks::default();
    let mut before: Option<&Task> = None;
    for task in sorted {
        let same =
            before.filter(|before| (before.worker, before.depth) == (task.worker, task.depth));
        columns.worker.push(task.worker);
        columns.depth.push(task.depth);
        columns.name.push(task.name);
        columns
            .start
            .push(task.start_ns - same.map_or(0, |same| same.start_ns));
        columns
            .length
            .push(task.end_ns.saturating_sub(task.start_ns));
        before = Some(task);
    }
    columns
}

fn moments(report: &ParallelReport) -> Moments {
    let moments = &report.moments;
    let cpu = |worker: usize| {
        let mut before = 0;
        let each = moments.iter().map(|moment| {
            let now = moment.cpu_ns.get(worker).copied().unwrap_or(before);
            let used = now.saturating_sub(before);
            before = now.max(before);
            used
        });
        each.collect()
    };
    Moments {
        at: moments.iter().map(|moment| moment.at_ns).collect(),
        rss: moments.iter().map(|moment| moment.rss).collect(),
        cpu: (0..report.workers.len()).map(cpu).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::{Moment, Worker};

    #[test]
    fn tasks_are_rows_of_differences() {
        let task = |worker, depth, start_ns, end_ns| Task {
            worker,
            name: depth,
            depth,
            start_ns,
            end_ns,
        };
        let columns = tasks(&[
            task(1, 0, 50, 60),
            task(0, 1, 12, 13),
            task(0, 0, 30, 31),
            task(0, 0, 10, 20),
        ]);
        assert_eq!(columns.worker, [0, 0, 0, 1]);
        assert_eq!(columns.depth, [0, 0, 1, 0]);
        assert_eq!(columns.start, [10, 20, 12, 50]);
        assert_eq!(columns.length, [10, 1, 1, 10]);
    }

    #[test]
    fn a_worker_that_came_late_has_used_nothing_before() {
        let moment = |at_ns, cpu_ns: &[u64]| Moment {
            at_ns,
            rss: 1,
            cpu_ns: cpu_ns.to_vec(),
        };
        let report = ParallelReport {
            workers: vec![Worker::default(), Worker::default()],
            moments: vec![moment(1, &[5]), moment(2, &[9, 4]), moment(3, &[9, 6])],
            ..ParallelReport::default()
        };
        assert_eq!(moments(&report).cpu, [[5, 4, 0], [0, 4, 2]]);
    }
}
