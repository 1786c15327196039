//! Tests of outputs that many clients request at once, that clients abandon, or that another site's page requests, and of a
//! shutdown meanwhile.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::bench::{Answer, BASE, Bench, call, fresh_dir, send};
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use tower::ServiceExt;

/// Returns `count` different outputs, other than the usual ones.
fn others(count: usize) -> impl Iterator<Item = String> {
    let formats = [
        "csv",
        "json",
        "collapsed",
        "speedscope",
        "gprof2dot",
        "pprof",
    ];
    let measures = ["live", "allocated", "temporary"];
    let flags = ["lines=1", "full=1", "lines=1&full=1", "inverted=1"];
    let all = formats.into_iter().flat_map(move |format| {
        measures.into_iter().flat_map(move |measure| {
            flags.map(|flag| format!("report?format={format}&measure={measure}&{flag}"))
        })
    });
    all.take(count)
}

/// Requests `endpoint` and gives up at once.
async fn abandon(app: &Router, endpoint: &str) {
    let request = Request::get(format!("{BASE}/{endpoint}"));
    let asked = app.clone().oneshot(request.body(Body::empty()).unwrap());
    // The future is polled once and dropped.
    let _ = tokio::time::timeout(Duration::ZERO, asked).await;
}

/// Requests all endpoints at once.
async fn together(app: &Router, endpoints: impl Iterator<Item = String>) -> Vec<Answer> {
    let asked: Vec<_> = endpoints
        .map(|endpoint| {
            let app = app.clone();
            tokio::spawn(async move { call(&app, &endpoint).await })
        })
        .collect();
    let mut answers = Vec::new();
    for asked in asked {
        answers.push(asked.await.unwrap());
    }
    answers
}

#[tokio::test]
async fn requests_beyond_the_limit_are_refused_with_a_time_to_retry() {
    let bench = Bench::new();
    let app = bench.app();
    call(&app, "start").await;
    let answers = together(&app, others(60).chain(["stats".into()])).await;
    let (stats, answers) = answers.split_last().unwrap();
    assert_eq!(
        stats.status, 200,
        "the usual outputs have a limit of their own"
    );
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
    assert!(made.len() >= 8, "{}", made.len());
    assert!(!refused.is_empty());
    for answer in refused {
        answer.fails_with(503, "TooManyOutputs");
        assert_eq!(answer.header("retry-after"), "5");
    }
    let answer = call(&app, "report?format=csv&lines=1").await;
    assert_eq!(answer.status, 200, "requests are accepted again");
}

#[tokio::test]
async fn abandoned_requests_do_not_count_against_the_limit() {
    let bench = Bench::new();
    let app = bench.app();
    call(&app, "start").await;
    for endpoint in others(60) {
        abandon(&app, &endpoint).await;
    }
    let answer = call(&app, "report?format=csv&unit=count").await;
    assert_eq!(answer.status, 200);
    assert_eq!(call(&app, "stop").await.status, 200);
}

#[tokio::test]
async fn the_end_of_a_session_leaves_no_request_waiting() {
    let bench = Bench::new();
    let app = bench.app();
    for _ in 0..2 {
        call(&app, "start").await;
        let clients = {
            let app = app.clone();
            tokio::spawn(async move { together(&app, others(8)).await })
        };
        tokio::task::yield_now().await;
        let stopped = call(&app, "stop").await.json();
        assert!(stopped["report"]["bytes"].is_u64(), "{stopped}");
        for answer in clients.await.unwrap() {
            assert_eq!(answer.status, 200);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_writes_the_report_and_refuses_the_waiting_requests() {
    let bench = Bench::new();
    let app = bench.app();
    call(&app, "start").await;
    let clients = {
        let app = app.clone();
        tokio::spawn(async move { together(&app, others(8)).await })
    };
    tokio::task::yield_now().await;
    let profiler = bench.profiler.clone();
    let ended = tokio::task::spawn_blocking(move || profiler.shutdown());
    assert!(ended.await.unwrap().unwrap().report.is_some());
    assert!(bench.path("memray-report.bin").exists());
    for answer in clients.await.unwrap() {
        if answer.status != 200 {
            answer.fails_with(503, "ServiceEnding");
        }
    }
    let drafts = fs::read_dir(&bench.dir).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with(".heapray")
    });
    assert_eq!(drafts.count(), 0);
    assert_eq!(
        call(&app, "report?format=csv").await.status,
        200,
        "outputs are made again after the shutdown"
    );
}

#[tokio::test]
async fn another_sites_page_may_link_to_outputs_but_not_load_them() {
    let bench = Bench::with(|builder| builder.memory_log(true).memory_dir(fresh_dir()));
    let app = bench.app();
    call(&app, "start").await;
    let id = {
        call(&app, "stop").await;
        let kept = call(&app, "reports").await.json();
        kept[0]["id"].as_str().unwrap().to_owned()
    };
    let site = ("sec-fetch-site", "cross-site");
    let link = [
        site,
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    let image = [
        site,
        ("sec-fetch-mode", "no-cors"),
        ("sec-fetch-dest", "image"),
    ];
    for output in [
        "report",
        "flamegraph",
        "stats",
        "timeline",
        &format!("reports/{id}/tree"),
    ] {
        let path = format!("{BASE}/{output}");
        let answer = send(&app, Method::GET, &path, &link).await;
        assert_eq!(answer.status, 200, "{output}");
        for method in [Method::GET, Method::HEAD] {
            let answer = send(&app, method, &path, &image).await;
            assert_eq!(answer.status, 403, "{output}");
        }
        let answer = send(&app, Method::GET, &path, &image).await;
        answer.fails_with(403, "CrossSiteRequest");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_is_answered_while_the_memory_log_is_read() {
    let bench = Bench::with(|builder| builder.memory_log(true).memory_dir(fresh_dir()));
    let app = bench.app();
    // Opening a pipe blocks until another process opens it for writing.
    let log = bench.profiler.memory_log().unwrap().to_owned();
    fs::remove_file(&log).unwrap();
    assert!(Command::new("mkfifo").arg(&log).status().unwrap().success());
    let timeline = {
        let app = app.clone();
        tokio::spawn(async move { together(&app, (0..30).map(|_| "timeline".into())).await })
    };
    for endpoint in ["status", "reports", "start", "stats", "stop", "status"] {
        let answer = tokio::time::timeout(Duration::from_secs(60), call(&app, endpoint));
        assert_eq!(answer.await.expect(endpoint).status, 200, "{endpoint}");
    }
    assert!(!timeline.is_finished());
    // The file is missing for the requests behind the first, and the first is unblocked.
    let pipe = log.with_extension("pipe");
    fs::rename(&log, &pipe).unwrap();
    tokio::task::spawn_blocking(move || fs::OpenOptions::new().write(true).open(pipe).unwrap())
        .await
        .unwrap();
    for answer in timeline.await.unwrap() {
        assert!([404, 500].contains(&answer.status.as_u16()));
    }
}
