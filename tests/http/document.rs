//! Tests that the OpenAPI document describes what the endpoints answer.

use crate::bench::{BASE, Bench, call, fresh_dir, get, send};
use axum::Router;
use axum::http::Method;

#[tokio::test]
async fn the_document_describes_every_route_and_every_described_route_exists() {
    let bench = Bench::with(|builder| builder.memory_log(true).memory_dir(fresh_dir()));
    let app = bench.app();
    call(&app, "start").await;
    let document = get(&app, "/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let servers = document["servers"].as_array().unwrap();
    let urls: Vec<_> = servers
        .iter()
        .map(|server| server["url"].as_str().unwrap())
        .collect();
    assert_eq!(urls, [".", "/pub/job/JOB_NAME/JOB_VERSION"]);
    // The values for the parameters in the paths and queries.
    call(&app, "stop").await;
    let kept = call(&app, "reports").await.json();
    let id = kept[0]["id"].as_str().unwrap().to_owned();
    call(&app, "start").await;
    let mut operations = 0;
    let mut paths: Vec<_> = document["paths"].as_object().unwrap().iter().collect();
    // Deleting comes last.
    paths.sort_by_key(|(_, item)| item["delete"].is_object());
    for (path, item) in paths {
        let mut methods: Vec<_> = item.as_object().unwrap().iter().collect();
        methods.sort_by_key(|(method, _)| *method == "delete");
        for (method, operation) in methods {
            let query = match path.rsplit('/').next().unwrap() {
                "mark" => "?name=here",
                "ticket" => "?for=stats",
                _ => "",
            };
            if path.ends_with("/stop") {
                continue;
            }
            let called = path.replace("{id}", &id) + query;
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let answer = send(&app, method.clone(), &called, &[]).await;
            let status = if method == Method::DELETE { 204 } else { 200 };
            assert_eq!(answer.status, status, "{method} {called}");
            // The response has the documented type and all documented headers.
            let ok = &operation["responses"][status.to_string()];
            let content_type = answer.header("content-type");
            assert!(
                status == 204 || ok["content"][content_type].is_object(),
                "{path}: {content_type} {ok}"
            );
            for name in ok["headers"].as_object().into_iter().flatten() {
                // A kept report is not a snapshot.
                if !(path.contains("{id}") && name.0 == "X-Heapray-Snapshot") {
                    assert_ne!(answer.header(name.0), "", "{path}: {}", name.0);
                }
            }
            assert!(operation["responses"]["401"]["content"]["application/json"].is_object());
            operations += 1;
        }
    }
    assert!(operations >= 24, "{operations}");
}

#[tokio::test]
async fn status_has_exactly_the_fields_that_the_document_promises() {
    let bench = Bench::new();
    let app = bench.app();
    let document = get(&app, "/openapi.json").await.json();
    let schemas = &document["components"]["schemas"];
    let keys = |value: &serde_json::Value| {
        let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    call(&app, "start").await;
    call(&app, "stop").await;
    let status = call(&app, "status").await.json();
    assert_eq!(keys(&status), keys(&schemas["Status"]["properties"]));
    assert_eq!(
        keys(&status["overhead"]),
        keys(&schemas["OverheadStatus"]["properties"])
    );
    assert_eq!(
        keys(&status["report"]),
        keys(&schemas["ReportStatus"]["properties"])
    );
    let kept = &call(&app, "reports").await.json()[0];
    assert_eq!(keys(kept), keys(&schemas["KeptReport"]["properties"]));
    let stats = call(&app, "stats?format=json").await.json();
    for (part, name) in [
        (&stats, "Statistics"),
        (&stats["metadata"], "StatisticsMetadata"),
        (&stats["heapray"], "StatisticsHeapray"),
        (&stats["heapray"]["overhead"], "StatisticsOverhead"),
        (&stats["allocation_size_histogram"][0], "StatisticsBin"),
    ] {
        let schema = &schemas[name];
        assert_eq!(keys(part), keys(&schema["properties"]), "{name}");
        let required = schema["required"].as_array().unwrap();
        assert_eq!(required.len(), keys(part).len(), "{name}");
    }
    call(&app, "start").await;
    let mark = call(&app, "mark?name=x").await.json();
    assert_eq!(keys(&mark), keys(&schemas["Mark"]["properties"]));
    let error = get(&app, &format!("{BASE}/nothing")).await.json();
    assert_eq!(keys(&error), keys(&schemas["ErrorBody"]["properties"]));
}

#[tokio::test]
async fn an_apps_own_document_is_merged_with_the_profilers() {
    let bench = Bench::new();
    let own = serde_json::json!({
        "openapi": "3.1.0",
        "info": { "title": "Adder", "version": "2" },
        "paths": { "/api/v1/perform": { "post": { "responses": {} } } }
    });
    let app = bench.profiler.mount_documented(Router::new(), &own);
    let document = get(&app, "/openapi.json").await.json();
    assert_eq!(document["info"]["title"], "Adder");
    assert!(document["paths"]["/api/v1/perform"]["post"].is_object());
    assert!(document["paths"]["/api/v1/profiler/memray/start"]["post"].is_object());
    assert_eq!(document["servers"][0]["url"], ".");
}

#[tokio::test]
async fn a_document_that_is_not_understood_leaves_the_profilers_own() {
    let bench = Bench::new();
    for own in [
        serde_json::json!({ "swagger": "2.0" }),
        serde_json::json!(null),
    ] {
        let app = bench.profiler.mount_documented(Router::new(), own);
        let document = get(&app, "/openapi.json").await.json();
        assert!(document["paths"]["/api/v1/profiler/memray/start"]["post"].is_object());
    }
}
