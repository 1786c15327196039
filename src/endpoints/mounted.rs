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

use super::docs::{self, Pages};
use super::door::Door;
use super::error::ApiError;
use super::quietly::Quietly;
use crate::quiet;

/// Puts the profiler's routes beside those of a tower service, and everything below the job prefix as well.
/// From [`Profiler::layer`](crate::Profiler::layer).
#[derive(Clone)]
pub struct HeaprayLayer {
    pub(super) door: Option<Door>,
}

impl<S> Layer<S> for HeaprayLayer {
    type Service = Mounted<S>;

    fn layer(&self, app: S) -> Mounted<S> {
        Mounted {
            app,
            door: self.door.clone(),
        }
    }
}

/// An app with the profiler's routes beside its own:
///
/// ```text
/// below the prefix       the prefix is taken off, then as if it had not been there
/// profiler's endpoints   the profiler
/// its pages, home page   the app; where it has none (404, 405), the profiler
/// anything else          the app
/// ```
#[derive(Clone)]
pub struct Mounted<S> {
    app: S,
    door: Option<Door>,
}

/// The app of a program that has none: 404.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoApp;

impl<S> Mounted<S> {
    pub(super) fn new(app: S, door: Option<Door>) -> Mounted<S> {
        Mounted { app, door }
    }
}

impl<S: std::fmt::Debug> std::fmt::Debug for Mounted<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let enabled = self.door.is_some();
        let mut debug = f.debug_struct("Mounted");
        debug
            .field("app", &self.app)
            .field("enabled", &enabled)
            .finish()
    }
}

impl std::fmt::Debug for HeaprayLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let enabled = self.door.is_some();
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
        std::future::ready(Ok(ApiError::NotFound.into_response()))
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
        let Some(door) = &self.door else {
            return MountFuture::app(self.app.call(request), None);
        };
        if let Some(home) = take_prefix_off(door, &mut request) {
            return MountFuture::ours(Quietly::new(|| std::future::ready(home)));
        }
        let path = request.uri().path();
        if Door::is_endpoint(path) {
            let (parts, _) = request.into_parts();
            return MountFuture::ours(Quietly::new(|| door.clone().answer(parts)));
        }
        let read = matches!(*request.method(), Method::GET | Method::HEAD);
        let page = (read && Pages::is_page(path)).then(|| {
            Quietly::new(|| {
                let (parts, ()) = head(&request).into_parts();
                door.clone().answer(parts)
            })
        });
        MountFuture::app(self.app.call(request), page)
    }
}

/// Takes the prefix off a request's path. A page at the prefix itself must end in a slash, or its relative links would
/// lead one level too high: the answer is a redirect there then.
fn take_prefix_off<B>(door: &Door, request: &mut Request<B>) -> Option<Response<Body>> {
    let uri = request.uri();
    // A prefix may be one that the endpoints' own path begins with.
    if Door::is_endpoint(uri.path()) {
        return None;
    }
    let rest = door.config().prefix.strip(uri.path())?;
    let _quiet = quiet::enter();
    if rest.is_empty() && matches!(*request.method(), Method::GET | Method::HEAD) {
        let last = uri.path().rsplit('/').next().unwrap_or_default();
        // `./`, or a segment with a colon in it would be taken for a scheme (RFC 3986, section 4.2).
        return Some(docs::redirect(&format!("./{last}/"), uri.query()));
    }
    let rest = if rest.is_empty() { "/" } else { rest };
    let path_and_query = match uri.query() {
        Some(query) => PathAndQuery::try_from(format!("{rest}?{query}")),
        None => PathAndQuery::try_from(rest),
    };
    let mut parts = uri.clone().into_parts();
    // Part of a valid path is one; were it not, the request would go on as it came.
    parts.path_and_query = Some(path_and_query.ok()?);
    *request.uri_mut() = Uri::from_parts(parts).ok()?;
    None
}

/// A request without its body and extensions: all that a page needs.
fn head<B>(request: &Request<B>) -> Request<()> {
    let mut head = Request::new(());
    head.method_mut().clone_from(request.method());
    head.uri_mut().clone_from(request.uri());
    head
}

pin_project! {
    /// The answer of a [`Mounted`] app.
    pub struct MountFuture<F> {
        #[pin]
        app: Option<F>,
        // The profiler's answer; beside the app's, it counts where the app has none.
        ours: Option<Quietly>,
    }
}

impl<F> MountFuture<F> {
    fn app(app: F, ours: Option<Quietly>) -> MountFuture<F> {
        MountFuture {
            app: Some(app),
            ours,
        }
    }

    fn ours(ours: Quietly) -> MountFuture<F> {
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
                // The box of a foreign body is ours; axum's own bodies need none.
                let _quiet = quiet::enter();
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
