//! The profiler's routes beside an app's, as a tower service.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{Method, Request, Response, StatusCode};
use axum::response::IntoResponse;
use bytes::Bytes;
use pin_project_lite::pin_project;
use tower::{BoxError, Layer, Service};

use super::api::Api;
use super::docs;
use super::error::ApiError;
use super::untracked::UntrackedFuture;
use crate::capture::untracked;

/// Layer that puts the profiler's routes beside those of a tower service, and below the job prefix as well. Made by
/// [`Profiler::layer`](crate::Profiler::layer).
#[derive(Clone)]
pub struct HeaprayLayer {
    pub(super) api: Option<Api>,
}

impl<S> Layer<S> for HeaprayLayer {
    type Service = Mounted<S>;

    fn layer(&self, app: S) -> Mounted<S> {
        Mounted {
            app,
            api: self.api.clone(),
        }
    }
}

/// An app with the profiler's routes beside its own. This table says who answers:
///
/// ```text
/// profiler's endpoints   the profiler
/// its pages, home page   the app; where it has none (404, 405), the profiler
/// /debug/pprof/…         the same: heap, allocs, cmdline, symbol
/// anything else          the app
/// ```
///
/// The same holds below the prefix, where the app gets the path as it was sent. With
/// [`routes_below_prefix`](crate::Builder::routes_below_prefix) the app gets the path without the prefix.
#[derive(Clone)]
pub struct Mounted<S> {
    app: S,
    api: Option<Api>,
}

/// App of a program that has no routes: answers 404.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoApp;

impl<S> Mounted<S> {
    pub(super) fn new(app: S, api: Option<Api>) -> Mounted<S> {
        Mounted { app, api }
    }
}

impl<S: std::fmt::Debug> std::fmt::Debug for Mounted<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let enabled = self.api.is_some();
        let mut debug = f.debug_struct("Mounted");
        debug
            .field("app", &self.app)
            .field("enabled", &enabled)
            .finish()
    }
}

impl std::fmt::Debug for HeaprayLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let enabled = self.api.is_some();
        f.debug_struct("HeaprayLayer")
            .field("enabled", &enabled)
            .finish()
    }
}

impl<B> Service<Request<B>> for NoApp {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        std::future::ready(Ok(ApiError::NotFound(None).into_response()))
    }
}

impl<S, B, R> Service<Request<B>> for Mounted<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = MountFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.app.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> MountFuture<S::Future> {
        let Some(api) = &self.api else {
            return MountFuture::app(self.app.call(request), None);
        };
        let read = matches!(*request.method(), Method::GET | Method::HEAD);
        let whole = api.config().routes_below_prefix;
        match below_prefix(api, request.uri().path()) {
            None => {}
            Some("") if read => {
                let slash = UntrackedFuture::new(|| std::future::ready(with_slash(request.uri())));
                return match whole {
                    true => MountFuture::ours(slash),
                    false => MountFuture::app(self.app.call(request), Some(slash)),
                };
            }
            Some(rest) if whole || Api::is_endpoint(rest) => {
                *request.uri_mut() = without_prefix(request.uri(), rest);
            }
            // The app gets the path as it was sent, because the path without the prefix may be another route of the app.
            Some(rest) => {
                let fallback = api.is_fallback(request.method(), rest).then(|| {
                    let api = api.clone().with_own_document();
                    fallback(api, &request, without_prefix(request.uri(), rest))
                });
                return MountFuture::app(self.app.call(request), fallback);
            }
        }
        if Api::is_endpoint(request.uri().path()) {
            let (parts, _) = request.into_parts();
            return MountFuture::ours(UntrackedFuture::new(|| api.clone().answer(parts)));
        }
        let fallback = api
            .is_fallback(request.method(), request.uri().path())
            .then(|| fallback(api.clone(), &request, request.uri().clone()));
        MountFuture::app(self.app.call(request), fallback)
    }
}

/// Returns the part of `path` after the prefix, or `None` if the path is not below the prefix.
fn below_prefix<'p>(api: &Api, path: &'p str) -> Option<&'p str> {
    // The endpoints' own path may begin with the same words as a prefix.
    match Api::is_endpoint(path) {
        true => None,
        false => api.config().prefix.strip(path),
    }
}

/// Redirects to the prefix with a slash at its end. Without the slash, relative links of the page lead one level too high.
fn with_slash(uri: &Uri) -> Response<Body> {
    let last = uri.path().rsplit('/').next().unwrap_or_default();
    // `./`, because a segment with a colon would be read as a scheme (RFC 3986, section 4.2).
    docs::redirect(&format!("./{last}/"), uri.query())
}

/// Returns `uri` with the path `rest`, which is a part of its own path.
fn without_prefix(uri: &Uri, rest: &str) -> Uri {
    let _untracked = untracked::enter();
    let rest = if rest.is_empty() { "/" } else { rest };
    let path_and_query = match uri.query() {
        Some(query) => PathAndQuery::try_from(format!("{rest}?{query}")),
        None => PathAndQuery::try_from(rest),
    };
    let mut parts = uri.clone().into_parts();
    // A part of a valid path is valid. If not, the request goes on with its own path.
    parts.path_and_query = path_and_query.ok().or(parts.path_and_query);
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

/// Answers with what the profiler has at `uri`. The request's body does not matter.
fn fallback<B>(api: Api, request: &Request<B>, uri: Uri) -> UntrackedFuture {
    UntrackedFuture::new(|| {
        let mut head = Request::new(());
        head.method_mut().clone_from(request.method());
        // A page needs neither, and the app's own home page must not pay for the copies.
        if api.go_path(uri.path()).is_some() {
            head.headers_mut().clone_from(request.headers());
            head.extensions_mut().clone_from(request.extensions());
        }
        *head.uri_mut() = uri;
        api.answer(head.into_parts().0)
    })
}

pin_project! {
    /// Future of the answer of a [`Mounted`] app.
    pub struct MountFuture<F> {
        #[pin]
        app: Option<F>,
        // The profiler's answer. If there is an app too, this answer is used only when the app answers 404 or 405.
        ours: Option<UntrackedFuture>,
    }
}

impl<F> MountFuture<F> {
    fn app(app: F, ours: Option<UntrackedFuture>) -> MountFuture<F> {
        MountFuture {
            app: Some(app),
            ours,
        }
    }

    fn ours(ours: UntrackedFuture) -> MountFuture<F> {
        MountFuture {
            app: None,
            ours: Some(ours),
        }
    }
}

impl<F> std::fmt::Debug for MountFuture<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MountFuture").finish_non_exhaustive()
    }
}

impl<F, R, E> Future for MountFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Output = Result<Response<Body>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(app) = this.app.as_mut().as_pin_mut() {
            let response = ready!(app.poll(context))?;
            let absent = matches!(
                response.status(),
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
            );
            if !absent || this.ours.is_none() {
                // axum boxes a body of another type, and that box is ours. Its own bodies need no box.
                let _untracked = untracked::enter();
                return Poll::Ready(Ok(response.map(Body::new)));
            }
            this.app.set(None);
        }
        let ours = this
            .ours
            .as_mut()
            .expect("there is an app's answer or ours");
        Pin::new(ours).poll(context).map(Ok)
    }
}
