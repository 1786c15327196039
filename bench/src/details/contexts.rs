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
use heapray::{InContext, Profiler};
use heapray_bench_workloads::{Result, thread_cpu};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;
use tower::util::MapResponseLayer;

use super::{directory, measured};
use crate::callgrind;
use crate::runs::median;

const ENTERED: u32 = 5_000_000;
const RUNS: u32 = 200_000;
const REQUESTS: u32 = 4_000;
const ROUNDS: usize = 21;
/// Requests whose instructions are counted: callgrind is slow.
const COUNTED: u32 = 1_000;
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
    instructions()
}

/// Records in the way of this name.
fn recording(mode: &str) -> Result<Option<Profiler>> {
    let mode = MODES.iter().find(|(name, _)| *name == mode);
    let Some(sample) = mode.and_then(|(_, sample)| *sample) else {
        return Ok(None);
    };
    let builder = heapray::builder().ignore_environment().enabled(true);
    let builder = builder.dir(directory(std::process::id()));
    Ok(Some(builder.sample(sample).try_init()?))
}

/// Measures in this process.
pub(crate) fn child(mode: &str) -> Result<()> {
    let _profiler = recording(mode)?;
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

/// Requests to a service whose router has no layer, one that only puts bodies into a box as ours does, or `by_route`.
struct Service {
    runtime: Runtime,
    apps: [(&'static str, Router); 3],
}

impl Service {
    fn new() -> Result<Service> {
        let plain: Router = Router::new().route("/orders/{id}", get(order));
        let boxed = MapResponseLayer::new(|response: Response| response.map(Body::new));
        let nothing = plain.clone().route_layer(boxed);
        let by_route = plain.clone().route_layer(heapray::by_route());
        let apps = [
            ("plain", plain),
            ("nothing", nothing),
            ("by_route", by_route),
        ];
        Ok(Service {
            runtime: Builder::new_current_thread().build()?,
            // As `axum::serve` does, so that the layers are not added anew for each request.
            apps: apps.map(|(name, app)| (name, app.with_state(()))),
        })
    }

    fn call(&self, app: &Router) {
        self.runtime.block_on(async {
            let request = Request::get("/orders/7").body(Body::empty());
            let response = app.clone().oneshot(request.unwrap_or_default()).await;
            let body = response.unwrap_or_else(|never| match never {}).into_body();
            black_box(to_bytes(body, 1 << 20).await.is_ok());
        });
    }

    /// Sends many requests. A separate function, so that callgrind finds it by name.
    #[inline(never)]
    fn call_often(&self, app: &Router, count: u32) {
        for _ in 0..count {
            self.call(app);
        }
    }
}

/// Calls the three routers in turns.
fn requests() -> Result<()> {
    let service = Service::new()?;
    let apps = &service.apps;
    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 0..ROUNDS {
        let mut now = [0.0; 3];
        for turn in 0..apps.len() {
            let at = (round + turn) % apps.len();
            now[at] = each(REQUESTS, || service.call(&apps[at].1));
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

/// Prints the instructions of a request.
fn instructions() -> Result<()> {
    println!("\nInstructions of a request, by callgrind:\n");
    if let Some(missing) = callgrind::missing() {
        println!("({missing})");
        return Ok(());
    }
    println!("| recorded | a request | with a layer that does nothing | by route |");
    println!("|---|--:|--:|--:|");
    for (mode, _) in MODES {
        let of = |layer: &str| -> Result<f64> {
            let sum = |count: u32| {
                let arguments = ["child", "contexts", mode, layer, &count.to_string()];
                callgrind::of_this_program("*Service*call_often*", &arguments, &[])
            };
            // All other instructions cancel out.
            Ok((sum(3 * COUNTED)? - sum(COUNTED)?) / f64::from(2 * COUNTED))
        };
        let plain = of("plain")?;
        println!(
            "| {mode} | {plain:.0} | {:+.0} | {:+.0} |",
            of("nothing")? - plain,
            of("by_route")? - plain
        );
    }
    Ok(())
}

/// Sends requests to one of the routers, whose instructions are counted.
pub(crate) fn counted(mode: &str, layer: &str, count: &str) -> Result<()> {
    let _profiler = recording(mode)?;
    let service = Service::new()?;
    let app = service.apps.iter().find(|(name, _)| *name == layer);
    let (_, app) = app.ok_or("plain|nothing|by_route")?;
    service.call_often(app, count.parse()?);
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
