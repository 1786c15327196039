//! Layers that put each request into a context: that of its route, or another.

mod grpc;
mod known;
mod route;
mod trace;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};

use axum::http::{Request, Response};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use self::grpc::FirstCall;
pub use self::route::{ByRoute, by_route};
use self::trace::TraceSource;
use crate::capture::trace::TraceContext;
use crate::contexts::{Context, WithContext};

/// Layer that puts each request into a context, with the body of its response. See [`by_route`] and [`by_request`].
#[derive(Debug, Clone)]
pub struct ContextLayer<N> {
    name: N,
    trace: TraceSource,
}

/// Service behind a [`ContextLayer`].
#[derive(Debug)]
pub struct InRequestContext<S, N> {
    inner: S,
    /// Shared, because routers clone their services for each request.
    layer: Arc<ContextLayer<N>>,
}

impl<S: Clone, N> Clone for InRequestContext<S, N> {
    fn clone(&self) -> InRequestContext<S, N> {
        InRequestContext {
            inner: self.inner.clone(),
            layer: Arc::clone(&self.layer),
        }
    }
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
    ContextLayer {
        name,
        trace: TraceSource::default(),
    }
}

impl<N> ContextLayer<N> {
    /// Lets `trace` say which trace a request belongs to. It is called on the request's thread, before the service behind the
    /// layer is. Where it returns `None`, and without it, the trace is that of OpenTelemetry's thread context, if a library shares one
    /// ([OTEP 4947](https://github.com/open-telemetry/opentelemetry-specification/blob/main/oteps/profiles/4947-thread-ctx.md)):
    /// as the request's last sample found it, or else as it was when the request passed the layer. Without both it is that of
    /// the request's header `traceparent`.
    ///
    /// Traces are exemplars of the metric `heapray_route_request_bytes`: a dashboard leads from a request that allocated much to
    /// its trace.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    ///
    /// # fn current_ids() -> ([u8; 16], [u8; 8]) { ([1; 16], [2; 8]) }
    /// let by_route = heapray::by_route().trace(|| {
    ///     // With OpenTelemetry: Context::current().span().span_context(), and to_bytes of its two numbers.
    ///     let (trace_id, span_id) = current_ids();
    ///     heapray::TraceContext::from_bytes(trace_id, span_id)
    /// });
    /// let app: Router = Router::new()
    ///     .route("/", get(|| async { "hello" }))
    ///     .route_layer(by_route);
    /// ```
    #[must_use]
    pub fn trace(
        mut self,
        trace: impl Fn() -> Option<TraceContext> + Send + Sync + 'static,
    ) -> ContextLayer<N> {
        self.trace = TraceSource::new(trace);
        self
    }
}

impl<S, N: Clone> Layer<S> for ContextLayer<N> {
    type Service = InRequestContext<S, N>;

    fn layer(&self, inner: S) -> InRequestContext<S, N> {
        InRequestContext {
            inner,
            layer: Arc::new(self.clone()),
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
        let ContextLayer { name, trace } = &*self.layer;
        let (context, first_call) = name.call(&request);
        let mut run = context.begin_request();
        run.ask_trace(|| trace.ask(), || trace::parent(request.headers()));
        let guard = run.enter(context.number());
        let response = self.inner.call(request);
        drop(guard);
        InContextFuture {
            first_call,
            inner: WithContext::in_run(response, context, run),
        }
    }
}

pin_project! {
    /// Future of a request in a context.
    #[derive(Debug)]
    pub struct InContextFuture<F> {
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
        let (in_context, run) = this.inner.take_run();
        if let (Some(first_call), Ok(response)) = (this.first_call.take(), &response) {
            first_call.answered(response.headers());
        }
        let in_run = |body: R| WithContext::in_run(body, in_context, run);
        Poll::Ready(response.map(|response| response.map(in_run)))
    }
}
