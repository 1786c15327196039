//! Tests of `GET timeline`, and of requests that are marked in the memory log.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::bench::{BASE, Bench, call, fresh_dir, get, send};
use crate::support::process::{in_own_process, test_name};
use axum::Router;
use axum::http::{Method, StatusCode};
use axum::routing::get as on_get;
use heapray::{MemoryChildren, MemoryRole};
use heapray_report::memory_log::MemoryLog;

/// Makes a bench with a memory log, with readings so frequent that tests need not wait for long.
fn bench() -> Bench {
    Bench::with(|builder| {
        builder
            .memory_log(true)
            .memory_dir(fresh_dir())
            .memory_interval(Duration::from_millis(10))
    })
}

fn log(path: &Path) -> MemoryLog {
    MemoryLog::read(&fs::read(path).unwrap()[..]).unwrap()
}

/// Waits until the log has another reading.
async fn next_reading(bench: &Bench) {
    let path = bench.profiler.memory_log().unwrap();
    let before = log(path).memory.len();
    while log(path).memory.len() <= before {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Runs in a process of its own: memory that other tests free would lower the resident memory.
#[test]
fn json_holds_memory_functions_and_the_sessions_heap() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    };
    in_own_process(test_name!(), || {
        runtime().unwrap().block_on(memory_functions_and_heap());
    });
}

