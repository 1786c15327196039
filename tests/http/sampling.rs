//! Tests of sampling by request: `start?sample=…` in each state, and the notes in all outputs that figures are estimates.

use std::hint::black_box;

use crate::bench::{Bench, call};
use heapray::{OutputKey, OutputKind};

fn leak(blocks: usize) -> Vec<Vec<u8>> {
    black_box((0..blocks).map(|_| Vec::with_capacity(500)).collect())
}

#[tokio::test]
async fn the_rate_of_a_sampling_session_is_changed_while_it_goes_on() {
    let bench = Bench::with(|builder| builder.sample(64 << 10));
    let app = bench.app();
    let started = call(&app, "start").await.json();
    assert_eq!(started["sampling"]["mean_bytes"], 64 << 10);
    let kept = leak(10_000);
    let changed = call(&app, "start?sample=128KiB").await.json();
    assert_eq!(changed["recording_since"], started["recording_since"]);
    assert_eq!(changed["sampling"]["mean_bytes"], 128 << 10);
    let finer = call(&app, "start?sample=32KiB").await.json();
    assert_eq!(
        finer["sampling"]["mean_bytes"],
        128 << 10,
        "the widest margins count"
    );
    assert_eq!(finer["sampling"]["current_mean_bytes"], 32 << 10);
    // The session goes on with the allocations from before the change.
    let live = changed["live"]["bytes"].as_u64().unwrap();
    assert!((2_000_000..9_000_000).contains(&live), "{changed}");
    assert!(changed["sampling"]["asked"]["count"].as_u64().unwrap() >= 10_000);
    assert!(
        changed["sampling"]["live_margin"]["bytes"]
            .as_u64()
            .unwrap()
            > 0
    );
    // A start without a rate does not change the running session.
    let again = call(&app, "start").await.json();
    assert_eq!(again["recording_since"], started["recording_since"]);
    drop(kept);
}

#[tokio::test]
async fn samples_and_every_allocation_are_sessions_of_their_own() {
    let bench = Bench::new();
    let app = bench.app();
    let exact = call(&app, "start").await.json();
    assert!(exact["sampling"].is_null());
    let sampled = call(&app, "start?sample=512%20KiB").await.json();
    assert_ne!(sampled["recording_since"], exact["recording_since"]);
    assert_eq!(sampled["state"], "recording");
    assert_eq!(
        call(&app, "reports").await.json().as_array().unwrap().len(),
        1
    );
    let exact = call(&app, "start?sample=0").await.json();
    assert!(exact["sampling"].is_null());
    assert_eq!(
        call(&app, "reports").await.json().as_array().unwrap().len(),
        2
    );
}

#[tokio::test]
async fn a_rate_that_is_not_a_size_is_refused_and_changes_nothing() {
    let bench = Bench::new();
    let app = bench.app();
    let number = "sample must be a number of bytes";
    for (bad, why) in [
        ("often", number),
        ("-1", number),
        ("", number),
        ("1.5.1MiB", number),
        ("%zz", "sample is \"%zz\", but must be UTF-8"),
    ] {
        let error = call(&app, &format!("start?sample={bad}"))
            .await
            .fails_with(400, "BadRequest");
        assert!(error.starts_with(why), "{error}");
    }
    assert_eq!(call(&app, "status").await.json()["state"], "stopped");
}

#[tokio::test]
async fn every_output_of_a_sampled_session_says_that_it_estimates() {
    let bench = Bench::with(|builder| builder.sample(32 << 10));
    let app = bench.app();
    call(&app, "start").await;
    let kept = leak(10_000);
    let stopped = call(&app, "stop").await.json();
    assert!(
        stopped["sampling"]["samples"].as_u64().unwrap() > 50,
        "{stopped}"
    );
    drop(kept);
    for (output, says) in [
        ("stats", "sizes and counts are estimates"),
        ("stats?format=json", "\"live_margin\""),
        ("table", "≈ sizes and counts are estimates"),
        ("tree", "≈ sizes and counts are estimates"),
        ("summary", "≈ sizes and counts are estimates"),
        ("report?format=json", "\"mean_bytes\":32768"),
    ] {
        let answer = call(&app, output).await;
        let text = String::from_utf8_lossy(&answer.body);
        assert!(
            text.contains(says),
            "{output}: {}",
            &text[..text.len().min(2000)]
        );
    }
    // The report's file keeps the rate and the number of samples.
    let output = bench
        .profiler
        .output(OutputKey::new(OutputKind::Report))
        .unwrap();
    let report = heapray_report::memray::read(output).unwrap().report;
    let sampling = report.conditions.sampling.unwrap();
    assert_eq!(sampling.mean_bytes(), 32 << 10);
    assert_eq!(stopped["sampling"]["samples"], sampling.samples);
}
