//! Tests that the profiler's own work does not appear in the service's capture: neither its set-up nor its requests. Each
//! test runs in a process of its own, because it checks everything that is recorded.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use crate::bench::{BASE, Bench, call};
use crate::support::process::{in_own_process, test_name};
use axum::Router;
use axum::routing::get;
use heapray::{OutputKey, OutputKind, Profiler, State};
use heapray_report::Report;
use heapray_report::memray;
use tokio::task::JoinSet;

/// Blocks of the service's own route. They are the control: a report must show them.
static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

#[inline(never)]
fn keep_4321() {
    KEPT.lock().unwrap().push(black_box(vec![1; 4321]));
}

async fn own_route() -> &'static str {
    keep_4321();
    "kept"
}

/// Returns the call stacks of everything recorded so far, each as its functions' names from the leaf on.
fn recorded(profiler: &Profiler) -> Vec<Vec<String>> {
    let key = OutputKey::new(OutputKind::Report).full(true);
    let capture = memray::read(profiler.output(key).unwrap()).unwrap();
    assert!(capture.complete, "{:?}", capture.report.conditions.notes);
    let report: Report = capture.report;
    let name = |frame: heapray_report::model::FrameId| {
        let function = report.frames[frame.0 as usize].function;
        report.strings.get(function).to_owned()
    };
    let stacks = report.sites.iter().map(|site| site.stack);
    stacks
        .map(|stack| report.stacks.leaf_to_root(stack).map(name).collect())
        .collect()
}

