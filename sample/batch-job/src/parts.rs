//! The parts of the job.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use crate::child;
use crate::load::{self, LINES};
use crate::stations::Measurement;

type Done = Result<(), Box<dyn Error>>;

/// Mean temperatures by station.
type Means = BTreeMap<String, f64>;

/// Runs the whole job.
pub(crate) fn all() -> Done {
    let measurements = load::load(LINES);
    let means = {
        let _span = heapray::memory_span("batch_job.compute");
        runtime()?.block_on(means(Arc::new(measurements.clone())))?
    };
    println!(
        "{} stations, median {:.1} °C",
        means.len(),
        median(&measurements)
    );
    child::run()
}

pub(crate) fn heap() -> Done {
    let measurements = load::load_exactly(LINES / 10);
    println!("{} measurements", measurements.len());
    Ok(())
}

pub(crate) fn scope() -> Done {
    let measurements = load::load(LINES);
    let (median, report) = heapray::capture_scope("batch-report", || median(&measurements));
    let report = report?;
    println!("median {median:.1} °C");
    println!(
        "the median took {} bytes at its peak: {}",
        report.high_water.bytes,
        report.index.display()
    );
    Ok(())
}

pub(crate) fn cpu() -> Done {
    let measurements = load::load_timed(4 * LINES);
    println!(
        "{} measurements; python -m pstats load.pstats",
        measurements.len()
    );
    Ok(())
}

pub(crate) fn parallel() -> Done {
    let measurements = Arc::new(load::load(LINES));
    let means = runtime()?.block_on(means_on_workers(measurements))?;
    println!("{} stations; see batch-job.html", means.len());
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
}

/// Computes the means on two workers of one thread each, and writes a page about their work.
#[heapray::parallel_profiler(n_workers = 2, threads_per_worker = 1, report_name = "batch-job.html")]
async fn means_on_workers(
    measurements: Arc<Vec<Measurement>>,
) -> Result<Means, tokio::task::JoinError> {
    means(measurements).await
}

/// Computes the means. Each task takes a part of the stations.
async fn means(measurements: Arc<Vec<Measurement>>) -> Result<Means, tokio::task::JoinError> {
    const TASKS: usize = 16;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let measurements = Arc::clone(&measurements);
            tokio::spawn(async move {
                let _span = tracing::info_span!("sum_up", task).entered();
                sum_up(&measurements, task, TASKS)
            })
        })
        .collect();
    let mut means = Means::new();
    for task in tasks {
        means.extend(task.await?);
    }
    Ok(means)
}

/// Returns the means of those stations whose number is `task` modulo `tasks`.
fn sum_up(measurements: &[Measurement], task: usize, tasks: usize) -> Means {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for measurement in measurements {
        let number = measurement
            .station
            .rsplit(' ')
            .next()
            .and_then(|n| n.parse::<usize>().ok());
        if number.is_some_and(|number| number % tasks == task) {
            let sum = sums.entry(measurement.station.clone()).or_default();
            *sum = (sum.0 + measurement.celsius, sum.1 + 1.0);
        }
    }
    let mean = |(station, (sum, count))| (station, sum / count);
    sums.into_iter().map(mean).collect()
}

/// Returns the median. This is the job's peak: it sorts a copy of everything.
#[heapray::profile(full_report = false)]
fn median(measurements: &[Measurement]) -> f64 {
    let mut sorted = measurements.to_vec();
    sorted.sort_by(|a, b| a.celsius.total_cmp(&b.celsius));
    sorted
        .get(sorted.len() / 2)
        .map_or(f64::NAN, |middle| middle.celsius)
}
