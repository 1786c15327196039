//! Finds out which paths an app's routes leaves_to_fallback to its fallback. Where the app leaves all of the profiler's paths, the
//! profiler takes the fallback's place, and requests to the app's own routes never go through the profiler.

use std::convert::Infallible;
use std::task::{Context, Poll, Waker};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, header};
use tower::{Layer, Service};

/// An app's routes and the fallbacks of its nested routers, without their handlers: no code of the app runs.
pub(super) struct Routes(Router);

impl Routes {
    pub(super) fn of(app: Router) -> Routes {
        Routes(app.layer(Probe::Routed).fallback_service(Probe::Unrouted))
    }

    /// Returns whether a request to `path` would reach the app's own fallback.
    pub(super) fn leaves_to_fallback(&self, path: &str) -> bool {
        let answer = self.probe(path);
        answer.is_some_and(|answer| answer.extensions().get() == Some(&Probe::Unrouted))
    }

    /// Returns whether the app has a route at `path` that does not take `GET`.
    pub(super) fn refuses_get(&self, path: &str) -> bool {
        // axum lists the methods of a route in the answer to a method that it refuses.
        let answer = self.probe(path);
        answer.is_some_and(|answer| answer.headers().contains_key(header::ALLOW))
    }

    fn probe(&self, path: &str) -> Option<Response<Body>> {
        let request = Request::get(path).body(Body::empty()).ok()?;
        let mut answer = Box::pin(self.0.clone().call(request));
        match answer
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(Ok(answer)) => Some(answer),
            Poll::Pending => None,
        }
    }
}

/// Layer that replaces every service by itself, and that service, which answers with its own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    Routed,
    Unrouted,
}

impl<S> Layer<S> for Probe {
    type Service = Probe;

    fn layer(&self, _: S) -> Probe {
        *self
    }
}

impl Service<Request<Body>> for Probe {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let mut answer = Response::new(Body::empty());
        answer.extensions_mut().insert(*self);
        std::future::ready(Ok(answer))
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::{any, get, post};

    use super::Routes;

    #[test]
    fn each_path_is_checked_and_no_handler_of_the_app_runs() {
        async fn never() {
            unreachable!("looking for a route runs nothing");
        }
        let nested = Router::new().route("/in", get(never)).fallback(never);
        let plain = Router::new().route("/in", get(never));
        let app = Router::new()
            .route("/get", get(never))
            .route("/post", post(never))
            .route("/any", any(never))
            .route("/{word}/under", get(never))
            .route("/all/{*rest}", get(never))
            .nest("/nested", nested)
            .nest("/plain", plain)
            .fallback(never);
        let routes = Routes::of(app);
        let left = ["/plain/other", "/get/", "/all/", "/", "/x"];
        assert!(left.iter().all(|path| routes.leaves_to_fallback(path)));
        for routed in [
            "/get",
            "/post",
            "/any",
            "/x/under",
            "/all/x/y",
            "/nested/in",
            "/nested/other",
            "/plain/in",
            "no path",
        ] {
            assert!(!routes.leaves_to_fallback(routed), "{routed}");
        }
    }

    #[test]
    fn a_route_that_does_not_take_get_says_so() {
        let app = Router::new()
            .route("/post", post(async || {}))
            .route("/get", get(async || {}))
            .route("/any", any(async || {}));
        let routes = Routes::of(app);
        assert!(routes.refuses_get("/post"));
        assert!(
            ["/get", "/any", "/none"]
                .iter()
                .all(|path| !routes.refuses_get(path))
        );
    }

    #[test]
    fn an_app_without_routes_leaves_everything() {
        assert!(Routes::of(Router::new()).leaves_to_fallback("/"));
    }
}
