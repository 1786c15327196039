//! Tests of what a service says about leaks while it records, and in the description of a kept report.

use std::collections::VecDeque;
use std::hint::black_box;
use std::thread::sleep;
use std::time::Duration;

use axum::Router;
use serde_json::Value;

use crate::bench::{Bench, call, watch};

/// Requests of a session, each 5 ms after the one before.
const REQUESTS: usize = 300;

/// Keeps what a request needs.
#[inline(never)]
fn remember_a_request(kept: &mut VecDeque<Vec<u8>>) {
    kept.push_back(black_box(vec![1; 10_000]));
}

/// Serves requests that leave `most` blocks at most, and then nothing for a while.
fn serve(kept: &mut VecDeque<Vec<u8>>, most: usize) {
    for _ in 0..REQUESTS {
        for size in [100, 1_000, 20_000] {
            black_box(vec![0_u8; size]);
        }
        remember_a_request(kept);
        if kept.len() > most {
            kept.pop_front();
        }
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(1_500));
}

/// Returns what the live stream says about leaks.
async fn leaks_now(app: &Router) -> Value {
    let mut leaks = Value::Null;
    watch(app, |event, data| {
        if event == "leaks" {
            leaks = data.clone();
        }
        event == "leaks"
    })
    .await;
    leaks
}

#[tokio::test]
async fn the_line_that_leaks_is_named_while_it_does_and_after_an_idle_time() {
    let bench = Bench::new();
    let app = bench.app();
    call(&app, "start").await;
    let mut kept = VecDeque::new();
    serve(&mut kept, usize::MAX);
    let now = leaks_now(&app).await;
    assert!(
        now[0]["evidence"]
            .as_array()
            .is_some_and(|it| !it.is_empty()),
        "{now}"
    );
    call(&app, "stop").await;
    let reports = call(&app, "reports").await.json();
    for leak in [&now[0], &reports[0]["leak"]] {
        let function = leak["function"].as_str().unwrap_or_default();
        assert!(function.ends_with("leaks::remember_a_request"), "{leak}");
        assert!(
            leak["file"]
                .as_str()
                .unwrap()
                .ends_with("tests/http/leaks.rs")
        );
        assert_eq!(leak["confidence"], "high", "{leak}");
        assert!(leak["live"]["bytes"].as_u64() >= Some(3_000_000));
        assert!(leak["growth_bytes_per_hour"].as_u64() > Some(0));
    }
}

#[tokio::test]
async fn a_cache_that_is_full_is_not_accused() {
    let bench = Bench::new();
    let app = bench.app();
    call(&app, "start").await;
    let mut kept = VecDeque::new();
    serve(&mut kept, 50);
    assert_eq!(leaks_now(&app).await, Value::Array(Vec::new()));
    call(&app, "stop").await;
    let reports = call(&app, "reports").await.json();
    let largest = reports[0]["largest"]["function"].as_str().unwrap();
    assert!(largest.ends_with("leaks::remember_a_request"), "{largest}");
    assert_eq!(reports[0]["leak"], Value::Null);
}
