//! Tests of every route at the root and below the prefix, with and without a slash, by every method, and of access to them.

use crate::bench::{BASE, Bench, call, fresh_dir, get, post, send};
use crate::support::turn;
use axum::Router;
use axum::extract::{MatchedPath, OriginalUri, Path};
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{get as on_get, post as on_post};

const PREFIXES: [&str; 4] = [
    "",
    "/pub/job/a/1",
    "/pub/job/anything/latest",
    "/pub/job/%C3%A4/0.0.1-x",
];

#[tokio::test]
async fn every_endpoint_answers_at_each_prefix_with_and_without_slash_by_each_method() {
    let bench = Bench::with(|builder| builder.memory_log(true).memory_dir(fresh_dir()));
    let app = bench.app();
    call(&app, "start").await;
    const READ: [(Method, u16); 6] = [
        (Method::GET, 200),
        (Method::HEAD, 200),
        (Method::POST, 405),
        (Method::PUT, 405),
        (Method::DELETE, 405),
        (Method::OPTIONS, 204),
    ];
    const CHANGE: [(Method, u16); 6] = [
        (Method::GET, 405),
        (Method::HEAD, 405),
        (Method::POST, 200),
        (Method::PUT, 405),
        (Method::DELETE, 405),
        (Method::OPTIONS, 204),
    ];
    for (endpoint, content_type, methods) in [
        ("start", "application/json", CHANGE),
        ("stop", "application/json", CHANGE),
        ("status", "application/json", READ),
        ("report", "application/octet-stream", READ),
        ("flamegraph", "text/html; charset=utf-8", READ),
        ("stats", "text/plain; charset=utf-8", READ),
        ("table", "text/plain; charset=utf-8", READ),
        ("tree", "text/plain; charset=utf-8", READ),
        ("summary", "text/plain; charset=utf-8", READ),
        ("pprof", "application/octet-stream", READ),
        ("reports", "application/json", READ),
        ("metrics", "text/plain; version=0.0.4; charset=utf-8", READ),
        ("timeline", "application/json", READ),
    ] {
        for prefix in PREFIXES {
            for slash in ["", "/", "?query=kept", "/?full=1&x"] {
                for (method, status) in &methods {
                    let path = format!("{prefix}{BASE}/{endpoint}{slash}");
                    let answer = send(&app, method.clone(), &path, &[]).await;
                    let called = format!("{method} {path}: {answer:?}");
                    assert_eq!(answer.status.as_u16(), *status, "{called}");
                    match status {
                        200 => assert_eq!(answer.header("content-type"), content_type, "{called}"),
                        204 | 405 => {
                            let allow = if methods == CHANGE {
                                "POST"
                            } else {
                                "GET, HEAD"
                            };
                            assert!(answer.header("allow").starts_with(allow), "{called}");
                        }
                        other => panic!("{other} in the table"),
                    }
                    if *method == Method::HEAD {
                        assert!(answer.body.is_empty(), "{called}");
                    }
                    assert_eq!(
                        answer.header("x-content-type-options"),
                        "nosniff",
                        "{called}"
                    );
                    assert_ne!(answer.header("cache-control"), "", "{called}");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_live_page_is_at_the_base_and_a_base_without_its_slash_leads_there() {
    for bench in [Bench::new, || Bench::with(|builder| builder.token(TOKEN))] {
        let bench = bench();
        let app = bench.app();
        for prefix in PREFIXES {
            let bare = get(&app, &format!("{prefix}{BASE}?x=y")).await;
            assert_eq!(
                (bare.status.as_u16(), bare.header("location")),
                (307, "memray/?x=y")
            );
            let page = get(&app, &format!("{prefix}{BASE}/")).await;
            assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
            let policy = page.header("content-security-policy");
            assert!(
                policy.starts_with("default-src 'none'; script-src 'sha256-"),
                "{policy}"
            );
            assert!(!policy.contains("unsafe"), "{policy}");
            assert!(!page.text().contains("=\"/"), "every link is relative");
            let path = format!("{prefix}{BASE}/");
            for (method, status) in [
                (Method::HEAD, 200),
                (Method::POST, 405),
                (Method::DELETE, 405),
            ] {
                assert_eq!(send(&app, method, &path, &[]).await.status, status);
            }
        }
    }
}

#[tokio::test]
async fn a_path_that_is_not_an_endpoint_is_404_in_json() {
    let bench = Bench::new();
    let app = bench.app();
    for prefix in PREFIXES {
        for path in [
            "x",
            "/",
            "start/x",
            "reports/x",
            "reports/..",
            "reports/%2e%2e/status",
            "reports/1/..",
            "reports/1/start",
            "reports/-1/stats",
            "reports//stats",
            "report/..",
            "..",
            "report//",
            "%2e%2e/report",
            "Start",
        ] {
            let answer = get(&app, &format!("{prefix}{BASE}/{path}")).await;
            if prefix.is_empty() || !path.contains("..") && !path.contains("%2e") {
                answer.fails_with(404, "NotFound");
            } else {
                // A path with a dot segment is not below the prefix.
                assert_eq!(answer.status, 404, "{path}");
            }
        }
    }
    for path in [
        "/api/v1/profiler/memrayx",
        "/pub/job/a",
        "/pub/job//1/openapi.json",
        "/pub/jobs/a/1/openapi.json",
        "/api/v1/profiler",
    ] {
        assert_eq!(get(&app, path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn an_apps_own_routes_work_below_the_prefix_as_at_the_root_if_it_is_configured() {
    let bench = Bench::with(|builder| builder.routes_below_prefix(true));
    let app = Router::new()
        .route("/health", on_get(|| async { "healthy" }))
        .route(
            "/api/v1/perform",
            on_post(|body: String| async move { body.len().to_string() }),
        )
        .route(
            "/users/{id}",
            on_get(|Path(id): Path<u32>| async move { id.to_string() }),
        )
        .route(
            "/uri",
            on_get(|uri: Uri, OriginalUri(original): OriginalUri| async move {
                format!("{uri} {original}")
            }),
        )
        .route(
            "/matched/{x}",
            on_get(|path: MatchedPath| async move { path.as_str().to_owned() }),
        )
        .fallback(
            |uri: Uri| async move { (StatusCode::NOT_FOUND, format!("the app knows no {uri}")) },
        );
    let app = bench.profiler.mount(app);
    for prefix in PREFIXES {
        let at = |path: &str| format!("{prefix}{path}");
        assert_eq!(get(&app, &at("/health")).await.text(), "healthy");
        assert_eq!(post(&app, &at("/api/v1/perform")).await.text(), "16");
        assert_eq!(get(&app, &at("/users/7")).await.text(), "7");
        assert_eq!(get(&app, &at("/users/x")).await.status, 400);
        let both = format!("/uri?a=b&c {}", at("/uri?a=b&c"));
        assert_eq!(get(&app, &at("/uri?a=b&c")).await.text(), both);
        assert_eq!(get(&app, &at("/matched/1")).await.text(), "/matched/{x}");
        assert_eq!(
            get(&app, &at("/nothing")).await.text(),
            "the app knows no /nothing"
        );
        assert_eq!(
            get(&app, &at("/health/")).await.status,
            404,
            "the app's slashes are its own"
        );
        assert_eq!(post(&app, &at("/health")).await.status, 405);
    }
}

#[tokio::test]
async fn an_apps_own_pages_replace_the_profilers_pages_but_not_the_endpoints() {
    let bench = Bench::with(|builder| builder.routes_below_prefix(true));
    let app = Router::new()
        .route("/", on_get(|| async { "home" }))
        .route("/docs", on_get(|| async { "my docs" }))
        .route("/openapi.json", on_get(|| async { "my document" }))
        .route(
            "/api/v1/profiler/memray/status",
            on_get(|| async { "shadow" }),
        );
    let app = bench.profiler.mount(app);
    for prefix in ["", "/pub/job/a/1"] {
        let at = |path: &str| format!("{prefix}{path}");
        assert_eq!(get(&app, &at("/")).await.text(), "home");
        assert_eq!(get(&app, &at("/docs")).await.text(), "my docs");
        assert_eq!(get(&app, &at("/openapi.json")).await.text(), "my document");
        assert_eq!(
            get(&app, &at("/api/v1/profiler/memray/status"))
                .await
                .json()["state"],
            "stopped"
        );
    }
}

#[tokio::test]
async fn an_apps_routes_do_not_go_through_the_profiler_unless_one_overlaps_its_own() {
    for below in [false, true] {
        app_beside_the_profiler(below).await;
    }
}

async fn app_beside_the_profiler(below: bool) {
    let bench = Bench::with(|builder| {
        let named = builder.job_name("adder").job_version("1.0");
        named.routes_below_prefix(below)
    });
    let own = || on_get(|| async { "own" });
    let unmatched = Router::new()
        .route("/x", own())
        .fallback(|| async { "unmatched" });
    for (what, app, goes_through) in [
        ("usual", Router::new().route("/", own()), false),
        (
            "a fallback",
            Router::new().fallback(|| async { "own" }),
            false,
        ),
        ("a word", Router::new().route("/users/{id}", own()), false),
        (
            "nested",
            Router::new().nest("/api/v2", unmatched.clone()),
            false,
        ),
        ("all", Router::new().route("/{*path}", own()), true),
        ("docs", Router::new().route("/{word}/{other}", own()), true),
        (
            "all of ours",
            Router::new().route("/api/{*rest}", own()),
            true,
        ),
        (
            "nested above",
            Router::new().nest("/api", unmatched.clone()),
            true,
        ),
        (
            "this job",
            Router::new().nest("/pub/job/adder/1.0", unmatched),
            true,
        ),
        (
            "a home to post to",
            Router::new().route("/", on_post(|| async {})),
            true,
        ),
        (
            "below",
            Router::new().route("/pub/job/{*rest}", own()),
            true,
        ),
        (
            "an endpoint",
            Router::new().route("/api/v1/profiler/memray/reports/{number}", own()),
            true,
        ),
    ] {
        let app = bench
            .profiler
            .mount(app.route("/health", on_get(|| async { "healthy" })));
        // If the whole app is behind the profiler, the result does not have the app's routes.
        assert_eq!(app.has_routes(), !goes_through, "{what}");
        for prefix in PREFIXES.iter().chain(&["/pub/job/adder/1.0"]) {
            let at = |path: &str| format!("{prefix}{path}");
            if below || prefix.is_empty() {
                assert_eq!(get(&app, &at("/health")).await.text(), "healthy", "{what}");
            } else {
                assert_ne!(get(&app, &at("/health")).await.text(), "healthy", "{what}");
            }
            let status = get(&app, &at(&format!("{BASE}/status"))).await;
            assert_eq!(status.json()["state"], "stopped", "{what}");
            let reports = get(&app, &at(&format!("{BASE}/reports/1"))).await;
            reports.fails_with(404, "ReportNotFound");
        }
    }
}

#[tokio::test]
async fn a_prefix_without_its_slash_is_redirected_relatively_with_its_query() {
    let bench = Bench::new();
    let app = bench.app();
    for (path, to) in [
        ("/pub/job/a/1", "./1/"),
        ("/pub/job/a/1.0?x=y&z", "./1.0/?x=y&z"),
        ("/pub/job/a/b:c", "./b:c/"),
    ] {
        let answer = get(&app, path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("location")),
            (307, to),
            "{path}"
        );
    }
}

#[tokio::test]
async fn another_prefix_and_none_at_all_can_be_configured() {
    let status = format!("{BASE}/status");
    let bench = Bench::with(|builder| builder.prefix("/tools/{x}/"));
    assert_eq!(
        get(&bench.app(), &format!("/tools/1{status}")).await.status,
        200
    );
    assert_eq!(
        get(&bench.app(), &format!("/pub/job/a/1{status}"))
            .await
            .status,
        404
    );
    drop(bench);
    // A prefix with which the endpoints' own path begins.
    let bench = Bench::with(|builder| builder.prefix("/api"));
    for path in [&status, &format!("/api{status}")] {
        assert_eq!(get(&bench.app(), path).await.status, 200, "{path}");
    }
    drop(bench);
    let bench = Bench::with(|builder| builder.prefix("/"));
    assert_eq!(get(&bench.app(), &status).await.status, 200);
    assert_eq!(
        get(&bench.app(), &format!("/pub/job/a/1{status}"))
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn the_router_alone_can_be_merged_or_nested() {
    let bench = Bench::new();
    let app = Router::new()
        .route("/", on_get(|| async { "home" }))
        .fallback(|| async { "lost" });
    let app = app.merge(bench.profiler.router());
    assert_eq!(get(&app, "/").await.text(), "home");
    assert_eq!(get(&app, "/x").await.text(), "lost");
    assert_eq!(call(&app, "status").await.status, 200);

    let app = Router::new().nest_service("/debug/{where}", bench.profiler.router());
    assert_eq!(
        get(&app, &format!("/debug/here{BASE}/status/"))
            .await
            .status,
        200
    );
    assert_eq!(get(&app, "/debug/here/openapi.json").await.status, 200);
}

#[tokio::test]
#[allow(clippy::await_holding_lock)] // as in each `Bench`: the runtime has only this thread
async fn a_disabled_profiler_adds_nothing() {
    let _turn = turn();
    let profiler = heapray::builder().ignore_environment().build().unwrap();
    let app = profiler.mount(Router::new().route("/health", on_get(|| async { "healthy" })));
    assert_eq!(get(&app, "/health").await.text(), "healthy");
    for path in [
        "/",
        "/docs",
        "/openapi.json",
        "/pub/job/a/1/health",
        "/api/v1/profiler/memray/status",
    ] {
        let answer = get(&app, path).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (404, ""), "{path}");
    }
    assert!(!profiler.router().has_routes());
    assert_eq!(profiler.serve("127.0.0.1:0").unwrap(), None);
    assert!(matches!(profiler.start(), Err(heapray::Error::Disabled)));
    assert_eq!(profiler.shutdown().unwrap().state, heapray::State::Disabled);
}

const TOKEN: &str = "s3cret-token";

#[tokio::test]
async fn with_a_token_set_nothing_below_the_profiler_answers_without_it() {
    let bench = Bench::with(|builder| builder.token(TOKEN));
    let app = bench.app();
    for prefix in ["", "/pub/job/a/1"] {
        for endpoint in [
            "start",
            "stop",
            "status",
            "report",
            "flamegraph",
            "stats",
            "pprof",
            "mark?name=x",
            "live",
            "ticket?for=stats",
            "metrics",
            "timeline",
            "reports",
            "reports/1",
            "reports/1/flamegraph",
            "stats?ticket=6920b2f4-0000000000000000-0000000000000000",
            "nothing",
            "start/",
        ] {
            for method in [
                Method::GET,
                Method::HEAD,
                Method::POST,
                Method::OPTIONS,
                Method::PUT,
                Method::DELETE,
            ] {
                let path = format!("{prefix}{BASE}/{endpoint}");
                for headers in [
                    &[][..],
                    &[("authorization", "Bearer wrong")],
                    &[("x-racetrack-auth", TOKEN)],
                ] {
                    let answer = send(&app, method.clone(), &path, headers).await;
                    assert_eq!(answer.status, 401, "{method} {path}");
                    assert_eq!(
                        answer.header("www-authenticate"),
                        "Bearer realm=\"heapray\""
                    );
                    if method != Method::HEAD {
                        answer.fails_with(401, "Unauthorized");
                    }
                }
            }
        }
    }
    assert_eq!(
        bench.profiler.status().state,
        heapray::State::Stopped,
        "no request started a session"
    );
    let right = format!("Bearer {TOKEN}");
    let start = format!("{BASE}/start");
    let answer = send(&app, Method::POST, &start, &[("authorization", &right)]).await;
    assert_eq!(answer.json()["state"], "recording");
}

#[tokio::test]
async fn with_a_token_set_the_pages_load_and_swagger_ui_knows_it() {
    let bench = Bench::with(|builder| builder.token(TOKEN));
    let document = get(&bench.app(), "/openapi.json").await.json();
    let scheme = &document["components"]["securitySchemes"]["heapray_token"];
    assert_eq!(
        (&scheme["type"], &scheme["scheme"]),
        (&"http".into(), &"bearer".into())
    );
    let start = &document["paths"]["/api/v1/profiler/memray/start"]["post"];
    assert_eq!(start["security"][0]["heapray_token"], serde_json::json!([]));
    assert!(!document.to_string().contains(TOKEN));
    drop(bench);
    let document = get(&Bench::new().app(), "/openapi.json").await.json();
    assert!(
        document["components"]["securitySchemes"].is_null(),
        "no token, no scheme"
    );
}

#[tokio::test]
async fn a_page_of_another_site_can_neither_change_nor_watch_anything() {
    let bench = Bench::new();
    let app = bench.app();
    let start = format!("{BASE}/start");
    for headers in [
        [("sec-fetch-site", "cross-site"), ("host", "a")],
        [("sec-fetch-site", "same-site"), ("host", "a")],
        [("origin", "http://evil.example"), ("host", "a")],
        [("origin", "null"), ("host", "a")],
    ] {
        for (method, endpoint) in [
            (Method::POST, "start"),
            (Method::POST, "stop"),
            (Method::POST, "mark?name=x"),
            (Method::POST, "ticket?for=stats"),
            (Method::DELETE, "reports/1"),
            (Method::GET, "live"),
        ] {
            let path = format!("{BASE}/{endpoint}");
            let answer = send(&app, method, &path, &headers).await;
            answer.fails_with(403, "CrossSiteRequest");
        }
    }
    assert_eq!(bench.profiler.status().state, heapray::State::Stopped);
    let own = [
        ("sec-fetch-site", "same-origin"),
        ("origin", "http://a"),
        ("host", "a"),
    ];
    assert_eq!(send(&app, Method::POST, &start, &own).await.status, 200);
}

#[cfg(feature = "swagger-ui")]
#[tokio::test]
async fn swagger_ui_is_at_docs_and_the_home_page_leads_there_relatively() {
    let bench = Bench::new();
    let app = bench.app();
    for prefix in ["", "/pub/job/a/1"] {
        for home in ["/", "/docs"] {
            let answer = get(&app, &format!("{prefix}{home}")).await;
            assert_eq!(
                (answer.status.as_u16(), answer.header("location")),
                (307, "docs/")
            );
        }
        let page = get(&app, &format!("{prefix}/docs/")).await;
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        assert!(
            page.header("content-security-policy")
                .contains("default-src 'none'")
        );
        for file in [
            "swagger-ui.css",
            "swagger-ui-bundle.js",
            "swagger-ui-standalone-preset.js",
            "index.css",
        ] {
            let asset = get(&app, &format!("{prefix}/docs/{file}")).await;
            assert_eq!(asset.status, 200, "{file}");
            assert!(!asset.body.is_empty());
        }
        let start = get(&app, &format!("{prefix}/docs/swagger-initializer.js")).await;
        assert!(
            start.text().contains("\"../openapi.json\""),
            "{}",
            start.text()
        );
        assert!(
            !start.text().contains("\"persistAuthorization\": true"),
            "a token does not stay in the browser: {}",
            start.text()
        );
        assert!(
            !start.text().contains("http"),
            "the page loads nothing from other sites: {}",
            start.text()
        );
        let nothing = get(&app, &format!("{prefix}/docs/../../etc/passwd")).await;
        assert_eq!(nothing.status, 404);
    }
}
