//! The server of `heapray serve`: it stands before a service, and adds the names that the service lacks.
//!
//! ```text
//!              ┌─ events of the live page: the call sites that lines are made of ─▶ names ─▶ lines
//! browser ─▶ asked? ─ outputs: the service's report ─▶ names ─▶ what was asked for
//!              ├─ descriptions of kept reports: their two lines
//!              └─ everything else: the service's own answer
//! ```
//!
//! Requests are read, and outputs are made, by the same code as in the service. Only the profiler's endpoints are passed on.

mod body;
mod kept;
mod live;
mod outputs;
mod relay;

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use heapray::elsewhere::{self, Asked};
use heapray::symbolize::NamedLater;
use heapray_report::Report;
use serde_json::json;
use tokio::sync::{Semaphore, oneshot};

use self::kept::KeptLines;
pub(crate) use self::live::first;
use crate::context::Context;
use crate::remote::{ENDPOINTS, Remote};
use crate::symbols::Names;

/// Outputs that are made at once. Each holds a report in memory.
const OUTPUTS: usize = 2;

/// A service, and where its names are.
pub(crate) struct Front {
    pub(crate) remote: Remote,
    names: Mutex<Names>,
    kept: KeptLines,
    outputs: Semaphore,
    context: Context,
    /// When the program was built, if its file is here.
    built: Option<SystemTime>,
    /// Largest report, in bytes.
    largest: u64,
}

impl Front {
    pub(crate) fn new(
        remote: Remote,
        names: Names,
        built: Option<SystemTime>,
        largest: u64,
        context: Context,
    ) -> Front {
        Front {
            remote,
            names: Mutex::new(names),
            kept: KeptLines::default(),
            outputs: Semaphore::new(OUTPUTS),
            context,
            built,
            largest,
        }
    }

    /// Adds the names that `report` lacks.
    fn name(&self, report: &Report) -> NamedLater {
        unpoisoned(&self.names).name(report, &self.context)
    }
}

/// Returns the lock, also after a panic: what it holds is a cache.
fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers at `listener` until the command is ended.
pub(crate) fn run(listener: TcpListener, front: Arc<Front>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let app = Router::new().fallback(answer).with_state(front);
    // Never sent: a signal ends the process.
    let (_close, closed) = oneshot::channel();
    runtime.block_on(elsewhere::run(listener, app, closed))
}

async fn answer(State(front): State<Arc<Front>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if parts.uri.path() == "/" {
        return Redirect::temporary(&format!("{ENDPOINTS}/")).into_response();
    }
    let asked = elsewhere::asked(&parts);
    let place = match asked {
        Asked::Output(_) => front.outputs.acquire().await.ok(),
        _ => None,
    };
    let for_work = Arc::clone(&front);
    let made = tokio::task::spawn_blocking(move || work(&for_work, asked, &parts)).await;
    drop(place);
    made.unwrap_or_else(|_| failure("heapray serve has a fault: see its messages"))
}

/// Answers a request. Blocks.
fn work(front: &Arc<Front>, asked: Asked, request: &Parts) -> Response {
    match asked {
        Asked::Live => live::answer(front, request),
        Asked::Kept => kept::answer(front, request),
        Asked::Output(output) => outputs::answer(front, &output),
        Asked::Other => relay::answer(front, request),
        Asked::Refused(answer) => *answer,
    }
}

/// Returns an answer that says why there is no other, in the form of the service's own.
fn failure(why: &str) -> Response {
    let text = json!({ "error": why, "type": "BadGateway" }).to_string();
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    let json = axum::http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(axum::http::header::CONTENT_TYPE, json);
    response
}
