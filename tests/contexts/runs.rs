//! Tests of the sums of each request, and of each future in a context.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{self, Waker};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use heapray::collector::snapshot::Snapshot;
use heapray::session::{Session, SessionOptions};
use heapray::{InContext, context};
use heapray_report::model::{Runs, Spread, Tally};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::support::{Dir, record, turn};
use crate::{SIZE, block, live, of, runtime};

/// Bytes that a request may allocate besides the blocks of the test.
const SMALL: u64 = 200_000;

/// Returns the runs of the contexts with these labels.
fn runs_of(snapshot: &Snapshot, labels: &[(&str, &str)]) -> Runs {
    let owned = labels.iter().map(|&(k, v)| (k.to_owned(), v.to_owned()));
    let owned: Vec<(String, String)> = owned.collect();
    let contexts = &snapshot.stacks.contexts;
    let number = contexts.iter().position(|known| *known == owned).unwrap();
    let runs = &snapshot.stacks.runs;
    runs.get(&(number as u32)).cloned().unwrap_or_default()
}

/// Checks that the numbers of a spread are `blocks` blocks in all, and at most `most` of them in one.
#[track_caller]
fn assert_blocks(spread: &Spread, blocks: u64, most: u64) {
    for (found, expected) in [(spread.sum(), blocks), (spread.largest(), most)] {
        let exact = expected * SIZE as u64;
        assert!(
            (exact..exact + SMALL).contains(&found),
            "{found}, not {exact}"
        );
    }
}

async fn request(app: &Router, path: &str) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    axum::body::to_bytes(response.into_body(), 100)
        .await
        .unwrap();
}

#[test]
fn each_request_has_its_sums_until_its_response_is_through() {
    static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
    let _turn = turn();
    let keep = || KEPT.lock().unwrap().push(block(0));
    let app: Router = Router::new()
        .route(
            "/keep",
            get(move || async move {
                let temporary = [block(0), block(0)];
                tokio::task::yield_now().await;
                keep();
                drop(temporary);
            }),
        )
        .route(
            "/evict",
            get(|| async { drop(KEPT.lock().unwrap().remove(0)) }),
        )
        .route(
            "/stream",
            get(move || async move {
                Body::new(http_body_util::Full::from("x").map_frame(move |frame| {
                    keep();
                    frame
                }))
            }),
        )
        .route(
            "/nested",
            get(|| async {
                let job = context([("job", "nested")]);
                let inner = async { block(0) }.in_context(job).await;
                tokio::task::yield_now().await;
                drop(inner);
            }),
        )
        .route_layer(heapray::by_route());
    let runtime = runtime();
    let snapshot = record("contexts-runs", || {
        runtime.block_on(async {
            let paths = ["/keep", "/keep", "/keep", "/evict", "/stream", "/nested"];
            for path in paths {
                request(&app, path).await;
            }
        });
    });
    KEPT.lock().unwrap().clear();
    let of = |route| runs_of(&snapshot, &[("route", route)]);
    let keeping = of("GET /keep");
    assert_eq!(keeping.count(), 3);
    assert_blocks(&keeping.allocated_bytes, 9, 3);
    assert_blocks(&keeping.most_bytes, 9, 3);
    assert_blocks(&keeping.held_bytes, 3, 1);
    assert_eq!(keeping.freed_of_others.bytes / SIZE as u64, 0);
    let evicting = of("GET /evict");
    assert_eq!(evicting.count(), 1);
    assert_blocks(&evicting.allocated_bytes, 0, 0);
    assert_eq!(evicting.freed_of_others.bytes / SIZE as u64, 1);
    let streaming = of("GET /stream");
    assert_eq!(streaming.count(), 1);
    assert_blocks(&streaming.held_bytes, 1, 1);
    // What happens in a nested context is a part of the request, and no run of its own.
    let nested = of("GET /nested");
    assert_eq!(nested.count(), 1);
    assert_blocks(&nested.allocated_bytes, 1, 1);
    assert_blocks(&nested.held_bytes, 0, 0);
    let inner = [("job", "nested"), ("route", "GET /nested")];
    assert_eq!(runs_of(&snapshot, &inner), Runs::default());
}

