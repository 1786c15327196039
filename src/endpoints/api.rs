//! The router of the profiler: checks a request and calls the handler of its endpoint.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::debug_pprof::GoPath;
use super::docs::Pages;
use super::error::ApiError;
use super::guard;
use super::live::{self, LiveSlots};
use super::route::Endpoint;
use super::ticket::{self, Tickets};
use super::{docs, mark, metrics, outputs, query, reports, start, status, stop, timeline};
use crate::config::Config;
use crate::profiler::{Of, Profiler};

/// Path below which all endpoints of the profiler are. The live page is this path with a slash at its end.
pub(super) const BASE: &str = "/api/v1/profiler/memray";

/// An enabled profiler's routes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Api {
    profiler: Profiler,
    config: Arc<Config>,
    pages: Pages,
    tickets: Arc<Tickets>,
    slots: LiveSlots,
    /// Set if the requests come from the profiler's own listener.
    own_listener: bool,
}

impl Api {
    pub(crate) fn new(profiler: Profiler, config: Arc<Config>, pages: Pages) -> Api {
        Api {
            profiler,
            config,
            pages,
            tickets: Arc::default(),
            slots: LiveSlots::default(),
            own_listener: false,
        }
    }

    /// Returns the same routes, for the profiler's own listener.
    pub(crate) fn at_own_listener(self) -> Api {
        Api {
            own_listener: true,
            ..self
        }
    }

