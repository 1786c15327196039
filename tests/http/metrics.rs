//! Tests of the metrics for Prometheus.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use axum::Router;
use axum::http::Method;

use crate::bench::{BASE, Bench, call, send};

/// Returns the values of `text` by the names of their series.
fn series(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series = lines.map(|line| line.rsplit_once(' ').unwrap());
    let mut found = BTreeMap::new();
    for (name, value) in series {
        let twice = found.insert(name, value.parse().unwrap());
        assert_eq!(twice, None, "{name} is there twice");
    }
    found
}

/// Waits until `enough` is true of the metrics, which are a tenth of a second old at most, and returns their text.
async fn metrics(app: &Router, enough: impl Fn(&BTreeMap<&str, f64>) -> bool) -> String {
    for _ in 0..600 {
        let answer = call(app, "metrics").await;
        let text = answer.text();
        if enough(&series(text)) {
            return text.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{}", call(app, "metrics").await.text());
}

#[tokio::test]
async fn the_metrics_are_those_of_the_status() {
    let bench = Bench::new();
    let app = bench.app();
    let before = call(&app, "metrics").await;
    assert_eq!(
        before.header("content-type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let before = series(before.text());
    assert_eq!(before["heapray_recording"], 0.0);
    assert!(!before.contains_key("heapray_live_bytes"), "{before:?}");

    call(&app, "start").await;
    let block = black_box(vec![1_u8; 10_000_000]);
    let text = metrics(&app, |now| now["heapray_live_bytes"] >= 1e7).await;
    let now = series(&text);
    let status = bench.profiler.status();
    assert_eq!(now["heapray_recording"], 1.0);
    assert_eq!(now["heapray_sample_interval_bytes"], 0.0);
    assert!(now["heapray_high_water_bytes"] >= now["heapray_live_bytes"]);
    assert!(now["heapray_allocations_total"] <= status.allocated.count as f64);
    assert!(now["heapray_profiler_memory_bytes"] > 0.0);
    assert!(text.contains("heapray_info{version=\""), "{text}");
    assert!(
        text.contains(",mode=\"exact\",sample_interval_bytes=\"0\","),
        "{text}"
    );
    let parts = now
        .iter()
        .filter(|(name, _)| name.starts_with("heapray_rss_bytes{"));
    assert_eq!(parts.clone().count(), 6, "{now:?}");
    assert!(parts.map(|(_, bytes)| bytes).sum::<f64>() > 1e7);
    assert!(now["heapray_rss_bytes{part=\"live\"}"] >= 1e7);
    drop(block);
}

#[tokio::test]
async fn totals_do_not_fall_over_a_stop_and_a_start() {
    let bench = Bench::new();
    let app = bench.app();
    call(&app, "start").await;
    drop(black_box(vec![1_u8; 5_000_000]));
    call(&app, "stop").await;
    let stopped = metrics(&app, |_| true).await;
    let stopped = series(&stopped);
    assert!(stopped["heapray_allocated_bytes_total"] >= 5e6);
    assert!(stopped["heapray_freed_bytes_total"] >= 5e6);
    assert!(stopped["heapray_profiler_cpu_seconds_total"] > 0.0);
    assert!(!stopped.contains_key("heapray_live_bytes"), "{stopped:?}");
    assert_eq!(stopped["heapray_reports_total{cause=\"stop\"}"], 1.0);
    assert!(stopped["heapray_last_report_time_seconds{cause=\"stop\"}"] > 1.7e9);
    assert_eq!(stopped["heapray_reports_total{cause=\"killed\"}"], 0.0);

    call(&app, "start?sample=64KiB").await;
    let again = call(&app, "metrics").await;
    let now = series(again.text());
    for (name, value) in stopped.iter().filter(|(name, _)| name.contains("_total")) {
        assert!(
            now[name] >= *value,
            "{name} has fallen from {value} to {}",
            now[name]
        );
    }
    assert!(
        again
            .text()
            .contains(",mode=\"sampled\",sample_interval_bytes=\"65536\",")
    );
}

#[tokio::test]
async fn the_format_is_the_one_that_the_client_prefers() {
    let bench = Bench::new();
    let app = bench.app();
    let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                        application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
                        text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    for (accept, openmetrics) in [
        ("", false),
        ("*/*", false),
        ("text/html,*/*;q=0.8", false),
        ("text/plain;version=0.0.4", false),
        ("text/plain,application/openmetrics-text;q=0.5", false),
        ("application/openmetrics-text", true),
        (prometheus_3, true),
    ] {
        let path = format!("{BASE}/metrics");
        let answer = send(&app, Method::GET, &path, &[("accept", accept)]).await;
        let content_type = match openmetrics {
            true => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            false => "text/plain; version=0.0.4; charset=utf-8",
        };
        assert_eq!(answer.header("content-type"), content_type, "{accept}");
        assert_eq!(
            answer.text().ends_with("\n# EOF\n"),
            openmetrics,
            "{accept}"
        );
        assert_eq!(answer.text().contains("# UNIT"), openmetrics, "{accept}");
    }
}

#[inline(never)]
fn remember_for_metrics() -> Vec<u8> {
    black_box(vec![1; 3_000_000])
}

#[tokio::test]
async fn routes_are_there_on_request_while_a_session_runs() {
    let bench = Bench::new();
    let app = bench.app();
    let none = call(&app, "metrics?routes=true").await;
    assert!(!none.text().contains("heapray_route"), "{}", none.text());
    call(&app, "start").await;
    let route = heapray::context([("route", "GET /metrics \"test\"")]);
    let kept = route.run(|| black_box(vec![1_u8; 3_000_000]));
    let now = metrics_by_route(&app).await;
    assert_eq!(now.of_route("live_bytes"), 3e6);
    assert_eq!(now.of_route("live_blocks"), 1.0);
    drop(kept);
    let now = metrics_by_route(&app).await;
    assert_eq!(now.of_route("live_bytes"), 0.0);
    assert_eq!(now.of_route("allocated_bytes_total"), 3e6);
    assert!(series(&now.0)["heapray_route_live_bytes{route=\"(no route)\"}"] > 0.0);
    call(&app, "stop").await;
    call(&app, "start").await;
    drop(route.run(|| black_box(vec![1_u8; 1_000_000])));
    let now = metrics_by_route(&app).await;
    assert_eq!(now.of_route("live_bytes"), 0.0);
    assert_eq!(now.of_route("allocated_bytes_total"), 4e6);
}

/// The text of metrics with those of routes.
struct ByRoute(String);

impl ByRoute {
    /// Returns the value of the route `GET /metrics "test"`.
    fn of_route(&self, family: &str) -> f64 {
        let name = format!(r#"heapray_route_{family}{{route="GET /metrics \"test\""}}"#);
        series(&self.0)[&*name]
    }
}

async fn metrics_by_route(app: &Router) -> ByRoute {
    ByRoute(call(app, "metrics?routes=true").await.text().to_owned())
}

#[tokio::test]
async fn call_sites_and_the_usual_metrics_of_a_process_are_there_on_request() {
    let bench = Bench::new();
    let app = bench.app();
    call(&app, "start").await;
    let kept = remember_for_metrics();
    let plain = call(&app, "metrics").await;
    for name in ["heapray_site", "\nprocess_"] {
        assert!(!plain.text().contains(name), "{name}");
    }
    let answer = call(&app, "metrics?sites=1&process=true").await;
    let now = series(answer.text());
    let sites: Vec<_> = now
        .keys()
        .filter(|name| name.starts_with("heapray_site_live_"))
        .collect();
    assert_eq!(sites.len(), 2, "{sites:?}");
    assert!(
        sites[0].contains("metrics::remember_for_metrics\",location=\""),
        "{sites:?}"
    );
    assert!(sites[0].contains("tests/http/metrics.rs:"), "{sites:?}");
    for name in [
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_open_fds",
        "process_threads",
    ] {
        assert!(now[name] > 0.0, "{name}");
    }
    for (query, allowed) in [
        ("sites=101", "a number from 0 to 100"),
        ("sites=", "a number from 0 to 100"),
        ("sites=-1", "a number from 0 to 100"),
        ("routes=maybe", "true"),
        ("process=maybe", "true"),
    ] {
        let refused = call(&app, &format!("metrics?{query}"))
            .await
            .fails_with(400, "BadRequest");
        assert!(refused.contains(allowed), "{refused}");
    }
    // Looking names up is work that another site's page must not cause.
    let image = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "no-cors"),
    ];
    let path = format!("{BASE}/metrics?sites=1");
    send(&app, Method::GET, &path, &image)
        .await
        .fails_with(403, "CrossSiteRequest");
    drop(kept);
}

#[tokio::test]
async fn a_services_own_page_can_have_the_same_text() {
    let bench = Bench::new();
    let app = bench.app();
    let names =
        |text: &str| -> Vec<String> { series(text).into_keys().map(str::to_owned).collect() };
    let own = bench.profiler.metrics_text();
    assert_eq!(names(&own), names(call(&app, "metrics").await.text()));
    assert_eq!(heapray::Profiler::default().metrics_text(), "");
}

#[test]
#[cfg(feature = "prometheus-client")]
fn a_registry_of_prometheus_client_has_the_same_families() {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    let bench = Bench::new();
    bench.profiler.start().unwrap();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(heapray::MetricsCollector::new(
        bench.profiler.clone(),
    )));
    let mut encoded = String::new();
    encode(&mut encoded, &registry).unwrap();
    let own = bench.profiler.metrics_text();
    let (encoded_series, own_series) = (series(&encoded), series(&own));
    assert!(
        encoded_series.keys().eq(own_series.keys()),
        "{encoded}\n{own}"
    );
    for line in [
        "# TYPE heapray_allocated_bytes counter",
        "# UNIT heapray_live_bytes bytes",
        "# TYPE heapray info",
        "# HELP heapray_recording Whether allocations are recorded: 1 or 0.",
    ] {
        assert!(
            encoded.lines().any(|there| there == line),
            "{line}: {encoded}"
        );
    }
    bench.profiler.stop().unwrap();
}
