//! Writes the page of a made-up parallel run, for tests in a browser and for viewing.
//!
//! `cargo run -p heapray-report --example sample_parallel -- page.html [TASKS] [empty]`
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{BufWriter, Write};

use heapray_report::parallel::{
    AllocationSite, Allocations, FunctionTime, Moment, Outcome, ParallelReport, Task, Worker,
    write_page,
};

const NAMES: [&str; 13] = [
    "read granule",
    "decode",
    "calibrate",
    "resample to grid",
    "cloud mask",
    "write chunk",
    "checksum",
    "merge statistics",
    "fetch auxiliary data",
    "interpolate",
    "sort",
    "<img src=x onerror=alert(1)>",
    "compress",
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a file to write to");
    let count: u64 = arguments
        .next()
        .map_or(2000, |count| count.parse().unwrap());
    let is_empty = arguments.next().is_some();
    let report = if is_empty { empty() } else { full(count) };
    let mut out = BufWriter::new(File::create(path).unwrap());
    write_page(&report, &mut out).unwrap();
    out.flush().unwrap();
}

fn empty() -> ParallelReport {
    ParallelReport {
        title: "batch::nothing".to_owned(),
        producer: "heapray".to_owned(),
        duration_ns: 1_200_000,
        outcome: Outcome::Panicked,
        pool: "all threads of the process".to_owned(),
        ..ParallelReport::default()
    }
}

fn full(count: u64) -> ParallelReport {
    let mut random = Random(7);
    let workers = 8u32;
    let each = count / u64::from(workers) / 2;
    let step = 12_000_000_000 / each.max(1);
    let mut tasks = Vec::new();
    for worker in 0..workers {
        let mut at = random.below(step);
        for nth in 0..each {
            let length = step * (30 + random.below(60)) / 100;
            let name = ((nth * 3 / each.max(1)) * 3 + random.below(4)) as u32;
            let task = |depth, name, start_ns, end_ns| Task {
                worker,
                name,
                depth,
                start_ns,
                end_ns,
            };
            tasks.push(task(0, name, at, at + length));
            let inner = at + length / 5;
            tasks.push(task(1, 12 - name % 4, inner, inner + length / 2));
            at += step;
        }
    }
    let duration_ns = 12_600_000_000;
    let moments = (0..630u64).map(|nth| {
        let at_ns = (nth + 1) * 20_000_000;
        let cpu =
            |worker: u64| at_ns * (50 + worker * 6) / 100 + (nth * 7919 * (worker + 1)) % 9_000_000;
        Moment {
            at_ns,
            rss: 180_000_000 + nth * 900_000 + (nth % 90) * 2_400_000,
            cpu_ns: (0..u64::from(workers)).map(cpu).collect(),
        }
    });
    let functions = (0..180u64).map(|nth| {
        let own = 3_000_000_000 / (nth + 1);
        FunctionTime {
            name: format!(
                "granule::stage_{}::<granule::Band as granule::Pixel>::step_{nth}",
                nth % 9
            ),
            file: format!("/build/granule/src/stage_{}.rs", nth % 9),
            line: 10 + nth as u32,
            own: (own / 1_000_000, own),
            cumulative: (own / 700_000, own * 10 / 7),
        }
    });
    let sites = (0..60u64).map(|nth| AllocationSite {
        name: format!("granule::buffer::Buffer<T>::with_{nth}"),
        file: "/build/granule/src/buffer.rs".to_owned(),
        line: 20 + nth as u32,
        count: 90_000 / (nth + 1),
        bytes: 4_200_000_000 / (nth + 1),
    });
    ParallelReport {
        title: "granule::process_all".to_owned(),
        producer: "heapray 0.1.0".to_owned(),
        command_line: "/app/granule --input /data/S3A_SL_1_RBT.SAFE --output /data/out.zarr"
            .to_owned(),
        pid: 4711,
        start_ms: 1_795_300_000_000,
        duration_ns,
        pool: "tokio, 4 workers of 2 threads".to_owned(),
        workers: (0..workers)
            .map(|worker| Worker {
                name: format!("worker-{}.{}", worker / 2, worker % 2),
                tid: 4720 + worker,
                cpu_ns: duration_ns * (50 + u64::from(worker) * 6) / 100,
                allocated: Some((40_000 - u64::from(worker) * 900, 2_100_000_000)),
            })
            .collect(),
        task_names: NAMES.map(str::to_owned).to_vec(),
        tasks,
        moments: moments.collect(),
        functions: functions.collect(),
        samples: 21_412,
        allocations: Some(Allocations {
            total: (296_000, 17_000_000_000),
            sites: sites.collect(),
        }),
        notes: vec!["heapray samples at the kernel's ticks of 4 ms.".to_owned()],
        ..ParallelReport::default()
    }
}
