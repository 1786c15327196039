//! Helpers for the HTTP tests: a profiler in a directory of its own, and requests without a socket.

use std::path::{Path, PathBuf};
use std::sync::MutexGuard;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use heapray::{Builder, Profiler};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use crate::support::turn;

pub(crate) const BASE: &str = "/api/v1/profiler/memray";

/// A profiler in a directory of its own, which does not read the environment and does not record yet. The test holds its
/// turn as long as the bench lives. When the bench is dropped, the recording stops and the directory is removed.
pub(crate) struct Bench {
    pub(crate) profiler: Profiler,
    pub(crate) dir: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench::with(|builder| builder)
    }

    pub(crate) fn with(change: impl FnOnce(Builder) -> Builder) -> Bench {
        let turn = turn();
        let dir = fresh_dir();
        let builder = heapray::builder()
            .ignore_environment()
            .enabled(true)
            .wait_for_start()
            .dir(&dir);
        let profiler = change(builder).build().unwrap();
        Bench {
            profiler,
            dir,
            _turn: turn,
        }
    }

    pub(crate) fn app(&self) -> Router {
        self.profiler.mount(Router::new())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.profiler.shutdown();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Makes a new directory for one test.
pub(crate) fn fresh_dir() -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let dir = base.join(format!("http-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let head = (self.status, &self.headers);
        assert_eq!(self.header("content-type"), "application/json", "{head:?}");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Checks that this is a failure of that status and kind, in the form of all failures, and returns its text.
    #[track_caller]
    pub(crate) fn fails_with(&self, status: u16, kind: &str) -> String {
        let body = self.json();
        assert_eq!(
            (self.status.as_u16(), body["type"].as_str()),
            (status, Some(kind)),
            "{body}"
        );
        body["error"].as_str().unwrap().to_owned()
    }
}

/// Sends a request with headers and returns the complete answer. A body that breaks off is an error.
pub(crate) async fn try_send(
    app: &Router,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<Answer, axum::Error> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from("{not JSON at all")).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    Ok(Answer {
        status: parts.status,
        headers: parts.headers,
        body: body.collect().await?.to_bytes().to_vec(),
    })
}

pub(crate) async fn send(
    app: &Router,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> Answer {
    try_send(app, method, path, headers).await.unwrap()
}

pub(crate) async fn get(app: &Router, path: &str) -> Answer {
    send(app, Method::GET, path, &[]).await
}

pub(crate) async fn post(app: &Router, path: &str) -> Answer {
    send(app, Method::POST, path, &[]).await
}

/// Calls one of the profiler's own endpoints.
pub(crate) async fn call(app: &Router, endpoint: &str) -> Answer {
    let method = match endpoint.split('?').next() {
        Some("start" | "stop" | "mark" | "ticket") => Method::POST,
        _ => Method::GET,
    };
    send(app, method, &format!("{BASE}/{endpoint}"), &[]).await
}

/// Reads the events of the live stream until `enough` returns true.
pub(crate) async fn watch(app: &Router, mut enough: impl FnMut(&str, &Value) -> bool) {
    let request = Request::get(format!("{BASE}/live"))
        .body(Body::empty())
        .unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.unwrap().into_data().unwrap();
        let text = std::str::from_utf8(&frame).unwrap();
        for event in text.split("\n\n").filter(|event| event.contains("event: ")) {
            let line = |name: &str| {
                event
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .unwrap()
            };
            let data = serde_json::from_str(line("data: ")).unwrap();
            if enough(line("event: "), &data) {
                return;
            }
        }
    }
    panic!("the stream ended too early");
}
