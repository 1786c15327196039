//! Ways to have the routes answered.

use axum::Router;
use axum::routing::any_service;
use utoipa::openapi::OpenApi;

use super::docs::Pages;
use super::door::Door;
use super::mounted::{HeaprayLayer, Mounted, NoApp};
use super::openapi;
use super::unrouted::Routes;
use crate::capture::untracked;
use crate::config::Config;
use crate::profiler::Profiler;

impl Profiler {
    /// `app` with the profiler's endpoints, `/openapi.json` and Swagger UI at `/docs` beside its own routes, and these a
    /// second time below the job prefix (`/pub/job/{name}/{version}`; any name and version match). The app's routes come
    /// first where both have one, save for the endpoints themselves. Below the prefix the app has only what it put there
    /// itself, or all with [`routes_below_prefix`](crate::Builder::routes_below_prefix).
    ///
    /// Where the profiler is disabled this returns `app` as it is. What is layered on the result (with `layer`, not
    /// `route_layer`) guards everything, service and profiler; what was layered on `app` before does not guard the
    /// profiler. Give an app its routes and fallback before.
    ///
    /// Requests to the app's own routes do not pass by the profiler, which stands where the app's fallback stood and
    /// asks that in its turn. Only an app with a route of its own at one of the profiler's paths (`/{*path}`, say) is
    /// put behind the profiler as a whole, which costs each request a second look for its route, about a microsecond. An app
    /// whose routes name a job below the prefix that is not this one answers for that job alone.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    ///
    /// let app = Router::new().route("/hello", get(|| async { "hello" }));
    /// let app: Router = heapray::mount(app);
    /// ```
    pub fn mount(&self, app: Router) -> Router {
        self.mount_documented(app, None)
    }

    /// As [`mount`](Profiler::mount), with the app's own OpenAPI document: `/openapi.json` and Swagger UI show the
    /// routes of both.
    ///
    /// ```
    /// # use axum::{Router, routing::get};
    /// # let app = Router::new().route("/hello", get(|| async { "hello" }));
    /// let document = utoipa::openapi::OpenApi::default();
    /// let app: Router = heapray::profiler().mount_documented(app, document);
    /// ```
    pub fn mount_documented(&self, app: Router, document: impl Into<Option<OpenApi>>) -> Router {
        let _untracked = untracked::enter();
        match self.door(document.into()) {
            Some(door) => beside(app, door),
            None => app,
        }
    }

    /// The profiler's routes alone, at the root: the endpoints, `/openapi.json`, and `/docs`. To be merged into an app, or put below
    /// a path of its own with axum's `nest_service` (not `nest`, which has no `/p/`). Without a route where the profiler is
    /// disabled.
    pub fn router(&self) -> Router {
        let _untracked = untracked::enter();
        let Some(door) = self.door(None) else {
            return Router::new();
        };
        let ours = Mounted::new(NoApp, Some(door));
        let mut router = Router::new()
            .route("/api/v1/profiler/memray", any_service(ours.clone()))
            .route("/api/v1/profiler/memray/", any_service(ours.clone()))
            .route(
                "/api/v1/profiler/memray/{*endpoint}",
                any_service(ours.clone()),
            )
            .route("/openapi.json", any_service(ours.clone()));
        if cfg!(feature = "swagger-ui") {
            for path in ["/docs", "/docs/", "/docs/{*file}"] {
                router = router.route(path, any_service(ours.clone()));
            }
        }
        router
    }

    /// The profiler's routes as a [`tower::Service`] that takes requests with any body: for a plain hyper server, whose
    /// own routes [`layer`](Profiler::layer) serves too. At the root and below the prefix; 404 for all else.
    #[must_use]
    pub fn service(&self) -> Mounted<NoApp> {
        Mounted::new(NoApp, self.door(None))
    }

    /// The same for a listener of the profiler's own.
    pub(super) fn service_at_own_listener(&self) -> Mounted<NoApp> {
        Mounted::new(NoApp, self.door(None).map(Door::at_own_listener))
    }

    /// What [`mount`](Profiler::mount) does, for any tower service over HTTP. Where the profiler is disabled
    /// every request goes through as it is.
    #[must_use]
    pub fn layer(&self) -> HeaprayLayer {
        HeaprayLayer {
            door: self.door(None),
        }
    }

    /// The OpenAPI document of the profiler's routes, to be merged into an app's own. Empty where the
    /// profiler is disabled.
    #[must_use]
    pub fn openapi(&self) -> OpenApi {
        let _untracked = untracked::enter();
        let config = self.config();
        config.map_or_else(OpenApi::default, openapi::routes)
    }

    fn door(&self, document: Option<OpenApi>) -> Option<Door> {
        let _untracked = untracked::enter();
        let config = self.config()?;
        let own = openapi::whole(config, None);
        let pages = match document {
            Some(app) => Pages::new(&openapi::whole(config, Some(app)), &own),
            None => Pages::new(&own, &own),
        };
        Some(Door::new(self.clone(), config.clone(), pages))
    }
}

/// `app` with the profiler where its fallback was, or, if the app's routes are in the way, before it as a whole.
fn beside(app: Router, door: Door) -> Router {
    let routes = Routes::of(app.clone());
    // An app that has a home page answers for it; one that takes something else there has none.
    let free = !routes.refuse_get("/") && paths(door.config()).all(|path| routes.leave(&path));
    let rest = if free { app.clone() } else { Router::new() };
    rest.fallback_service(Mounted::new(app, Some(door)))
}

/// What is looked for below a prefix, and, if the app's routes are to be there, besides.
const PROBED: [&str; 5] = [
    "",
    "/",
    "/docs/",
    "/openapi.json",
    "/api/v1/profiler/memray/status",
];
const PROBED_BESIDES: [&str; 2] = ["/x", "/x/x"];

/// A path of each kind that the profiler answers. The home page is not among them.
fn paths(config: &Config) -> impl Iterator<Item = String> {
    let endpoints = openapi::routes(config).paths.paths.into_keys();
    let others = [
        "/openapi.json",
        "/api/v1/profiler/memray",
        "/api/v1/profiler/memray/",
        "/api/v1/profiler/memray/x",
    ];
    let docs = ["/docs", "/docs/", "/docs/x"].map(String::from);
    // Any job's, and this one's, which an app's own routes may name.
    let prefixes = [
        config.prefix.example(),
        config.prefix.filled(&config.job_name, &config.job_version),
    ];
    let prefixed = prefixes
        .into_iter()
        .filter(|prefix| !prefix.is_empty())
        .flat_map(|prefix| {
            let besides = PROBED_BESIDES.iter().filter(|_| config.routes_below_prefix);
            let tails = PROBED.iter().chain(besides);
            tails.map(move |tail| format!("{prefix}{tail}"))
        });
    endpoints
        .map(|path| path.replace("{id}", "1"))
        .chain(others.map(String::from))
        .chain(docs.into_iter().filter(|_| cfg!(feature = "swagger-ui")))
        .chain(prefixed)
}
