//! What contexts cost: to enter and to leave one, a run of one, and the layer that puts requests into those of their routes.

use std::future::ready;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Waker};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use axum::routing::get;
use heapray::InContext;
use heapray_bench_workloads::{Result, thread_cpu};
use tower::ServiceExt;
use tower::util::MapResponseLayer;

use super::{directory, measured};
use crate::runs::median;

const ENTERED: u32 = 5_000_000;
const RUNS: u32 = 200_000;
const REQUESTS: u32 = 4_000;
const ROUNDS: usize = 21;
/// Blocks that a request allocates itself.
const BLOCKS: usize = 100;

/// Ways to record, each with the bytes between two samples.
const MODES: [(&str, Option<u64>); 3] = [
    ("off", None),
    ("samples, 512 KiB", Some(512 << 10)),
    ("every allocation", Some(0)),
];

/// Prints the table.
pub(crate) fn section() -> Result<()> {
    println!("\n## Contexts\n");
    println!(
        "CPU time of the thread, medians of {ROUNDS} rounds. A request allocates {BLOCKS} blocks, and passes a router of axum.\n"
    );
    println!(
        "| recorded | enter and leave | a run, from begin to end | a request | with a layer that does nothing | by route |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for (name, _) in MODES {
        let values = measured(&["contexts", name])?;
        println!(
            "| {name} | {:.1} ns | {:.0} ns | {:.0} ns | {:+.0} ns | {:+.0} ns |",
            values.get("enter"),
            values.get("run"),
            values.get("plain"),
            values.get("nothing"),
            values.get("by_route"),
        );
    }
    Ok(())
}

/// Measures in this process.
pub(crate) fn child(mode: &str) -> Result<()> {
    let sample = MODES.iter().find(|(name, _)| *name == mode);
    let _profiler = match sample.and_then(|(_, sample)| *sample) {
        Some(sample) => {
            let builder = heapray::builder().ignore_environment().enabled(true);
            let builder = builder.dir(directory(std::process::id()));
            Some(builder.sample(sample).try_init()?)
        }
        None => None,
    };
    let context = heapray::context([("route", "GET /")]);
    let mut enter = Vec::new();
    let mut run = Vec::new();
    for _ in 0..ROUNDS {
        enter.push(each(ENTERED, || {
            let _guard = black_box(context).enter();
            black_box(());
        }));
        run.push(each(RUNS, || {
            let future = pin!(ready(()).in_context(black_box(context)));
            let _ = black_box(future.poll(&mut Context::from_waker(Waker::noop())));
        }));
    }
    println!("enter={}\nrun={}", median(enter), median(run));
    requests()
}

/// Calls three routers in turns: without a layer, with one that only puts bodies into a box as ours does, and by route.
fn requests() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let plain: Router = Router::new().route("/orders/{id}", get(order));
    let boxed = MapResponseLayer::new(|response: Response| response.map(Body::new));
    let nothing = plain.clone().route_layer(boxed);
    let by_route = plain.clone().route_layer(heapray::by_route());
    let apps = [&plain, &nothing, &by_route];
    let call = |app: &Router| {
        runtime.block_on(async {
            let request = Request::get("/orders/7").body(Body::empty());
            let response = app.clone().oneshot(request.unwrap_or_default()).await;
            let body = response.unwrap_or_else(|never| match never {}).into_body();
            black_box(to_bytes(body, 1 << 20).await.is_ok());
        });
    };
    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 0..ROUNDS {
        let mut now = [0.0; 3];
        for turn in 0..apps.len() {
            let at = (round + turn) % apps.len();
            now[at] = each(REQUESTS, || call(apps[at]));
        }
        // What a layer adds is compared within a round: the machine is not equally fast in all of them.
        let [plain, nothing, by_route] = now;
        for (times, time) in times
            .iter_mut()
            .zip([plain, nothing - plain, by_route - plain])
        {
            times.push(time);
        }
    }
    let [plain, nothing, by_route] = times.map(median);
    println!("plain={plain}\nnothing={nothing}\nby_route={by_route}");
    Ok(())
}

async fn order() -> String {
    let lines: Vec<String> = (0..BLOCKS).map(|line| format!("line {line}")).collect();
    black_box(&lines).concat()
}

/// Returns the CPU time of one call of `work`, in nanoseconds.
fn each(count: u32, mut work: impl FnMut()) -> f64 {
    let start = thread_cpu();
    for _ in 0..count {
        work();
    }
    (thread_cpu() - start).as_nanos() as f64 / f64::from(count)
}
