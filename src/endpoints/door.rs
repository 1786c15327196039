//! The one way in to all of the profiler's routes.

use axum::body::{Body, HttpBody};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::docs::Pages;
use super::error::ApiError;
use super::guard;
use super::{flamegraph, report, start, stats, status, stop};
use crate::config::Config;
use crate::profiler::Profiler;

/// Below it, and nowhere else, are the profiler's endpoints.
const BASE: &str = "/api/v1/profiler/memray/";

/// An enabled profiler's routes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Door {
    profiler: Profiler,
    config: std::sync::Arc<Config>,
    pages: Pages,
}

enum Endpoint {
    Start,
    Stop,
    Status,
    Report,
    Flamegraph,
    Stats,
}

impl Door {
    pub(crate) fn new(profiler: Profiler, config: Config, pages: Pages) -> Door {
        Door {
            profiler,
            config: config.into(),
            pages,
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the profiler answers `path`, whatever the app has there.
    pub(crate) fn is_endpoint(path: &str) -> bool {
        path.starts_with(BASE)
    }

    /// Answers a request whose path has lost its prefix. No body is asked for: nobody reads it.
    pub(crate) async fn answer(self, request: Parts) -> Response {
        let path = request.uri.path();
        let mut response = match path.strip_prefix(BASE) {
            Some(tail) => {
                let answered = self.endpoint(tail, &request).await;
                answered.unwrap_or_else(IntoResponse::into_response)
            }
            None => self.page(path, &request.method),
        };
        let headers = response.headers_mut();
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-store"));
        if request.method == Method::HEAD {
            without_body(&mut response);
        }
        response
    }

    async fn endpoint(&self, tail: &str, request: &Parts) -> Result<Response, ApiError> {
        // First, and whatever the path and method: a stranger learns nothing.
        guard::check_token(self.config.token.as_ref(), &request.headers)?;
        let endpoint = match tail.strip_suffix('/').unwrap_or(tail) {
            "start" => Endpoint::Start,
            "stop" => Endpoint::Stop,
            "status" => Endpoint::Status,
            "report" => Endpoint::Report,
            "flamegraph" => Endpoint::Flamegraph,
            "stats" => Endpoint::Stats,
            _ => return Err(ApiError::NotFound),
        };
        let changes = matches!(endpoint, Endpoint::Start | Endpoint::Stop);
        let allow = if changes {
            "POST, OPTIONS"
        } else {
            "GET, HEAD, OPTIONS"
        };
        let fits = match request.method {
            Method::OPTIONS => return Ok(options(allow)),
            Method::POST => changes,
            Method::GET | Method::HEAD => !changes,
            _ => false,
        };
        if !fits {
            return Err(ApiError::MethodNotAllowed(allow));
        }
        guard::check_origin(&request.method, &request.headers)?;
        let (profiler, query, headers) = (&self.profiler, request.uri.query(), &request.headers);
        match endpoint {
            Endpoint::Start => start::start(profiler).await,
            Endpoint::Stop => stop::stop(profiler).await,
            Endpoint::Status => status::status(profiler).await,
            Endpoint::Report => report::report(profiler, query, headers).await,
            Endpoint::Flamegraph => flamegraph::flamegraph(profiler, query, headers).await,
            Endpoint::Stats => stats::stats(profiler, query, headers).await,
        }
    }

    fn page(&self, path: &str, method: &Method) -> Response {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return ApiError::MethodNotAllowed("GET, HEAD").into_response();
        }
        let page = self.pages.get(path);
        page.unwrap_or_else(|| ApiError::NotFound.into_response())
    }
}

fn options(allow: &'static str) -> Response {
    let allow = [(header::ALLOW, HeaderValue::from_static(allow))];
    (StatusCode::NO_CONTENT, allow).into_response()
}

/// `HEAD` answers as `GET` would, to the length, without the body: nothing is read from disk.
fn without_body(response: &mut Response) {
    if let Some(len) = response.body().size_hint().exact() {
        let headers = response.headers_mut();
        headers.entry(header::CONTENT_LENGTH).or_insert(len.into());
    }
    *response.body_mut() = Body::empty();
}
