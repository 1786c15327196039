//! Layers that put each request into a context: that of its route, or another.

mod grpc;
mod known;
mod route;

use std::pin::Pin;
use std::task::{self, Poll, ready};

use axum::http::{Request, Response};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use self::grpc::FirstCall;
pub use self::route::{ByRoute, by_route};
use crate::contexts::{Context, WithContext};

/// Layer that puts each request into a context, with the body of its response. See [`by_route`] and [`by_request`].
#[derive(Debug, Clone)]
pub struct ContextLayer<N> {
    name: N,
}

/// Service behind a [`ContextLayer`].
#[derive(Debug, Clone)]
pub struct InRequestContext<S, N> {
    inner: S,
    name: N,
}

/// Names the context of a request.
pub trait NameRequest<B> {
    /// Returns the context of `request`.
    fn context(&self, request: &Request<B>) -> Context;

    /// Returns the context of `request`, and what waits for the answer to it, to learn whether that is one of the service's
    /// names.
    #[doc(hidden)]
    fn call(&self, request: &Request<B>) -> (Context, Option<FirstCall>) {
        (self.context(request), None)
    }
}

impl<B, F: Fn(&Request<B>) -> Context> NameRequest<B> for F {
    fn context(&self, request: &Request<B>) -> Context {
        self(request)
    }
}

/// Returns a layer for any tower service over HTTP that puts each request into the context that `name` returns. Mind that the
/// number of [contexts](crate::context()) is limited: do not name them by what clients choose freely.
///
/// ```
/// use axum::{Router, extract::Request, routing::get};
///
/// let by_plan = heapray::by_request(|request: &Request| {
///     let is_paid = request.headers().contains_key("x-paid");
///     heapray::context([("plan", if is_paid { "paid" } else { "free" })])
/// });
/// let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(by_plan);
/// ```
#[must_use]
pub fn by_request<N>(name: N) -> ContextLayer<N> {
    ContextLayer { name }
}

impl<S, N: Clone> Layer<S> for ContextLayer<N> {
    type Service = InRequestContext<S, N>;

    fn layer(&self, inner: S) -> InRequestContext<S, N> {
        InRequestContext {
            inner,
            name: self.name.clone(),
        }
    }
}

impl<S, N, B, R> Service<Request<B>> for InRequestContext<S, N>
where
    S: Service<Request<B>, Response = Response<R>>,
    N: NameRequest<B>,
{
    type Response = Response<WithContext<R>>;
    type Error = S::Error;
    type Future = InContextFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> InContextFuture<S::Future> {
        let (context, first_call) = self.name.call(&request);
        let mut run = context.begin_request();
        let guard = run.enter(context.number());
        let response = self.inner.call(request);
        drop(guard);
        InContextFuture {
            context,
            first_call,
            inner: WithContext::in_run(response, context, run),
        }
    }
}

pin_project! {
    /// Future of a request in a context.
    #[derive(Debug)]
    pub struct InContextFuture<F> {
        context: Context,
        first_call: Option<FirstCall>,
        #[pin]
        inner: WithContext<F>,
    }
}

impl<F, R, E> Future for InContextFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<WithContext<R>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let response = ready!(this.inner.as_mut().poll_in_run(context));
        // The request ends with the body of its response.
        let run = this.inner.take_run();
        if let (Some(first_call), Ok(response)) = (this.first_call.take(), &response) {
            first_call.answered(response.headers());
        }
        let in_run = |body: R| WithContext::in_run(body, *this.context, run);
        Poll::Ready(response.map(|response| response.map(in_run)))
    }
}
