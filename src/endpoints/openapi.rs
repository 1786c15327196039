//! The OpenAPI description: of our own routes, and joined with the app's.

use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Info, PathItem, Server};
use utoipa::{IntoParams, IntoResponses, OpenApi, ToSchema};

use super::error::ErrorBody;
use super::{live, mark, outputs, reports, start, status, stop, ticket, timeline};
use crate::config::Config;

#[derive(OpenApi)]
#[openapi(
    paths(
        start::start,
        stop::stop,
        status::status,
        mark::mark,
        outputs::report,
        outputs::flamegraph,
        outputs::stats,
        outputs::table,
        outputs::tree,
        outputs::summary,
        outputs::pprof,
        timeline::timeline,
        reports::list,
        reports::one,
        reports::delete,
        outputs::kept,
        live::live,
        ticket::ticket,
    ),
    components(schemas(ErrorBody)),
    tags(
        (name = "profiler", description = "Where the memory of this service went: heapray, its built-in heap profiler. \
                                           [The live page](../api/v1/profiler/memray/) shows it while it records."),
        (name = "reports", description = "The reports of the last few sessions"),
        (name = "live page", description = "What the live page is made of"),
    )
)]
struct Ours;

#[cfg(feature = "svg")]
#[derive(OpenApi)]
#[openapi(paths(outputs::picture))]
struct Pictures;

/// Our routes alone, for this configuration: ready to be merged into an app's own document.
pub(crate) fn routes(config: &Config) -> utoipa::openapi::OpenApi {
    let mut document = Ours::openapi();
    #[cfg(feature = "svg")]
    document.merge(Pictures::openapi());
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
/// takes one off; then comes the prefixed path, of which code generators can make something. Not in a joined document
/// where the app's routes are not below the prefix.
pub(crate) fn whole(
    config: &Config,
    app: Option<utoipa::openapi::OpenApi>,
) -> utoipa::openapi::OpenApi {
    let prefixed = app.is_none() || config.routes_below_prefix;
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
    if prefixed && !prefix.is_empty() && !prefix.contains('{') {
        let mut prefixed = Server::new(prefix);
        prefixed.description = Some("proxy prefixed path".into());
        servers.push(prefixed);
    }
    document.servers = Some(servers);
    document
}

const SCHEME: &str = "heapray_token";

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.delete]
        .into_iter()
        .flatten()
}

/// How a session records.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // a description only: `start` reads it
pub(crate) struct StartParams {
    /// Record samples, one each so many bytes on average (`512KiB`; `1MB`; a number alone is of bytes), or every allocation
    /// with `0`. By default what `MEMRAY_PROFILER_SAMPLE` says.
    // No example: Swagger UI would fill it in, and a plain start would sample.
    sample: Option<String>,
}

/// How frames and threads are shown.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // a description only: `query` reads them
pub(crate) struct MakingParams {
    /// Keep leaf frames inside Rust's own `alloc`, `core` and `std`: true, t, yes, y or 1. By default the leaf of a
    /// call stack is the code that asked for memory.
    full: Option<bool>,
    /// Call functions by their full names, with generic arguments: true, t, yes, y or 1. By default names are plain, and
    /// call sites that differ in type parameters alone are one. A page holds both.
    #[param(rename = "full-names")]
    full_names: Option<bool>,
    /// `name`: threads of one name count as one; `each`: they are kept apart.
    #[param(inline)]
    threads: Option<Threads>,
}

/// What a file shows.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)]
pub(crate) struct FileParams {
    /// Which side of the heap. pprof has all of them, and takes this for what is in use.
    #[param(inline)]
    measure: Option<ShownMeasure>,
    /// Bytes or blocks, where a format holds one of them.
    #[param(inline)]
    unit: Option<ShownUnit>,
    /// Leaf first instead of root first: true, t, yes, y or 1.
    inverted: Option<bool>,
    /// Frames with file and line, where a format leaves it to choose: true, t, yes, y or 1.
    lines: Option<bool>,
}

/// Which file a report comes as.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)]
pub(crate) struct ReportParams {
    /// Version of memray's capture format, for an older memray.
    #[param(inline)]
    version: Option<FormatVersion>,
    /// A file for another tool; beats an `Accept` header.
    #[param(inline)]
    format: Option<FileFormat>,
}

/// What statistics can be asked for.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)]
pub(crate) struct StatsParams {
    /// Text or JSON; beats an `Accept` header.
    #[param(inline)]
    format: Option<StatsFormat>,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase", default = "text")]
#[allow(dead_code)]
enum StatsFormat {
    Text,
    Json,
}

/// Which kept report.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct ReportIdParam {
    /// Its number, from the list.
    #[param(example = "1795252380250")]
    id: String,
}

/// Which kept report, and which view of it.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct KeptOutputParams {
    /// Its number, from the list.
    #[param(example = "1795252380250")]
    id: String,
    /// `report`, `flamegraph`, `stats`, `table`, `tree`, `summary`, `pprof`, and `flamegraph.svg` where the service has it.
    #[param(inline)]
    view: View,
}