/// Checks that only the service's own route has stacks with a frame of heapray's.
#[track_caller]
fn assert_nothing_of_heapray(profiler: &Profiler) {
    let ours: Vec<_> = recorded(profiler)
        .into_iter()
        .filter(|stack| stack.iter().any(|function| function.contains("heapray::")))
        .filter(|stack| {
            !stack
                .iter()
                .any(|function| function.contains("untracked::own_route"))
        })
        .collect();
    assert!(
        ours.is_empty(),
        "{} stacks: {:#?}",
        ours.len(),
        &ours[..ours.len().min(5)]
    );
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

const ENDPOINTS: [&str; 5] = ["start", "status", "report", "flamegraph", "stats"];

/// Sends fifty requests to every endpoint at once, without a socket.
async fn fifty_of_each(app: &Router) {
    for endpoint in ENDPOINTS {
        let mut calls = JoinSet::new();
        for _ in 0..50 {
            let app = app.clone();
            calls.spawn(async move { call(&app, endpoint).await.status });
        }
        while let Some(status) = calls.join_next().await {
            assert_eq!(status.unwrap(), 200, "{endpoint}");
        }
    }
}

/// Sends the same requests over sockets.
fn fifty_of_each_from(address: SocketAddr) {
    for endpoint in ENDPOINTS {
        let method = if endpoint == "start" { "POST" } else { "GET" };
        std::thread::scope(|scope| {
            for _ in 0..25 {
                scope.spawn(move || {
                    for _ in 0..2 {
                        let mut socket = TcpStream::connect(address).unwrap();
                        write!(
                            socket,
                            "{method} {BASE}/{endpoint} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\
                             connection: close\r\n\r\n"
                        )
                        .unwrap();
                        let mut answer = Vec::new();
                        socket.read_to_end(&mut answer).unwrap();
                        assert!(answer.starts_with(b"HTTP/1.1 200"), "{endpoint}");
                    }
                });
            }
        });
    }
}

#[test]
fn setting_the_profiler_up_while_it_records_is_not_recorded() {
    in_own_process(test_name!(), set_the_profiler_up);
}

fn set_the_profiler_up() {
    let bench = Bench::new();
    let profiler = &bench.profiler;
    profiler.start().unwrap();
    let app = Router::new().route("/own", get(own_route));
    let apps = [
        profiler.mount(app.clone()),
        profiler.mount_documented(app.clone(), profiler.openapi()),
        profiler.router(),
        Router::new().fallback_service(profiler.service()),
        app.layer(profiler.layer()),
        heapray::mount(Router::new()),
    ];
    let copies = apps.clone();
    assert!(!heapray::init().is_enabled());
    heapray::builder()
        .ignore_environment()
        .enabled(true)
        .config()
        .unwrap();
    let second = heapray::builder()
        .ignore_environment()
        .enabled(true)
        .wait_for_start()
        .build()
        .unwrap();
    assert!(second.start().is_err());
    assert_eq!(second.status().state, State::Stopped);
    drop(second);
    assert_eq!(profiler.start().unwrap().state, State::Recording);
    assert_eq!(profiler.status().state, State::Recording);
    assert!(!profiler.stats().unwrap().is_empty());
    profiler.flamegraph().unwrap();
    assert!(profiler.serve("127.0.0.1:0").unwrap().is_some());
    assert_nothing_of_heapray(profiler);
    drop((apps, copies));
}

#[test]
fn requests_to_the_profiler_are_not_recorded_and_leave_nothing_behind() {
    in_own_process(test_name!(), requests_to_the_profiler);
}

fn requests_to_the_profiler() {
    let bench = Bench::with(|builder| builder.routes_below_prefix(true));
    let profiler = bench.profiler.clone();
    let runtime = runtime();
    profiler.start().unwrap();
    let app = profiler.mount(Router::new().route("/own", get(own_route)));
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
        .unwrap();
    let of_the_service = listener.local_addr().unwrap();
    let of_the_profiler = profiler.serve("127.0.0.1:0").unwrap().unwrap();
    let served = app.clone();
    runtime.spawn(async move { axum::serve(listener, served).await });

    let round = || {
        runtime.block_on(fifty_of_each(&app));
        fifty_of_each_from(of_the_service);
        fifty_of_each_from(of_the_profiler);
    };
    // After these rounds, the service's runtime has allocated the memory that it keeps for reuse.
    round();
    round();
    let mut seen = Vec::new();
    let mut leaves_nothing = || {
        // 750 requests a round that left 100 bytes each would be more than this.
        let most = profiler.status().live.bytes + (64 << 10);
        round();
        // The server closes a connection shortly after its client, and until then it has buffers of 8 KiB.
        let closed = (0..600).any(|_| {
            let live = profiler.status().live.bytes;
            if live > most {
                std::thread::sleep(Duration::from_millis(50));
            }
            live <= most
        });
        let live = profiler.status().live.bytes;
        seen.push(format!("{live} of at most {most}"));
        closed
    };
    // The runtime keeps more memory after a round with more concurrent work than before. A leak shows in every round.
    assert!((0..5).any(|_| leaves_nothing()), "{seen:?}");
    assert_nothing_of_heapray(&profiler);

    // The control: the service's own allocation is recorded, and below the prefix its stack has frames of heapray's.
    let answer = runtime.block_on(crate::bench::get(&app, "/pub/job/a/1/own"));
    assert_eq!(answer.text(), "kept");
    let stacks = recorded(&profiler);
    let own = stacks
        .iter()
        .find(|stack| stack.iter().any(|function| function.contains("keep_4321")))
        .expect("the service's own allocation is recorded");
    assert!(
        own.iter().any(|function| function.contains("heapray::")),
        "{own:#?}"
    );
    drop(runtime);
}

#[test]
fn an_untracked_thread_that_grows_a_recorded_block_ends_it() {
    in_own_process(test_name!(), grow_a_block_untracked);
}

fn grow_a_block_untracked() {
    use heapray::capture::untracked;
    let bench = Bench::new();
    bench.profiler.start().unwrap();
    let mut text = black_box(String::with_capacity(54_321));
    let with_text = bench.profiler.status().live;
    let guard = untracked::enter();
    text.reserve_exact(black_box(100_000));
    drop(guard);
    let without = bench.profiler.status().live;
    assert!(
        with_text.bytes - without.bytes >= 54_321 - 4096,
        "{with_text:?} {without:?}"
    );
    drop(text);
}
