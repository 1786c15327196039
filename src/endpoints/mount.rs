//! The ways to serve the routes: axum, tower, or a service.

use std::sync::Arc;

use axum::Router;
use axum::routing::any_service;
#[cfg(feature = "openapi")]
use serde::Serialize;
#[cfg(feature = "openapi")]
use utoipa::openapi::OpenApi;

use super::api::Api;
use super::by_request::by_route;
use super::debug_pprof;
use super::docs::Pages;
use super::mounted::{HeaprayLayer, Mounted, NoApp};
#[cfg(feature = "openapi")]
use super::openapi::{self, Document};
use super::route;
use super::unrouted::Routes;
#[cfg(feature = "openapi")]
use crate::announce;
use crate::capture::untracked;
use crate::config::Config;
use crate::profiler::Profiler;

impl Profiler {
    /// Returns `app` with the profiler's endpoints, `/openapi.json` and Swagger UI at `/docs` beside its own routes, and all
    /// these a second time below the job prefix (`/pub/job/{name}/{version}`; any name and version match). Where both have a
    /// route, the app's comes first, except for the endpoints themselves. Below the prefix the app serves only the routes
    /// that it defined there itself, or all of its routes with [`routes_below_prefix`](crate::Builder::routes_below_prefix).
    ///
    /// Returns `app` unchanged where the profiler is disabled. A layer on the result (`layer`, not `route_layer`) guards
    /// everything, service and profiler; a layer that was put on `app` before does not guard the profiler. Give an app its
    /// routes and its fallback before this call.
    ///
    /// Requests to the app's own routes do not go through the profiler: the profiler takes the place of the app's fallback,
    /// and calls that fallback in turn. Only if the app has a route of its own at one of the profiler's paths (`/{*path}`,
    /// say) does the profiler stand before the whole app. Then each request is routed twice, which costs about a
    /// microsecond. An app whose own routes name another job below the prefix answers for that job alone.
    ///
    /// With [`Builder::by_route`](crate::Builder::by_route), requests to the app's routes are recorded by route.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    ///
    /// let app = Router::new().route("/hello", get(|| async { "hello" }));
    /// let app: Router = heapray::mount(app);
    /// ```
    pub fn mount(&self, app: Router) -> Router {
        let _untracked = untracked::enter();
        match self.own_api() {
            Some(api) => beside(app, api),
            None => app,
        }
    }

    /// Does what [`mount`](Profiler::mount) does, with the app's own OpenAPI document: `/openapi.json` and Swagger UI show
    /// the routes of both.
    ///
    /// The document is whatever becomes OpenAPI 3.1 as JSON: that of any version of utoipa, of aide, or a
    /// `serde_json::Value`. With another one, the profiler's routes are shown alone, and the log says why.
    ///
    /// ```
    /// # use axum::{Router, routing::get};
    /// # let app = Router::new().route("/hello", get(|| async { "hello" }));
    /// let document = utoipa::openapi::OpenApi::default();
    /// let app: Router = heapray::profiler().mount_documented(app, document);
    /// ```
    #[cfg(feature = "openapi")]
    pub fn mount_documented(&self, app: Router, document: impl Serialize) -> Router {
        let _untracked = untracked::enter();
        let Some(config) = self.config() else {
            return app;
        };
        let pages = Pages::new(merged(config, document), openapi::own(config));
        beside(app, self.api(config, pages))
    }

    /// Returns the profiler's routes alone, at the root: the endpoints, `/openapi.json`, and `/docs`. Merge the router into
    /// an app, or put it below a path with axum's `nest_service` (not `nest`, which does not match `/p/`). The router has no
    /// routes where the profiler is disabled.
    pub fn router(&self) -> Router {
        let _untracked = untracked::enter();
        let Some(api) = self.own_api() else {
            return Router::new();
        };
        let ours = Mounted::new(NoApp, Some(api));
        let mut router = Router::new()
            .route("/api/v1/profiler/memray", any_service(ours.clone()))
            .route("/api/v1/profiler/memray/", any_service(ours.clone()))
            .route(
                "/api/v1/profiler/memray/{*endpoint}",
                any_service(ours.clone()),
            );
        if cfg!(feature = "openapi") {
            router = router.route("/openapi.json", any_service(ours.clone()));
        }
        if cfg!(feature = "swagger-ui") {
            for path in ["/docs", "/docs/", "/docs/{*file}"] {
                router = router.route(path, any_service(ours.clone()));
            }
        }
        router
    }

    /// Returns the profiler's routes as a [`tower::Service`] that takes requests with any body. This is for a plain hyper
    /// server without routes of its own; [`layer`](Profiler::layer) is for one that has some. The routes are at the root and
    /// below the prefix; anything else is answered with 404.
    #[must_use]
    pub fn service(&self) -> Mounted<NoApp> {
        Mounted::new(NoApp, self.own_api())
    }

