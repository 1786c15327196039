//! The OpenAPI description: of our own routes, and joined with the app's.

use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Info, PathItem, Server};
use utoipa::{IntoParams, IntoResponses, OpenApi, ToSchema};

use super::error::ErrorBody;
use super::{flamegraph, report, start, stats, status, stop};
use crate::config::Config;

#[derive(OpenApi)]
#[openapi(
    paths(
        start::start,
        stop::stop,
        status::status,
        report::report,
        flamegraph::flamegraph,
        stats::stats
    ),
    components(schemas(ErrorBody)),
    tags((name = "profiler", description = "Where the memory of this service went: heapray, its built-in heap profiler"))
)]
struct Ours;

/// Our routes alone, for this configuration: ready to be merged into an app's own document.
pub(crate) fn routes(config: &Config) -> utoipa::openapi::OpenApi {
    let mut document = Ours::openapi();
    document.info = Info::new(
        format!("Job - {}", config.job_name),
        config.job_version.clone(),
    );
    document.info.description =
        Some("The service's built-in memory profiler. Everything is also reachable below the job's prefix.".into());
    if config.token.is_some() {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        let components = document.components.get_or_insert_default();
        components
            .security_schemes
            .insert(SCHEME.into(), scheme.into());
        for item in document.paths.paths.values_mut() {
            for operation in operations(item) {
                let bearer = SecurityRequirement::new::<_, [&str; 0], &str>(SCHEME, []);
                operation.security.get_or_insert_default().push(bearer);
            }
        }
    }
    document
}

/// What `/openapi.json` tells: the app's document, where it has one, with our routes in it.
///
/// Servers are relative to the document first, which is right at the root, below any prefix, and behind a proxy that
/// takes one off; then comes the prefixed path, of which code generators can make something.
pub(crate) fn whole(
    config: &Config,
    app: Option<utoipa::openapi::OpenApi>,
) -> utoipa::openapi::OpenApi {
    let mut document = match app {
        Some(mut app) => {
            app.merge(routes(config));
            app
        }
        None => routes(config),
    };
    let mut here = Server::new("./");
    here.description = Some("where this document is".into());
    let mut servers = vec![here];
    let prefix = config.prefix.filled(&config.job_name, &config.job_version);
    if !prefix.is_empty() && !prefix.contains('{') {
        let mut prefixed = Server::new(prefix);
        prefixed.description = Some("proxy prefixed path".into());
        servers.push(prefixed);
    }
    document.servers = Some(servers);
    document
}

const SCHEME: &str = "heapray_token";

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post].into_iter().flatten()
}

/// How frames and threads are shown.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // a description only: `query` reads them
pub(crate) struct MakingParams {
    /// Keep leaf frames inside Rust's own `alloc`, `core` and `std`: true, t, yes, y or 1. By default the leaf of a
    /// call stack is the code that asked for memory.
    full: Option<bool>,
    /// `name`: threads of one name count as one; `each`: they are kept apart.
    #[param(inline)]
    threads: Option<Threads>,
}

/// [`MakingParams`], and the format.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)]
pub(crate) struct ReportParams {
    /// Keep leaf frames inside Rust's own `alloc`, `core` and `std`: true, t, yes, y or 1. By default the leaf of a
    /// call stack is the code that asked for memory.
    full: Option<bool>,
    /// `name`: threads of one name count as one; `each`: they are kept apart.
    #[param(inline)]
    threads: Option<Threads>,
    /// Version of memray's capture format, for an older memray.
    #[param(inline)]
    version: Option<FormatVersion>,
}

/// Bytes that are no text.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code)]
pub(crate) struct CaptureFile(Vec<u8>);

#[derive(ToSchema)]
#[schema(rename_all = "lowercase", default = "name")]
#[allow(dead_code)]
enum Threads {
    Name,
    Each,
}

#[derive(ToSchema)]
#[schema(default = "13")]
#[allow(dead_code)]
enum FormatVersion {
    #[schema(rename = "12")]
    V12,
    #[schema(rename = "13")]
    V13,
}

/// Headers of a request that wants less than everything.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code)]
pub(crate) struct ConditionParams {
    /// One range of bytes, such as `bytes=0-1023`.
    #[param(rename = "Range", required = false)]
    range: String,
    /// An `ETag`: the range counts only if nothing has changed.
    #[param(rename = "If-Range", required = false)]
    if_range: String,
    /// An `ETag`: 304 if nothing has changed.
    #[param(rename = "If-None-Match", required = false)]
    if_none_match: String,
    /// A date: 304 if nothing has changed.
    #[param(rename = "If-Modified-Since", required = false)]
    if_modified_since: String,
}

/// What any call can meet.
#[derive(IntoResponses)]
#[allow(dead_code)] // a description only: `error` makes the answers
pub(crate) enum CommonFailures {
    /// The bearer token is missing or wrong.
    #[response(status = 401, content_type = "application/json", headers(("WWW-Authenticate" = String, description = "`Bearer`.")))]
    Unauthorized(ErrorBody),
    /// This process was forked from the profiled one.
    #[response(status = 409, content_type = "application/json")]
    Forked(ErrorBody),
    /// A fault in the profiler; the service runs on.
    #[response(status = 500, content_type = "application/json")]
    Internal(ErrorBody),
}

/// What a call that changes something can meet besides.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(crate) enum WriteFailures {
    /// The call came from a page of another site.
    #[response(status = 403, content_type = "application/json")]
    CrossSite(ErrorBody),
    /// The disk, or a limit on it, is full.
    #[response(status = 507, content_type = "application/json")]
    Full(ErrorBody),
}

/// What asking for an output can meet besides.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(crate) enum OutputFailures {
    /// A parameter has a value that is not allowed.
    #[response(status = 400, content_type = "application/json")]
    BadRequest(ErrorBody),
    /// Nothing was recorded yet.
    #[response(status = 404, content_type = "application/json")]
    NoReport(ErrorBody),
    /// None of the bytes that were asked for is there.
    #[response(status = 416, content_type = "application/json", headers(("Content-Range" = String, description = "How many there are.")))]
    Range(ErrorBody),
    /// The disk, or a limit on it, is full.
    #[response(status = 507, content_type = "application/json")]
    Full(ErrorBody),
}