    /// Returns the same routes with a document of the profiler's routes alone, for a path where the app's routes are not.
    pub(crate) fn with_own_document(self) -> Api {
        Api {
            pages: self.pages.with_own_document(),
            ..self
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns whether `path` is an endpoint. The profiler answers those even if the app has a route there.
    pub(crate) fn is_endpoint(path: &str) -> bool {
        below_base(path).is_some()
    }

    /// Returns whether the profiler answers `path` where the app does not: its pages, and the paths that services in Go have.
    pub(crate) fn is_fallback(&self, method: &Method, path: &str) -> bool {
        match self.go_path(path) {
            Some(at) => at.takes(method),
            None => matches!(*method, Method::GET | Method::HEAD) && Pages::is_page(path),
        }
    }

    /// Returns what is at `path` if services in Go have it, unless the settings leave it to the app.
    pub(crate) fn go_path(&self, path: &str) -> Option<GoPath> {
        GoPath::at(path).filter(|_| self.config.debug_pprof)
    }

    /// Answers a request whose prefix has been removed from the path. Takes no body, because no endpoint reads one.
    pub(crate) async fn answer(self, request: Parts) -> Response {
        let path = request.uri.path();
        let mut response = match below_base(path) {
            Some(tail) => {
                let answered = self.endpoint(tail, &request).await;
                answered.unwrap_or_else(IntoResponse::into_response)
            }
            None => match self.go_path(path) {
                Some(at) => {
                    let answered = self.answer_go(at, &request).await;
                    answered.unwrap_or_else(IntoResponse::into_response)
                }
                None => self.page(path, &request.method),
            },
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

    /// Answers the endpoint at `tail`, the path after the base: empty, or a slash and the endpoint's name.
    async fn endpoint(&self, tail: &str, request: &Parts) -> Result<Response, ApiError> {
        let name = tail.strip_prefix('/');
        let endpoint = Endpoint::at(name.unwrap_or_default());
        guard::check_host(&self.config, self.own_listener, request)?;
        // The page itself needs no token: its data does.
        if endpoint != Some(Endpoint::Page) {
            self.check_token(name.unwrap_or_default(), request)?;
        }
        let endpoint = endpoint
            .ok_or_else(|| ApiError::NotFound(Endpoint::nearest(name.unwrap_or_default())))?;
        if !endpoint.takes(&request.method) {
            return Err(ApiError::MethodNotAllowed(endpoint.allow()));
        }
        if request.method == Method::OPTIONS {
            return Ok(options(endpoint.allow()));
        }
        guard::check_origin(&request.method, &request.headers)?;
        if endpoint.is_costly() {
            // A GET that costs work: heapray makes an output or reads a file.
            guard::same_origin_or_link(&request.headers)?;
        }
        let (profiler, query, headers) = (&self.profiler, request.uri.query(), &request.headers);
        match endpoint {
            Endpoint::Page if name.is_none() => Ok(docs::redirect("memray/", query)),
            Endpoint::Page => Ok(live::page()),
            Endpoint::Start => start::start(profiler, query).await,
            Endpoint::Stop => stop::stop(profiler).await,
            Endpoint::Status => status::status(profiler).await,
            Endpoint::Mark => mark::mark(profiler, query).await,
            Endpoint::Ticket => ticket::ticket(&self.tickets, query),
            Endpoint::Live => {
                // A GET that costs work: symbols are looked up while a client watches.
                guard::same_origin(headers)?;
                live::live(profiler, query, &self.slots).await
            }
            Endpoint::Metrics => metrics::metrics(profiler, query, headers).await,
            Endpoint::Timeline => timeline::timeline(profiler, query, headers).await,
            Endpoint::Reports => reports::list(profiler).await,
            Endpoint::Report(id) if request.method == Method::DELETE => {
                reports::delete(profiler, id).await
            }
            Endpoint::Report(id) => reports::one(profiler, id).await,
            Endpoint::Output(kind) => {
                let of = query::session(query)?;
                outputs::output(profiler, of, kind, query, headers).await
            }
            Endpoint::ReportOutput(id, kind) => {
                outputs::output(profiler, Of::Kept(id), kind, query, headers).await
            }
        }
    }

    /// Answers a path that services in Go have.
    async fn answer_go(&self, at: GoPath, request: &Parts) -> Result<Response, ApiError> {
        guard::check_host(&self.config, self.own_listener, request)?;
        guard::check_token(self.config.token.as_ref(), &request.headers)?;
        if !at.takes(&request.method) {
            return Err(ApiError::MethodNotAllowed(at.allow()));
        }
        // A GET that costs work.
        guard::same_origin_or_link(&request.headers)?;
        at.answer(&self.profiler, request).await
    }

    /// Checks the token before anything else, so that an unauthorized client learns nothing. A ticket replaces the token for
    /// reading the path that it was issued for.
    fn check_token(&self, tail: &str, request: &Parts) -> Result<(), ApiError> {
        let known = guard::check_token(self.config.token.as_ref(), &request.headers);
        if known.is_err() && matches!(request.method, Method::GET | Method::HEAD) {
            let ticket = ticket::in_query(request.uri.query());
            let now = std::time::SystemTime::now();
            if ticket.is_some_and(|ticket| self.tickets.admits(tail, &ticket, now)) {
                return Ok(());
            }
        }
        known
    }

    fn page(&self, path: &str, method: &Method) -> Response {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return ApiError::MethodNotAllowed("GET, HEAD").into_response();
        }
        let page = self.pages.get(path);
        page.unwrap_or_else(|| ApiError::NotFound(None).into_response())
    }
}

/// Returns the part of `path` after the base, or `None` if the path is not below the base.
pub(super) fn below_base(path: &str) -> Option<&str> {
    let tail = path.strip_prefix(BASE)?;
    (tail.is_empty() || tail.starts_with('/')).then_some(tail)
}

fn options(allow: &'static str) -> Response {
    let allow = [(header::ALLOW, HeaderValue::from_static(allow))];
    (StatusCode::NO_CONTENT, allow).into_response()
}

/// Removes the body of an answer to `HEAD`. All headers stay as for `GET`, the length too; nothing is read from disk.
fn without_body(response: &mut Response) {
    if let Some(len) = response.body().size_hint().exact() {
        let headers = response.headers_mut();
        headers.entry(header::CONTENT_LENGTH).or_insert(len.into());
    }
    *response.body_mut() = Body::empty();
}