    /// Returns the same service for the profiler's own listener.
    pub(super) fn service_at_own_listener(&self) -> Mounted<NoApp> {
        let api = self.own_api();
        Mounted::new(NoApp, api.map(Api::at_own_listener))
    }

    /// Returns a layer that does what [`mount`](Profiler::mount) does, for any tower service over HTTP. Where the profiler
    /// is disabled, the layer passes every request through unchanged.
    #[must_use]
    pub fn layer(&self) -> HeaprayLayer {
        HeaprayLayer {
            api: self.own_api(),
        }
    }

    /// Returns the OpenAPI document of the profiler's routes, to merge into an app's own. The document is empty where the
    /// profiler is disabled.
    #[cfg(feature = "openapi")]
    #[must_use]
    pub fn openapi(&self) -> OpenApi {
        let _untracked = untracked::enter();
        let config = self.config();
        config.map_or_else(OpenApi::default, |config| openapi::routes(config))
    }

    /// Returns the routes with a document of their own alone, or `None` where the profiler is disabled.
    fn own_api(&self) -> Option<Api> {
        let _untracked = untracked::enter();
        let config = self.config()?;
        #[cfg(feature = "openapi")]
        let pages = Pages::new(None, openapi::own(config));
        #[cfg(not(feature = "openapi"))]
        let pages = Pages::default();
        Some(self.api(config, pages))
    }

    fn api(&self, config: &Arc<Config>, pages: Pages) -> Api {
        Api::new(self.clone(), Arc::clone(config), pages)
    }
}

/// Returns the app's document merged with ours, or `None` if there is none or it is not understood.
#[cfg(feature = "openapi")]
fn merged(config: &Config, document: impl Serialize) -> Option<Document> {
    let app = serde_json::to_value(document).map_err(|error| error.to_string());
    let merged = match app {
        // Of an app that has none.
        Ok(serde_json::Value::Null) => return None,
        app => app.and_then(|app| openapi::merged(config, app)),
    };
    let warn = |reason: &String| {
        announce::warn(format_args!(
            "the app's own document is left out of /openapi.json and Swagger UI, because it is not OpenAPI 3.1: {reason}"
        ));
    };
    merged.inspect_err(warn).ok()
}

/// Returns `app` with the profiler in the place of its fallback, or, if the app has routes at the profiler's paths, with the
/// profiler before the whole app.
fn beside(app: Router, api: Api) -> Router {
    // Without routes, `route_layer` panics.
    let app = match api.config().by_route && app.has_routes() {
        true => app.route_layer(by_route()),
        false => app,
    };
    let routes = Routes::of(app.clone());
    // An app that answers `GET /` keeps its home page. An app that only takes other methods there has none.
    let free = !routes.refuses_get("/")
        && paths(api.config()).all(|path| routes.leaves_to_fallback(&path));
    let rest = if free { app.clone() } else { Router::new() };
    rest.fallback_service(Mounted::new(app, Some(api)))
}

/// Paths that are probed below a prefix.
const PROBED: [&str; 5] = [
    "",
    "/",
    "/docs/",
    "/openapi.json",
    "/api/v1/profiler/memray/status",
];
const PROBED_BESIDES: [&str; 2] = ["/x", "/x/x"];

/// Returns a path of each kind that the profiler answers, without the home page.
fn paths(config: &Config) -> impl Iterator<Item = String> {
    let others = [
        "/api/v1/profiler/memray",
        "/api/v1/profiler/memray/",
        "/api/v1/profiler/memray/x",
    ];
    let docs = ["/docs", "/docs/", "/docs/x"].map(String::from);
    let go = || debug_pprof::paths().filter(|_| config.debug_pprof);
    // The prefix of any job, and the prefix of this job, which the app's own routes may name.
    let prefixes = [
        config.prefix.example(),
        config.prefix.filled(&config.job_name, &config.job_version),
    ];
    let prefixed = prefixes
        .into_iter()
        .filter(|prefix| !prefix.is_empty())
        .flat_map(move |prefix| {
            let besides = PROBED_BESIDES.iter().filter(|_| config.routes_below_prefix);
            let tails = PROBED.iter().chain(besides).copied().chain(go());
            tails.map(move |tail| format!("{prefix}{tail}"))
        });
    let document = cfg!(feature = "openapi").then(|| "/openapi.json".to_owned());
    route::examples()
        .chain(go().map(String::from))
        .chain(others.map(String::from))
        .chain(document)
        .chain(docs.into_iter().filter(|_| cfg!(feature = "swagger-ui")))
        .chain(prefixed)
}
