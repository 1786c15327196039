//! Tests of access: one guard protects the service and the profiler, at the root and below the prefix, in every way to mount
//! the profiler, and no path below the prefix bypasses a rule about paths.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::bench::{BASE, Bench, get, send};
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get as on_get;
use http_body_util::BodyExt;
use tower::{Layer, ServiceExt, service_fn};

const SECRET: (&str, &str) = ("x-secret", "42");

/// Passes a request on if it has the secret.
async fn guard(request: Request, next: Next) -> Response {
    match request.headers().get(SECRET.0) {
        Some(value) if value == SECRET.1 => next.run(request).await,
        _ => StatusCode::UNAUTHORIZED.into_response(),
    }
}

/// Refuses paths, as a proxy may do.
async fn no_admin(request: Request, next: Next) -> Response {
    match request.uri().path().starts_with("/admin") {
        true => StatusCode::FORBIDDEN.into_response(),
        false => next.run(request).await,
    }
}

/// Makes a service. The profiler is beside its routes, or before them if the service has a route for every path.
fn service(everywhere: bool) -> Router {
    let app = Router::new().route("/admin/secret", on_get(|| async { "the secret" }));
    match everywhere {
        true => app.route("/{*path}", on_get(|| async { "everywhere" })),
        false => app,
    }
}

