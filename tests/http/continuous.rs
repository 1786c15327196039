//! Tests of the session in the background: `MEMRAY_PROFILER_CONTINUOUS`.

use std::hint::black_box;
use std::path::Path;

use axum::http::Method;

use crate::bench::{BASE, Bench, call, get, send};
use heapray::State;

fn bench() -> Bench {
    Bench::with(|builder| builder.continuous(true))
}

fn leak(bytes: usize) -> Vec<u8> {
    black_box(vec![1; bytes])
}

fn files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('.')).collect()
}

#[tokio::test]
async fn samples_are_recorded_before_anybody_asks_and_every_output_can_be_had() {
    let bench = bench();
    let app = bench.app();
    let block = leak(20_000_000);
    let status = call(&app, "status").await.json();
    assert_eq!(status["state"], "background");
    assert_eq!(status["sampling"]["mean_bytes"], 512 << 10);
    assert_eq!(status["overhead"]["log_bytes"], 0);
    assert!(status["live"]["bytes"].as_u64().unwrap() >= 20_000_000);
    for path in ["report", "flamegraph", "stats", "pprof?session=running"] {
        assert_eq!(call(&app, path).await.status, 200, "{path}");
    }
    assert_eq!(get(&app, "/debug/pprof/heap").await.status, 200);
    let marked = send(
        &app,
        Method::POST,
        &format!("{BASE}/mark?name=deployed"),
        &[],
    )
    .await;
    assert_eq!(marked.json()["name"], "deployed");
    // Nobody has begun a session that could be stopped.
    let stopped = call(&app, "stop").await.json();
    assert_eq!(stopped["recording_since"], status["recording_since"]);
    assert_eq!(
        (&stopped["state"], stopped["report"].is_null()),
        (&"background".into(), true)
    );
    assert_eq!(
        call(&app, "reports").await.json().as_array().unwrap().len(),
        0
    );
    assert_eq!(files(&bench.dir), [""; 0]);
    drop(block);
}

#[tokio::test]
async fn a_session_that_was_asked_for_takes_its_place_and_leaves_a_report() {
    let bench = bench();
    let app = bench.app();
    let before = call(&app, "status").await.json();
    let started = call(&app, "start").await.json();
    assert_eq!(started["state"], "recording");
    assert!(started["sampling"].is_null());
    let block = leak(1_234_567);
    let stopped = call(&app, "stop").await.json();
    assert_eq!(stopped["state"], "background");
    assert!(stopped["report"]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(stopped["sampling"]["mean_bytes"], 512 << 10);
    for (one, two) in [(&before, &started), (&started, &stopped)] {
        assert_ne!(one["recording_since"], two["recording_since"]);
    }
    // The report is of the session that was stopped, until it is deleted.
    let exact = call(&app, "stats").await;
    assert!(!exact.text().contains("estimate"), "{}", exact.text());
    let running = call(&app, "stats?session=running").await;
    assert!(running.text().contains("estimate"), "{}", running.text());
    let kept = call(&app, "reports").await.json();
    assert_eq!(kept.as_array().unwrap().len(), 1);
    let path = format!("{BASE}/reports/{}", kept[0]["id"].as_str().unwrap());
    assert_eq!(send(&app, Method::DELETE, &path, &[]).await.status, 204);
    let again = call(&app, "stats").await;
    assert!(again.text().contains("estimate"), "{}", again.text());
    drop(block);
}

#[tokio::test]
async fn a_session_of_samples_is_one_of_its_own_too() {
    let bench = bench();
    let app = bench.app();
    let before = call(&app, "status").await.json();
    let started = call(&app, "start?sample=512KiB").await.json();
    assert_eq!(started["state"], "recording");
    assert_ne!(started["recording_since"], before["recording_since"]);
    call(&app, "stop").await;
    assert_eq!(
        call(&app, "reports").await.json().as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn the_end_of_the_service_leaves_a_report_of_the_background() {
    let bench = bench();
    let app = bench.app();
    call(&app, "start").await;
    call(&app, "stop").await;
    let status = bench.profiler.shutdown().unwrap();
    assert_eq!(status.state, State::Stopped);
    let kept = bench.profiler.kept_reports().unwrap();
    assert_eq!(kept.len(), 2);
    let stats = bench.profiler.stats().unwrap();
    assert!(stats.contains("estimate"), "{stats}");
    // The service has not ended after all.
    assert_eq!(bench.profiler.start().unwrap().state, State::Recording);
    assert_eq!(bench.profiler.stop().unwrap().state, State::Background);
}

#[tokio::test]
async fn only_a_session_that_runs_can_be_asked_for_as_running() {
    let bench = Bench::new();
    let app = bench.app();
    call(&app, "start").await;
    assert_eq!(call(&app, "stats?session=running").await.status, 200);
    call(&app, "stop").await;
    assert_eq!(call(&app, "stats?session=last").await.status, 200);
    call(&app, "stats?session=running")
        .await
        .fails_with(409, "NotRecording");
    let refused = call(&app, "stats?session=first")
        .await
        .fails_with(400, "BadRequest");
    assert_eq!(refused, "session is \"first\", but must be last or running");
}
