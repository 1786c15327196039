//! Names requests by their route.

use std::sync::Arc;

use axum::extract::MatchedPath;
use axum::http::{Method, Request};

use super::grpc::{self, FirstCall, GrpcMethods};
use super::known::KnownRoutes;
use super::{ContextLayer, NameRequest, by_request};
use crate::capture::thread::Busy;
use crate::contexts::{Context, ROUTE, context};

/// Names requests by their route: the method, and the path as the service's router has it, or the method of gRPC.
#[derive(Debug, Clone, Default)]
pub struct ByRoute {
    /// Of requests that are in no other context.
    known: Arc<KnownRoutes<{ METHODS.len() + 1 }>>,
    grpc: Arc<GrpcMethods>,
}

/// Methods that are told apart.
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
/// A gRPC request has the method that it calls, such as `shop.Basket/AddItem`: in a router that tonic made, and around
/// tonic's server (`Server::builder().layer(heapray::by_route())`). The service's answer to the first call tells whether there
/// is such a method.
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

impl ByRoute {
    fn of(&self, path: Option<&str>, method: &Method) -> Context {
        let path = path.unwrap_or("(no route)");
        let nth = METHODS.iter().position(|known| known == method);
        let at = nth.unwrap_or(METHODS.len());
        let is_outermost = Context::current() == Context::NONE;
        if is_outermost && let Some(known) = self.known.get(path, at) {
            return known;
        }
        let _busy = Busy::enter();
        let method = nth.map_or("OTHER", |at| METHODS[at].as_str());
        let named = context([(ROUTE, format!("{method} {path}"))]);
        if is_outermost && named.keep() {
            self.known.learn(path, at, named);
        }
        named
    }
}

impl<B> NameRequest<B> for ByRoute {
    fn context(&self, request: &Request<B>) -> Context {
        let (context, _) = self.call(request);
        context
    }

    fn call(&self, request: &Request<B>) -> (Context, Option<FirstCall>) {
        let path = request.extensions().get::<MatchedPath>();
        let path = path.map(MatchedPath::as_str);
        match grpc::path(request, path) {
            Some(method) => self.grpc.call(method),
            None => (self.of(path, request.method()), None),
        }
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