#[test]
fn a_request_within_another_context_is_counted_once_under_all_its_labels() {
    let _turn = turn();
    let by_tenant = heapray::by_request(|_: &Request<Body>| context([("tenant", "acme")]));
    let app: Router = Router::new()
        .route("/", get(|| async { drop(block(0)) }))
        .route_layer(heapray::by_route())
        .layer(by_tenant);
    let runtime = runtime();
    let snapshot = record("contexts-runs-layers", || {
        runtime.block_on(request(&app, "/"));
    });
    let both = runs_of(&snapshot, &[("route", "GET /"), ("tenant", "acme")]);
    assert_eq!(both.count(), 1);
    assert_blocks(&both.allocated_bytes, 1, 1);
    let outer = runs_of(&snapshot, &[("tenant", "acme")]);
    assert_eq!(outer, Runs::default());
}

#[test]
fn a_future_in_a_context_is_a_run_however_it_ends_and_a_spawned_task_is_not() {
    let _turn = turn();
    let runtime = runtime();
    let snapshot = record("contexts-runs-futures", || {
        runtime.block_on(async {
            let job = context([("job", "import")]);
            let done = tokio::spawn(async { drop(block(0)) }.in_context(job));
            done.await.unwrap();
            let (began, begins) = tokio::sync::oneshot::channel();
            let hangs = async {
                let _held = block(0);
                began.send(()).unwrap();
                std::future::pending::<()>().await;
            };
            let hangs = tokio::spawn(hangs.in_context(job));
            begins.await.unwrap();
            hangs.abort();
            assert!(hangs.await.unwrap_err().is_cancelled());
            let panics = tokio::spawn(
                async {
                    let _held = block(0);
                    std::panic::resume_unwind(Box::new("on purpose"));
                }
                .in_context(job),
            );
            assert!(panics.await.unwrap_err().is_panic());
            let _guard = job.enter();
            heapray::spawn(async { drop(block(0)) }).await.unwrap();
        });
    });
    let runs = runs_of(&snapshot, &[("job", "import")]);
    assert_eq!(runs.count(), 3);
    assert_eq!(runs.allocated_bytes.sum() / SIZE as u64, 3);
    assert_blocks(&runs.held_bytes, 0, 0);
}

#[test]
fn while_sampling_each_request_is_counted_exactly_by_its_threads() {
    let _turn = turn();
    let app: Router = Router::new()
        .route(
            "/",
            get(|| async {
                for _ in 0..100 {
                    drop(black_box(vec![1_u8; 1000]));
                    tokio::task::yield_now().await;
                }
            }),
        )
        .route_layer(heapray::by_route());
    let runtime = runtime();
    let dir = Dir::new("contexts-runs-sampled");
    let options = SessionOptions {
        sample: 1 << 20,
        ..dir.options()
    };
    let session = Session::start(&options).unwrap();
    runtime.block_on(async {
        let tasks = (0..50).map(|_| {
            let app = app.clone();
            tokio::spawn(async move { request(&app, "/").await })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
    let snapshot = session.stop().unwrap();
    let runs = runs_of(&snapshot, &[("route", "GET /")]);
    assert_eq!(runs.count(), 50);
    let smallest = runs.allocated_bytes.quantile(0.01);
    assert!(smallest >= Some(75_000), "{smallest:?}");
    let expected = 50 * 100 * 1000;
    let sum = runs.allocated_bytes.sum();
    assert!((expected..expected + 50 * 20_000).contains(&sum), "{sum}");
    assert!(runs.allocated_blocks.sum() >= 5000);
    assert_eq!((runs.held_bytes.count(), runs.most_bytes.count()), (0, 0));
    assert_eq!(runs.freed_of_others, Tally::default());
}

#[test]
fn a_run_that_ends_first_in_a_session_leaves_its_thread_in_the_context() {
    let _turn = turn();
    let tenant = context([("tenant", "of two sessions")]);
    let guard = tenant.enter();
    drop(record("contexts-runs-first", || drop(block(0))));
    let mut kept = Vec::new();
    let snapshot = record("contexts-runs-second", || {
        let done = pin!(std::future::ready(()).in_context(tenant));
        let waker = task::Context::from_waker(Waker::noop());
        assert!(done.poll(&mut { waker }).is_ready());
        kept.push(block(0));
    });
    drop(guard);
    let expected = [("of two sessions".to_owned(), of(1))];
    assert_eq!(live(&snapshot, "tenant"), BTreeMap::from(expected));
    let runs = runs_of(&snapshot, &[("tenant", "of two sessions")]);
    assert_eq!((runs.count(), runs.allocated_blocks.sum()), (1, 0));
    drop(kept);
}