/// How the memory log comes.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)]
pub(crate) struct TimelineParams {
    /// JSON, or the log's file; beats an `Accept` header.
    #[param(inline)]
    format: Option<TimelineFormat>,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase", default = "json")]
#[allow(dead_code)]
enum TimelineFormat {
    Json,
    Mprof,
}

/// What asking for the memory log can meet besides.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(crate) enum TimelineFailures {
    /// The format is none of the two.
    #[response(status = 400, content_type = "application/json")]
    Format(ErrorBody),
    /// No memory log is written, and why.
    #[response(status = 404, content_type = "application/json", example = json!({
        "error": "no memory log is being written: set MEMRAY_PROFILER_MEMORY_LOG=true",
        "type": "MemoryLogNotFound"
    }))]
    NoLog(ErrorBody),
    /// The call came from a page of another site, and not by a link that somebody followed.
    #[response(status = 403, content_type = "application/json")]
    CrossSite(ErrorBody),
    /// None of the bytes that were asked for is there.
    #[response(status = 416, content_type = "application/json", headers(("Content-Range" = String, description = "How many there are.")))]
    Range(ErrorBody),
}

/// A mark.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)]
pub(crate) struct MarkParams {
    /// 1 to 200 characters, none of them a control character.
    #[param(example = "before the load test")]
    name: String,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code)]
enum View {
    Report,
    Flamegraph,
    Stats,
    Table,
    Tree,
    Summary,
    Pprof,
    #[schema(rename = "flamegraph.svg")]
    Svg,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase", default = "memray")]
#[allow(dead_code)]
enum FileFormat {
    Memray,
    Pprof,
    Speedscope,
    Collapsed,
    Svg,
    Csv,
    Json,
    Gprof2dot,
    Mprof,
}

#[derive(ToSchema)]
#[schema(rename_all = "kebab-case", default = "high-water")]
#[allow(dead_code)]
enum ShownMeasure {
    Live,
    HighWater,
    Allocated,
    Temporary,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase", default = "bytes")]
#[allow(dead_code)]
enum ShownUnit {
    Bytes,
    Count,
}

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
    #[response(status = 507, content_type = "application/json", example = json!({
        "error": "no output could be written to /var/profiles: No space left on device (os error 28)",
        "type": "StorageFull"
    }))]
    Full(ErrorBody),
}

/// What asking for an output can meet besides.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(crate) enum OutputFailures {
    /// A parameter has a value that is not allowed.
    #[response(status = 400, content_type = "application/json")]
    BadRequest(ErrorBody),
    /// The call came from a page of another site, and not by a link that somebody followed.
    #[response(status = 403, content_type = "application/json")]
    CrossSite(ErrorBody),
    /// Nothing was recorded yet.
    #[response(status = 404, content_type = "application/json")]
    NoReport(ErrorBody),
    /// Too many outputs wait to be made already; or clients that still read hold all the disk that outputs may take; or the
    /// service is about to end.
    #[response(
        status = 503,
        content_type = "application/json",
        headers(("Retry-After" = String, description = "Seconds to wait before asking again.")),
        example = json!({
            "error": "too many outputs wait to be made already: ask again in a few seconds",
            "type": "TooManyOutputs"
        })
    )]
    Later(ErrorBody),
    /// None of the bytes that were asked for is there.
    #[response(status = 416, content_type = "application/json", headers(("Content-Range" = String, description = "How many there are.")))]
    Range(ErrorBody),
    /// The disk, or a limit on it, is full.
    #[response(status = 507, content_type = "application/json", example = json!({
        "error": "no output could be written to /var/profiles: No space left on device (os error 28)",
        "type": "StorageFull"
    }))]
    Full(ErrorBody),
}

/// What asking for a kept report by its number can meet besides.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(crate) enum KeptFailures {
    /// No report of that number is kept.
    #[response(status = 404, content_type = "application/json", example = json!({
        "error": "no report of the number 1795252380250 is kept",
        "type": "ReportNotFound"
    }))]
    NotKept(ErrorBody),
}

/// What setting a mark can meet besides.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(crate) enum MarkFailures {
    /// The name is missing, too long, or has control characters in it.
    #[response(status = 400, content_type = "application/json", example = json!({
        "error": "a mark's name must have 1 to 200 characters, none of them a control character",
        "type": "BadRequest"
    }))]
    Name(ErrorBody),
    /// The call came from a page of another site.
    #[response(status = 403, content_type = "application/json")]
    CrossSite(ErrorBody),
}

/// What watching can meet besides.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(crate) enum WatchFailures {
    /// The call came from a page of another site.
    #[response(status = 403, content_type = "application/json")]
    CrossSite(ErrorBody),
    /// 32 watch already.
    #[response(
        status = 503,
        content_type = "application/json",
        headers(("Retry-After" = String, description = "Seconds to wait before asking again.")),
        example = json!({
            "error": "32 clients watch already",
            "type": "TooManyWatchers"
        })
    )]
    Full(ErrorBody),
}

/// What a ticket is for.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)]
pub(crate) struct TicketParams {
    /// The path below `…/memray/`.
    #[param(rename = "for", example = "reports/1795252380250/flamegraph")]
    path: String,
}

/// What asking for a ticket can meet besides.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(crate) enum TicketFailures {
    /// It is for nothing that can be read.
    #[response(status = 400, content_type = "application/json", example = json!({
        "error": "for is \"start\", but must be the path of an output below the profiler's",
        "type": "BadRequest"
    }))]
    For(ErrorBody),
    /// The call came from a page of another site.
    #[response(status = 403, content_type = "application/json")]
    CrossSite(ErrorBody),
}