async fn memory_functions_and_heap() {
    let bench = bench();
    let app = bench.app();
    let before = call(&app, "timeline").await.json();
    assert!(before["heap"].is_null(), "there was no session yet");
    call(&app, "start").await;
    let outer = heapray::memory_span("outer part");
    let inner = heapray::memory_span("inner");
    let block = std::hint::black_box(vec![1_u8; 32 << 20]);
    next_reading(&bench).await;
    drop(inner);
    drop(outer);
    drop(block);
    next_reading(&bench).await;
    next_reading(&bench).await;
    let timeline = call(&app, "timeline").await.json();
    let numbers = |value: &serde_json::Value| -> Vec<i64> {
        let column = value.as_array().unwrap().iter();
        column.map(|number| number.as_i64().unwrap()).collect()
    };
    let (at, bytes) = (
        numbers(&timeline["memory"]["at_ms"]),
        numbers(&timeline["memory"]["bytes"]),
    );
    assert!(at.len() == bytes.len() && at.is_sorted() && at.len() >= 3);
    assert!(
        at.iter().all(|&ms| (-1000..600_000).contains(&ms)),
        "{at:?}"
    );
    let grown = bytes.iter().max().unwrap() - bytes[0];
    assert!(grown >= 31 << 20, "{bytes:?}");
    let heap = numbers(&timeline["heap"]["bytes"]);
    assert!(heap.iter().any(|&heap| heap >= 32 << 20), "{heap:?}");
    let calls = timeline["functions"].as_array().unwrap();
    let told: Vec<_> = calls
        .iter()
        .map(|call| {
            (
                call["name"].as_str().unwrap(),
                call["level"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(told, [("outer_part", 0), ("inner", 1)]);
    let inner = &calls[1];
    let grew = inner["to_bytes"].as_i64().unwrap() - inner["from_bytes"].as_i64().unwrap();
    assert!(grew >= 31 << 20, "{inner}");
    for (field, value) in [("role", "main"), ("metric", "rss")] {
        assert_eq!(timeline[field], value);
    }
    assert_eq!(timeline["pid"], std::process::id());
    let file = bench.profiler.memory_log().unwrap();
    assert_eq!(timeline["file"], file.to_str().unwrap());

    // The log's file remains after the shutdown, and it is complete.
    bench.profiler.shutdown().unwrap();
    let ended = log(file);
    assert_eq!(ended.functions.len(), 2);
    assert!(ended.command.is_some() && ended.cut.is_none());
    assert_eq!(call(&app, "timeline").await.status, 200);
}

#[tokio::test]
async fn the_file_is_sent_whole_or_in_ranges_by_query_or_by_accept() {
    let bench = bench();
    let app = bench.app();
    next_reading(&bench).await;
    let path = format!("{BASE}/timeline");
    let file = bench.profiler.memory_log().unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let plain = [("accept", "text/plain")];
    for (query, headers) in [
        ("?format=mprof", &[][..]),
        ("", &plain),
        ("?format=mprof", &[("accept", "application/json")]),
    ] {
        let answer = send(&app, Method::GET, &format!("{path}{query}"), headers).await;
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(answer.header("x-heapray-snapshot"), "true");
        assert_eq!(answer.header("vary"), "Accept");
        assert_eq!(
            answer.header("content-disposition"),
            format!("inline; filename=\"{name}\"")
        );
        assert!(fs::read_to_string(file).unwrap().starts_with(answer.text()));
        assert!(answer.text().ends_with('\n'));
    }
    let json = send(&app, Method::GET, &format!("{path}?format=json"), &plain).await;
    assert!(json.json()["memory"].is_object());
    let part = send(
        &app,
        Method::GET,
        &format!("{path}?format=mprof"),
        &[("range", "bytes=0-7")],
    )
    .await;
    assert_eq!(
        (part.status, part.text()),
        (StatusCode::PARTIAL_CONTENT, "CMDLINE ")
    );
    let bad = get(&app, &format!("{path}?format=csv")).await;
    assert!(bad.fails_with(400, "BadRequest").contains("json or mprof"));
}

#[tokio::test]
async fn without_a_log_an_error_says_why() {
    let bench = Bench::new();
    let error = call(&bench.app(), "timeline")
        .await
        .fails_with(404, "MemoryLogNotFound");
    assert!(error.contains("MEMRAY_PROFILER_MEMORY_LOG=true"), "{error}");
    drop(bench);

    let blocked = fresh_dir().join("file");
    fs::write(&blocked, "in the way").unwrap();
    let bench = Bench::with(|builder| builder.memory_log(true).memory_dir(&blocked));
    let error = call(&bench.app(), "timeline")
        .await
        .fails_with(404, "MemoryLogNotFound");
    assert!(error.contains(blocked.to_str().unwrap()), "{error}");
    assert_eq!(bench.profiler.memory_log(), None);
    // The profiler still works.
    assert_eq!(
        call(&bench.app(), "start").await.json()["state"],
        "recording"
    );
    drop(bench);

    let bench = self::bench();
    fs::remove_file(bench.profiler.memory_log().unwrap()).unwrap();
    for format in ["json", "mprof"] {
        let path = format!("timeline?format={format}");
        let error = call(&bench.app(), &path)
            .await
            .fails_with(404, "MemoryLogNotFound");
        assert!(error.contains("is gone"), "{error}");
    }
}

#[tokio::test]
async fn a_ticket_opens_the_timeline() {
    let bench = Bench::with(|builder| {
        builder
            .token("s3cret")
            .memory_log(true)
            .memory_dir(fresh_dir())
    });
    let app = bench.app();
    let right = [("authorization", "Bearer s3cret")];
    let ticket = send(
        &app,
        Method::POST,
        &format!("{BASE}/ticket?for=timeline"),
        &right,
    )
    .await;
    let ticket = ticket.json()["ticket"].as_str().unwrap().to_owned();
    let path = format!("{BASE}/timeline?format=mprof");
    assert_eq!(get(&app, &path).await.status, 401);
    assert_eq!(
        get(&app, &format!("{path}&ticket={ticket}")).await.status,
        200
    );
}

#[tokio::test]
async fn requests_are_marked_by_method_and_route_each_on_a_level_of_its_own() {
    let bench = Bench::with(|builder| {
        builder
            .memory_log(true)
            .memory_dir(fresh_dir())
            .memory_role(MemoryRole::Worker)
            .memory_children(MemoryChildren::None)
            .routes_below_prefix(true)
    });
    let gate = std::sync::Arc::new(tokio::sync::Barrier::new(3));
    let handler = move || {
        let gate = gate.clone();
        async move {
            // Wait until all three requests run.
            gate.wait().await;
            drop(heapray::memory_span("nested"));
            "done"
        }
    };
    let app = Router::new()
        .route("/users/{id}", on_get(handler))
        .route("/v1.0/plain", on_get(|| async { "plain" }))
        .layer(heapray::memory_requests());
    let app = bench.profiler.mount(app);
    let answers = tokio::join!(
        get(&app, "/users/1"),
        get(&app, "/users/2"),
        get(&app, "/pub/job/x/1/users/3")
    );
    assert!(
        [answers.0, answers.1, answers.2]
            .iter()
            .all(|answer| answer.status == 200)
    );
    get(&app, "/v1.0/plain").await;
    // A client that gives up ends the request.
    let waiting = get(&app, "/users/4");
    assert!(
        tokio::time::timeout(Duration::from_millis(1), waiting)
            .await
            .is_err()
    );
    // A request to the profiler is not marked.
    call(&app, "status").await;
    bench.profiler.shutdown().unwrap();
    let log = log(bench.profiler.memory_log().unwrap());
    let of = |name: &str| -> Vec<u32> {
        let calls = log.functions.iter().filter(|call| call.name == name);
        let mut levels: Vec<_> = calls.map(|call| call.level.unwrap()).collect();
        levels.sort_unstable();
        levels
    };
    assert_eq!(of("GET:/users/{id}"), [0, 0, 1, 2]);
    assert_eq!(of("GET:/v1%2E0/plain"), [0]);
    assert_eq!(of("nested"), [1, 2, 3]);
    assert_eq!(log.functions.len(), 8);
}