/// Mounts the profiler in such a service in each way.
fn mounted(bench: &Bench, everywhere: bool) -> [(&'static str, Router); 3] {
    let app = service(everywhere);
    let layered = bench.profiler.layer().layer(app.clone());
    // A tower service that is not axum's.
    let plain = service_fn(move |request: Request<Body>| {
        let app = app.clone();
        async move { app.oneshot(request).await }
    });
    let plain = bench.profiler.layer().layer(plain);
    [
        ("mount", bench.profiler.mount(service(everywhere))),
        ("layer", Router::new().fallback_service(layered)),
        ("plain", Router::new().fallback_service(plain)),
    ]
}

const EVERYTHING: [&str; 10] = [
    "/admin/secret",
    "/",
    "/docs/",
    "/openapi.json",
    "/nothing",
    "/api/v1/profiler/memray",
    "/api/v1/profiler/memray/",
    "/api/v1/profiler/memray/status",
    "/api/v1/profiler/memray/reports",
    "/api/v1/profiler/memray/nothing",
];

/// Returns the pages, which are public.
fn pages() -> Vec<String> {
    let docs = cfg!(feature = "swagger-ui").then(|| "/docs/".into());
    let others = ["/openapi.json".into(), format!("{BASE}/")];
    others.into_iter().chain(docs).collect()
}

#[tokio::test]
async fn one_guard_layered_last_protects_service_and_profiler_with_and_without_prefix() {
    for below in [false, true] {
        let bench = Bench::with(|builder| builder.routes_below_prefix(below));
        for everywhere in [false, true] {
            for (way, app) in mounted(&bench, everywhere) {
                let app = app.layer(from_fn(guard));
                for prefix in ["", "/pub/job/a/1", "/pub/job/%2e%2e/%2e%2e"] {
                    for path in EVERYTHING {
                        let path = format!("{prefix}{path}");
                        let answer = get(&app, &path).await;
                        assert_eq!(answer.status, 401, "{way} {path}: {answer:?}");
                        let answer = send(&app, axum::http::Method::GET, &path, &[SECRET]).await;
                        assert_ne!(answer.status, 401, "{way} {path}: {answer:?}");
                    }
                }
                for path in ["/admin/secret", &format!("/pub/job/a/1{BASE}/status")] {
                    let answer = send(&app, axum::http::Method::GET, path, &[SECRET]).await;
                    assert_eq!(answer.status, 200, "{way} {path}: {answer:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn below_the_prefix_the_profiler_answers_and_the_service_does_not() {
    let bench = Bench::new();
    for (way, app) in mounted(&bench, false) {
        for prefix in ["/pub/job/a/1", "/pub/job/%C3%A4/latest"] {
            let status = get(&app, &format!("{prefix}{BASE}/status")).await;
            assert_eq!(status.json()["state"], "stopped", "{way}");
            for page in pages() {
                let answer = get(&app, &format!("{prefix}{page}")).await;
                assert_eq!(answer.status, 200, "{way} {page}");
            }
            let secret = get(&app, &format!("{prefix}/admin/secret")).await;
            assert_eq!(secret.status, 404, "{way}");
        }
        assert_eq!(get(&app, "/admin/secret").await.text(), "the secret");
    }
}

#[tokio::test]
async fn routes_that_a_service_puts_below_the_prefix_itself_can_be_reached() {
    let bench = Bench::new();
    let routes = service(false).route("/docs/", on_get(|| async { "own docs" }));
    let job = Router::new().nest("/pub/job/{name}/{version}", routes);
    let app = bench.profiler.mount(job);
    assert_eq!(
        get(&app, "/pub/job/a/1/admin/secret").await.text(),
        "the secret"
    );
    assert_eq!(get(&app, "/pub/job/a/1/docs/").await.text(), "own docs");
    let status = get(&app, &format!("/pub/job/a/1{BASE}/status")).await;
    assert_eq!(status.json()["state"], "stopped");
    assert_eq!(get(&app, "/admin/secret").await.status, 404);
}

#[tokio::test]
async fn paths_with_dot_segments_are_404() {
    for below in [false, true] {
        let bench = Bench::with(|builder| builder.routes_below_prefix(below));
        for (way, app) in mounted(&bench, false) {
            for dots in [
                "..",
                "%2e%2e",
                "%2E.",
                ".",
                "%2e",
                "a%2f..",
                "%2e%2e%2fb",
                "a%5C..",
            ] {
                for path in [
                    format!("/pub/job/{dots}/{dots}/admin/secret"),
                    format!("/pub/job/{dots}/1/admin/secret"),
                    format!("/pub/job/a/{dots}/admin/secret"),
                    format!("/pub/job/a/1/{dots}/admin/secret"),
                    format!("/pub/job/a/1/admin/{dots}/secret"),
                    format!("/pub/job/{dots}/1{BASE}/status"),
                    format!("/pub/job/a/{dots}{BASE}/status"),
                    format!("/pub/job/a/1/{dots}{BASE}/status"),
                    format!("/pub/job/a/1{BASE}/{dots}/memray/status"),
                    format!("/pub/job/a/1{BASE}/x/{dots}/status"),
                    format!("/pub/job/a/{dots}/openapi.json"),
                    format!("/pub/job/a/{dots}"),
                    format!("{BASE}/{dots}/status"),
                    format!("{BASE}/reports/{dots}/status"),
                    format!("/docs/{dots}/admin/secret"),
                    format!("/{dots}{BASE}/status"),
                ] {
                    let answer = get(&app, &path).await;
                    assert_eq!(answer.status, 404, "{way} {path}: {answer:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_rule_about_paths_cannot_be_bypassed_through_the_prefix() {
    let bench = Bench::new();
    for everywhere in [false, true] {
        for (way, app) in mounted(&bench, everywhere) {
            let app = app.layer(from_fn(no_admin));
            assert_eq!(get(&app, "/admin/secret").await.status, 403, "{way}");
            for path in [
                "/pub/job/a/1/admin/secret",
                "/pub/job/%2e%2e/%2e%2e/admin/secret",
                "/pub/job/../../admin/secret",
                "/pub/job/a/1//admin/secret",
                "/pub/job/a/1/pub/job/a/1/admin/secret",
            ] {
                let answer = get(&app, path).await;
                assert!(
                    !answer.text().contains("secret"),
                    "{way} {path}: {answer:?}"
                );
            }
        }
    }
    drop(bench);
    // A service with its routes below the prefix needs the rule inside of the profiler too: there the rule sees the same
    // path as the service.
    let bench = Bench::with(|builder| builder.routes_below_prefix(true));
    let app = service(false).layer(from_fn(no_admin));
    let app = bench.profiler.mount(app).layer(from_fn(no_admin));
    for path in ["/admin/secret", "/pub/job/a/1/admin/secret"] {
        assert_eq!(get(&app, path).await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn below_the_prefix_the_document_is_the_profilers_own() {
    let own = || {
        let own = serde_json::json!({
            "openapi": "3.1.0",
            "info": { "title": "Adder", "version": "2" },
            "paths": { "/admin/secret": { "get": { "responses": {} } } }
        });
        serde_json::from_value::<utoipa::openapi::OpenApi>(own).unwrap()
    };
    for below in [false, true] {
        let bench = Bench::with(|builder| builder.routes_below_prefix(below));
        let app = bench.profiler.mount_documented(service(false), own());
        let at_root = get(&app, "/openapi.json").await.json();
        assert!(at_root["paths"]["/admin/secret"].is_object());
        let servers = at_root["servers"].as_array().unwrap().len();
        assert_eq!(servers, if below { 2 } else { 1 }, "{at_root}");
        let below_prefix = get(&app, "/pub/job/a/1/openapi.json").await.json();
        assert_eq!(below_prefix["paths"]["/admin/secret"].is_object(), below);
        assert!(below_prefix["paths"][format!("{BASE}/status")].is_object());
    }
}

/// Tests a plain hyper service over a socket, where the guard is hyper's service.
#[tokio::test]
async fn one_guard_before_a_plain_hyper_service_protects_everything() {
    use hyper_util::rt::TokioIo;
    use hyper_util::service::TowerToHyperService;
    let bench = Bench::new();
    let app = service(false);
    let inner = service_fn(move |request: Request<hyper::body::Incoming>| {
        let app = app.clone();
        async move { app.oneshot(request.map(Body::new)).await }
    });
    let inner = bench.profiler.layer().layer(inner);
    let guarded = service_fn(move |request: Request<hyper::body::Incoming>| {
        let inner = inner.clone();
        async move {
            match request.headers().get(SECRET.0) {
                Some(value) if value == SECRET.1 => inner.oneshot(request).await,
                _ => Ok::<_, Infallible>(StatusCode::UNAUTHORIZED.into_response()),
            }
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = TowerToHyperService::new(guarded.clone());
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    let asked = tokio::task::spawn_blocking(move || {
        for prefix in ["", "/pub/job/a/1"] {
            for path in EVERYTHING {
                assert_eq!(ask(address, &format!("{prefix}{path}"), ""), 401, "{path}");
            }
            let status = format!("{prefix}{BASE}/status");
            assert_eq!(ask(address, &status, "x-secret: 42\r\n"), 200);
        }
        assert_eq!(ask(address, "/admin/secret", "x-secret: 42\r\n"), 200);
        let below = ask(address, "/pub/job/a/1/admin/secret", "x-secret: 42\r\n");
        assert_eq!(below, 404);
    });
    asked.await.unwrap();
    server.abort();
}

/// The profiler's own listener has no layers: the token protects everything that is not public.
#[test]
fn on_a_listener_of_its_own_the_token_protects_everything_but_the_bare_pages() {
    let bench = Bench::with(|builder| builder.token("s3cret"));
    let address = bench.profiler.serve("127.0.0.1:0").unwrap().unwrap();
    let right = "authorization: Bearer s3cret\r\n";
    for prefix in ["", "/pub/job/a/1"] {
        for endpoint in ["status", "reports", "stats", "report", "live", "nothing"] {
            let path = format!("{prefix}{BASE}/{endpoint}");
            assert_eq!(ask(address, &path, ""), 401, "{path}");
        }
        assert_eq!(ask(address, &format!("{prefix}{BASE}/status"), right), 200);
        for page in pages() {
            assert_eq!(ask(address, &format!("{prefix}{page}"), ""), 200, "{page}");
        }
    }
    assert_eq!(ask(address, "/admin/secret", right), 404);
}

/// Requests the status under a host name, from a caller at `peer`, if the address is known.
async fn asked_as(app: &Router, host: &str, peer: Option<&str>) -> (u16, String) {
    let mut request = Request::builder()
        .uri(format!("{BASE}/status"))
        .header("host", host)
        .body(Body::empty())
        .unwrap();
    if let Some(peer) = peer {
        let peer: SocketAddr = peer.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
    }
    let answer = app.clone().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

const NEAR: [&str; 3] = ["127.0.0.1:4711", "[::1]:4711", "[::ffff:127.0.0.1]:4711"];
const FAR: &str = "10.1.2.3:4711";

#[tokio::test]
async fn a_foreign_host_name_that_resolves_to_this_machine_is_refused() {
    let bench = Bench::new();
    for (_, app) in mounted(&bench, false) {
        for peer in NEAR {
            for host in [
                "evil.example",
                "evil.example:7000",
                "localhost.evil.example",
                "a b",
                "",
            ] {
                let (status, body) = asked_as(&app, host, Some(peer)).await;
                assert_eq!(status, 403, "{host}: {body}");
                assert!(body.contains("HostNotAllowed"), "{body}");
                assert!(body.contains("MEMRAY_PROFILER_HOSTS"), "{body}");
            }
            for host in [
                "localhost:7000",
                "127.0.0.1",
                "[::1]:7000",
                "10.0.0.1",
                "memory-leak",
            ] {
                assert_eq!(asked_as(&app, host, Some(peer)).await.0, 200, "{host}");
            }
        }
        // Behind a proxy and in a pod, a service has names that are not configured.
        for host in ["memory-leak.default:7000", "service.example.com"] {
            assert_eq!(asked_as(&app, host, Some(FAR)).await.0, 200);
            assert_eq!(asked_as(&app, host, None).await.0, 200);
        }
        // Over HTTP/2 the name is in the URI. If there are two names, both are checked.
        for (uri, hosts) in [
            ("http://evil.example", &[][..]),
            ("http://evil.example", &["localhost"]),
            ("", &["localhost", "evil.example"]),
        ] {
            let mut request = Request::builder().uri(format!("{uri}{BASE}/status"));
            for host in hosts {
                request = request.header("host", *host);
            }
            let peer: SocketAddr = NEAR[0].parse().unwrap();
            // A server without axum passes the caller's address on like this.
            let request = request.extension(peer).body(Body::empty()).unwrap();
            let answer = app.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), 403, "{uri} {hosts:?}");
        }
    }
}

#[tokio::test]
async fn only_listed_host_names_are_accepted_and_with_a_token_names_are_not_checked() {
    let bench = Bench::with(|builder| builder.hosts(["profiler.example.com", "*.corp.example"]));
    let app = bench.app();
    for peer in [None, Some(FAR), Some(NEAR[0])] {
        for (host, status) in [
            ("profiler.example.com", 200),
            ("a.corp.example:7000", 200),
            ("localhost", 200),
            ("evil.example", 403),
        ] {
            assert_eq!(asked_as(&app, host, peer).await.0, status, "{host}");
        }
    }
    drop(bench);
    let bench = Bench::with(|builder| builder.hosts(["*"]));
    assert_eq!(
        asked_as(&bench.app(), "evil.example", Some(NEAR[0]))
            .await
            .0,
        200
    );
    drop(bench);
    let bench = Bench::with(|builder| builder.token("s3cret"));
    assert_eq!(
        asked_as(&bench.app(), "evil.example", Some(NEAR[0]))
            .await
            .0,
        401
    );
}

#[test]
fn a_listener_of_the_profilers_own_answers_under_names_that_no_stranger_can_own() {
    let bench = Bench::new();
    let address = bench.profiler.serve("127.0.0.1:0").unwrap().unwrap();
    let status = format!("{BASE}/status");
    for (host, expected) in [
        ("evil.example", 403),
        ("127.0.0.1", 200),
        ("memory-leak.default.svc:7001", 200),
    ] {
        assert_eq!(ask_as(address, &status, host, ""), expected, "{host}");
    }
    drop(bench);
    let bench = Bench::with(|builder| builder.token("s3cret"));
    let address = bench.profiler.serve("127.0.0.1:0").unwrap().unwrap();
    let right = "authorization: Bearer s3cret\r\n";
    assert_eq!(ask_as(address, &status, "any.example", right), 200);
}

/// Sends a `GET` over a socket and returns the answer's status.
fn ask(address: SocketAddr, path: &str, headers: &str) -> u16 {
    ask_as(address, path, "localhost", headers)
}

fn ask_as(address: SocketAddr, path: &str, host: &str, headers: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}
