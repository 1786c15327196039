//! Tests whose memory is counted under which context, with the endpoints' layer and without.
#![allow(clippy::unwrap_used)] // tests may panic
#[path = "../support/mod.rs"]
mod support;

mod events;
mod grpc;
mod pitfalls;
mod room;
mod runs;
mod traces;

use std::collections::BTreeMap;
use std::hint::black_box;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::{get, post};
use heapray::capture::event::Kind;
use heapray::collector::snapshot::Snapshot;
use heapray::{InContext, context, inherit};
use heapray_report::model::Tally;
use http_body_util::BodyExt;
use support::{Dir, record, turn};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

/// A size that nothing else allocates. Blocks of it have `SIZE + n` bytes.
const SIZE: usize = 7_654_300;

fn block(nth: usize) -> Vec<u8> {
    black_box(vec![1_u8; SIZE + nth])
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap()
}

/// Returns the value of `key` in a context; the empty text stands for none.
fn value<'s>(snapshot: &'s Snapshot, context: u32, key: &str) -> &'s str {
    let labels = snapshot.stacks.contexts.get(context as usize);
    let found = labels.and_then(|labels| labels.iter().find(|(known, _)| known == key));
    found.map_or("", |(_, value)| value)
}

/// Returns the live blocks of at least `SIZE` by the value of `key`; the empty value stands for none.
fn live(snapshot: &Snapshot, key: &str) -> BTreeMap<String, Tally> {
    let mut sums: BTreeMap<String, Tally> = BTreeMap::new();
    let large = |site: &&heapray::collector::snapshot::RawSite| {
        site.live.bytes >= site.live.count * SIZE as u64 && site.live.count > 0
    };
    let sites = snapshot.stacks.sites.iter().filter(large);
    for site in sites.filter(|site| site.kind != Kind::Mmap) {
        let value = value(snapshot, site.context, key);
        *sums.entry(value.to_owned()).or_default() += site.live;
    }
    sums
}

fn of(count: u64) -> Tally {
    Tally {
        count,
        bytes: count * SIZE as u64,
    }
}

#[test]
fn a_block_belongs_to_the_context_that_allocated_it_wherever_it_is_freed() {
    let _turn = turn();
    let mut kept = Vec::new();
    let snapshot = record("contexts-threads", || {
        let [outer, inner] = ["outer", "inner"].map(|name| context([("tenant", name)]));
        let guard = outer.enter();
        kept.push(block(0));
        kept.push(inner.run(|| block(0)));
        let mut freed = block(0);
        let thread = std::thread::spawn(inherit(|| block(0)));
        kept.push(thread.join().unwrap());
        // Another context frees one block, and another changes the size of one.
        inner.run(|| drop(std::mem::take(&mut freed)));
        let mut grown = vec![0_u8; SIZE / 2];
        inner.run(|| grown.reserve_exact(SIZE - grown.len()));
        kept.push(grown);
        drop(guard);
        kept.push(block(0));
    });
    let expected = [("", of(1)), ("inner", of(1)), ("outer", of(3))];
    let expected = expected.map(|(name, tally)| (name.to_owned(), tally));
    assert_eq!(live(&snapshot, "tenant"), BTreeMap::from(expected));
    drop(kept);
}

#[test]
fn tasks_that_move_between_threads_keep_their_context() {
    let _turn = turn();
    let runtime = runtime();
    let mut kept = Vec::new();
    let snapshot = record("contexts-tasks", || {
        runtime.block_on(async {
            let tasks: Vec<_> = (0..64)
                .map(|task| {
                    let tenant = context([("tenant", ["a", "b", "c", "d"][task % 4])]);
                    let work = async move {
                        let first = block(0);
                        tokio::task::yield_now().await;
                        let nested = context([("job", "nested")]);
                        let second = async {
                            tokio::task::yield_now().await;
                            block(0)
                        };
                        let (second, third) =
                            tokio::join!(second.in_context(nested), async { block(0) });
                        let never = std::future::pending::<()>().in_context(nested);
                        tokio::select! {
                            () = never => unreachable!(),
                            () = tokio::task::yield_now() => {}
                        }
                        drop(third);
                        let fourth = heapray::spawn_blocking(|| block(0)).await.unwrap();
                        [first, second, fourth]
                    };
                    tokio::spawn(work.in_context(tenant))
                })
                .collect();
            for task in tasks {
                kept.extend(task.await.unwrap());
            }
        });
    });
    let by_tenant = ["a", "b", "c", "d"].map(|name| (name.to_owned(), of(3 * 16)));
    assert_eq!(live(&snapshot, "tenant"), BTreeMap::from(by_tenant));
    let by_job = [(String::new(), of(2 * 64)), ("nested".to_owned(), of(64))];
    assert_eq!(live(&snapshot, "job"), BTreeMap::from(by_job));
    assert_eq!(snapshot.lost_events, 0);
    drop(kept);
}

#[test]
fn a_request_and_the_body_of_its_response_are_in_the_context_of_the_route() {
    static KEPT: std::sync::Mutex<Vec<Vec<u8>>> = std::sync::Mutex::new(Vec::new());
    let _turn = turn();
    let keep = || KEPT.lock().unwrap().push(block(0));
    let app: Router = Router::new()
        .route("/users/{id}", get(move || async move { keep() }))
        .route(
            "/stream",
            post(move || async move {
                Body::new(http_body_util::Full::from("x").map_frame(move |frame| {
                    keep();
                    frame
                }))
            }),
        )
        .route_layer(heapray::by_route());
    let runtime = runtime();
    let snapshot = record("contexts-routes", || {
        runtime.block_on(async {
            for path in ["/users/1", "/users/2", "/stream"] {
                let method = if path == "/stream" { "POST" } else { "GET" };
                let request = Request::builder().method(method).uri(path);
                let request = request.body(Body::empty()).unwrap();
                let response = app.clone().oneshot(request).await.unwrap();
                axum::body::to_bytes(response.into_body(), 100)
                    .await
                    .unwrap();
            }
        });
    });
    let expected = [("GET /users/{id}", of(2)), ("POST /stream", of(1))];
    let expected = expected.map(|(name, tally)| (name.to_owned(), tally));
    assert_eq!(live(&snapshot, "route"), BTreeMap::from(expected));
    KEPT.lock().unwrap().clear();
}

#[test]
fn a_mounted_app_is_recorded_by_route_if_that_is_set() {
    let _turn = turn();
    let dir = Dir::new("contexts-mount");
    for set in [false, true] {
        let builder = heapray::builder().ignore_environment().enabled(true);
        let builder = builder.wait_for_start().dir(&dir.0).by_route(set);
        let profiler = builder.build().unwrap();
        let seen = move || async move {
            let labels = heapray::Context::current().labels();
            labels
                .first()
                .map_or(String::new(), |(_, value)| value.clone())
        };
        let app = profiler.mount(Router::new().route("/orders/{id}", get(seen)));
        let none = profiler.mount(Router::new());
        runtime().block_on(async {
            let request = || Request::get("/orders/7").body(Body::empty()).unwrap();
            let response = app.clone().oneshot(request()).await.unwrap();
            let body = axum::body::to_bytes(response.into_body(), 100)
                .await
                .unwrap();
            let expected = if set { "GET /orders/{id}" } else { "" };
            assert_eq!(body, expected);
            assert_eq!(none.oneshot(request()).await.unwrap().status(), 404);
        });
        profiler.shutdown().unwrap();
    }
}
