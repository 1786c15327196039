//! Tests of the paths that services in Go have.

use std::hint::black_box;

use axum::Router;
use axum::http::Method;
use axum::routing::get as on_get;

use crate::bench::{Bench, call, get, send};

#[tokio::test]
async fn the_running_session_is_a_profile_where_scrapers_of_go_look_for_it() {
    let bench = Bench::new();
    let app = bench.app();
    for path in ["/debug/pprof/heap", "/debug/pprof/allocs"] {
        let refused = get(&app, path).await;
        assert_eq!(refused.status, 503, "{path}");
        assert_eq!(refused.json()["type"], "NotRecording");
        assert_eq!(refused.header("retry-after"), "5");
    }
    call(&app, "start").await;
    let block = black_box(vec![1_u8; 10_000_000]);
    for prefix in ["", "/pub/job/a/1"] {
        for query in ["", "?gc=1&debug=0&seconds=0", "?limit=100"] {
            let heap = get(&app, &format!("{prefix}/debug/pprof/heap{query}")).await;
            assert_eq!(heap.status, 200, "{query}");
            assert_eq!(heap.header("content-type"), "application/octet-stream");
            assert_eq!(heap.body[..2], [0x1f, 0x8b]);
        }
    }
    for query in [
        "heap?debug=1",
        "heap?seconds=-1",
        "allocs?seconds=x",
        "heap?seconds=301",
        "delta_heap",
        "delta_heap?seconds=0",
    ] {
        let refused = get(&app, &format!("/debug/pprof/{query}")).await;
        assert_eq!(refused.status, 400, "{query}");
    }
    drop(block);
    call(&app, "stop").await;
    // What is over is not of now.
    assert_eq!(
        get(&app, "/debug/pprof/delta_heap?seconds=1").await.status,
        503
    );
    assert_eq!(get(&app, "/debug/pprof/heap").await.status, 503);
    assert_eq!(call(&app, "pprof").await.status, 200);
}

#[tokio::test]
async fn names_are_in_the_profile_and_need_not_be_asked_for() {
    let bench = Bench::new();
    let app = bench.app();
    for method in [Method::GET, Method::POST] {
        let symbol = send(&app, method, "/debug/pprof/symbol", &[]).await;
        assert_eq!(
            (symbol.status.as_u16(), symbol.text()),
            (200, "num_symbols: 0\n")
        );
    }
    let program = get(&app, "/debug/pprof/cmdline").await;
    assert!(!program.text().is_empty());
    assert_eq!(get(&app, "/debug/pprof/profile").await.status, 404);
    let post = send(&app, Method::POST, "/debug/pprof/heap", &[]).await;
    assert_eq!(post.status, 404, "the app's own answer");
}

#[tokio::test]
async fn a_service_keeps_its_own_routes_and_may_leave_the_others_out() {
    let own = || Router::new().route("/debug/pprof/heap", on_get(|| async { "my heap" }));
    let bench = Bench::new();
    let app = bench.profiler.mount(own());
    assert_eq!(get(&app, "/debug/pprof/heap").await.text(), "my heap");
    assert_eq!(get(&app, "/debug/pprof/symbol").await.status, 200);
    drop((app, bench));

    let bench = Bench::with(|builder| builder.debug_pprof(false));
    let app = bench.app();
    for path in ["heap", "allocs", "cmdline", "symbol"] {
        let answer = get(&app, &format!("/debug/pprof/{path}")).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[tokio::test]
async fn they_need_the_token_and_no_page_of_another_site_may_ask() {
    let token = "s3cret-token";
    let bench = Bench::with(|builder| builder.token(token));
    let app = bench.app();
    for prefix in ["", "/pub/job/a/1"] {
        for name in ["heap", "allocs", "cmdline", "symbol"] {
            let path = format!("{prefix}/debug/pprof/{name}");
            assert_eq!(get(&app, &path).await.status, 401, "{path}");
        }
        let path = format!("{prefix}/debug/pprof/symbol");
        let bearer = format!("Bearer {token}");
        let known = [("authorization", &*bearer)];
        assert_eq!(send(&app, Method::GET, &path, &known).await.status, 200);
        let foreign = [known[0], ("sec-fetch-site", "cross-site")];
        assert_eq!(send(&app, Method::GET, &path, &foreign).await.status, 403);
    }
}
