//! Layers that put each request into a context: that of its route, or another.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{self, Poll, ready};

use axum::extract::MatchedPath;
use axum::http::{Method, Request, Response};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use crate::capture::thread::Busy;
use crate::contexts::{Context, ROUTE, WithContext, context};

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
}

impl<B, F: Fn(&Request<B>) -> Context> NameRequest<B> for F {
    fn context(&self, request: &Request<B>) -> Context {
        self(request)
    }
}

/// Names requests by their route: the method, and the path as the service's router has it.
#[derive(Debug, Clone, Default)]
pub struct ByRoute {
    /// The context of each path and method, for requests that are in no other context.
    known: Arc<RwLock<HashMap<Box<str>, ByMethod>>>,
}

/// The context of each method, and that of all other methods.
type ByMethod = [Option<Context>; METHODS.len() + 1];

const METHODS: [Method; 9] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::HEAD,
    Method::OPTIONS,
    Method::PATCH,
    Method::CONNECT,
    Method::TRACE,
];

/// Returns a layer for axum that puts each request into the context of its route, with the key `route` and values such as
/// `GET /users/{id}`. What handlers and response bodies allocate is then shown by route.
///
/// Add it with `route_layer`, where the route is known. A request that no route matches has `GET (no route)`. The path of the
/// request itself is never used: there is no limit to how many a client can make up. Nor is a method that HTTP does not
/// define.
///
/// ```
/// use axum::{Router, routing::get};
///
/// let app: Router = Router::new()
///     .route("/users/{id}", get(|| async { "hello" }))
///     .route_layer(heapray::by_route());
/// let app = heapray::mount(app);
/// ```
#[must_use]
pub fn by_route() -> ContextLayer<ByRoute> {
    by_request(ByRoute::default())
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

impl ByRoute {
    fn of(&self, path: Option<&str>, method: &Method) -> Context {
        let _busy = Busy::enter();
        let path = path.unwrap_or("(no route)");
        let nth = METHODS.iter().position(|known| known == method);
        let at = nth.unwrap_or(METHODS.len());
        let known = || {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            known.get(path).and_then(|contexts| contexts[at])
        };
        let is_outermost = Context::current() == Context::NONE;
        if is_outermost && let Some(known) = known() {
            return known;
        }
        let method = nth.map_or("OTHER", |at| METHODS[at].as_str());
        let named = context([(ROUTE, format!("{method} {path}"))]);
        if is_outermost {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            known.entry(path.into()).or_default()[at] = Some(named);
        }
        named
    }
}

impl<B> NameRequest<B> for ByRoute {
    fn context(&self, request: &Request<B>) -> Context {
        let path = request.extensions().get::<MatchedPath>();
        self.of(path.map(MatchedPath::as_str), request.method())
    }
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
        let context = self.name.context(&request);
        let mut run = context.begin_request();
        let guard = run.enter(context.number());
        let response = self.inner.call(request);
        drop(guard);
        InContextFuture {
            context,
            inner: WithContext::in_run(response, context, run),
        }
    }
}

pin_project! {
    /// Future of a request in a context.
    #[derive(Debug)]
    pub struct InContextFuture<F> {
        context: Context,
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
        let in_run = |body: R| WithContext::in_run(body, *this.context, run);
        Poll::Ready(response.map(|response| response.map(in_run)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_a_method_and_a_path_of_the_router() {
        let route = ByRoute::default();
        let value = |path, method: &str| {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let first = route.of(path, &method);
            assert_eq!(route.of(path, &method), first);
            let [(key, value)] = &first.labels()[..] else {
                panic!("one label");
            };
            assert_eq!(key, ROUTE);
            value.clone()
        };
        assert_eq!(value(Some("/users/{id}"), "GET"), "GET /users/{id}");
        assert_eq!(value(Some("/users/{id}"), "DELETE"), "DELETE /users/{id}");
        assert_eq!(value(None, "GET"), "GET (no route)");
        assert_eq!(value(Some("/"), "BREW"), "OTHER /");
    }

    #[test]
    fn a_request_in_a_context_keeps_its_labels() {
        let route = ByRoute::default();
        let alone = route.of(Some("/"), &Method::GET);
        let tenant = context([("tenant", "acme")]);
        let both = tenant.run(|| route.of(Some("/"), &Method::GET));
        assert_eq!(both.labels().len(), 2);
        assert_eq!(route.of(Some("/"), &Method::GET), alone);
    }
}
