//! The OpenAPI description: of our own routes, and joined with the app's.

use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{HttpMethod, Info, PathItem, RefOr, Server};
use utoipa::{IntoParams, IntoResponses, OpenApi};

use super::described::VIEWS;
use super::error::{ErrorBody, ErrorKind};
use super::failures::KeptFailures;
use super::reports::ReportIdParam;
use super::schemas::{LiveEvent, Statistics};
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
        outputs::picture,
        timeline::timeline,
        reports::list,
        reports::one,
        reports::delete,
        live::live,
        ticket::ticket,
    ),
    components(schemas(ErrorBody, ErrorKind, LiveEvent, Statistics)),
    tags(
        (name = "profiler", description = "Where the memory of this service went: heapray, its built-in heap profiler. \
                                           [The live page](../api/v1/profiler/memray/) shows it while it records."),
        (name = "reports", description = "The reports of the last few sessions"),
        (name = "live page", description = "What the live page is made of"),
    )
)]
struct Ours;

/// Our routes alone, for this configuration: ready to be merged into an app's own document.
pub(crate) fn routes(config: &Config) -> utoipa::openapi::OpenApi {
    let mut document = Ours::openapi();
    describe_kept(&mut document);
    document.info = Info::new(
        format!("Job - {}", config.job_name),
        config.job_version.clone(),
    );
    document.info.description = Some(
        "The service's built-in memory profiler. It is also reachable below the job's prefix."
            .into(),
    );
    let guarded = config.token.is_some();
    if guarded {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        let components = document.components.get_or_insert_default();
        components
            .security_schemes
            .insert(SCHEME.into(), scheme.into());
    }
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            // An empty list says that nothing is wanted, whatever the rest of a joined document wants.
            let wanted = operation.security.get_or_insert_default();
            if guarded {
                wanted.push(SecurityRequirement::new::<_, [&str; 0], &str>(SCHEME, []));
            }
        }
    }
    document
}

/// The views that kept reports have too, below `reports/{id}/`.
const VIEWS: [&str; 8] = [
    "report",
    "flamegraph",
    "stats",
    "table",
    "tree",
    "summary",
    "pprof",
    "flamegraph.svg",
];

/// Describes the views of kept reports, each as that of the present session.
fn describe_kept(document: &mut utoipa::openapi::OpenApi) {
    for view in VIEWS {
        let item = document.paths.paths.get(&format!("{BASE}/{view}"));
        let Some(mut view_of_kept) = item.and_then(|item| item.get.clone()) else {
            continue;
        };
        let name = view.replace('.', "_");
        view_of_kept.operation_id = Some(format!("heapray_kept_output_{name}"));
        view_of_kept.tags = Some(vec!["reports".into()]);
        let summary = view_of_kept.summary.get_or_insert_default();
        summary.push_str(", of a kept report");
        // These are of the present session only.
        let id = ReportIdParam::into_params(|| None).into_iter();
        let others = view_of_kept.parameters.take().unwrap_or_default();
        let others = others.into_iter().filter(|parameter| match parameter {
            RefOr::T(parameter) => !["full", "threads"].contains(&parameter.name.as_str()),
            RefOr::Ref(_) => true,
        });
        let parameters = id.map(RefOr::T).chain(others).collect();
        view_of_kept.parameters = Some(parameters);
        let responses = &mut view_of_kept.responses.responses;
        responses.extend(KeptFailures::responses());
        if let Some(RefOr::T(whole)) = responses.get_mut("200") {
            whole.headers.remove("X-Heapray-Snapshot");
        }
        let item = PathItem::new(HttpMethod::Get, view_of_kept);
        let path = format!("{BASE}/reports/{{id}}/{view}");
        document.paths.paths.insert(path, item);
    }
}

const BASE: &str = "/api/v1/profiler/memray";

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
    let mut here = Server::new(".");
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
    #[param(
        pattern = r"^ *0*([0-9]{1,19} *B?|[0-9]{1,16} *(K|KiB|kB)|[0-9]{1,13} *(M|MiB|MB)|[0-9]{1,10} *(G|GiB|GB)|[0-9]{1,7} *(T|TiB|TB)) *$"
    )]
    sample: Option<String>,
}

/// How frames and threads are shown.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // a description only: `query` reads them
pub(crate) struct MakingParams {
    /// Keep leaf frames inside Rust's own `alloc`, `core` and `std`: true, t, yes, y or 1. By default the leaf of a
    /// call stack is the code that asked for memory.
    #[param(inline)]
    full: Option<Truth>,
    /// Call functions by their full names, with generic arguments: true, t, yes, y or 1. By default names are plain, and
    /// call sites that differ in type parameters alone are one. A page holds both.
    #[param(inline, rename = "full-names")]
    full_names: Option<Truth>,
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
    #[param(inline)]
    inverted: Option<Truth>,
    /// Frames with file and line, where a format leaves it to choose: true, t, yes, y or 1.
    #[param(inline)]
    lines: Option<Truth>,
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
    #[param(example = "1795252380250", pattern = "^(0|[1-9][0-9]{0,19})$")]
    id: String,
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
    #[param(
        example = "before the load test",
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"
    )]
    name: String,
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

/// Headers of a request whose sender has a copy. `Range` and `If-Range` are told of with `Accept-Ranges`: a range that is not
/// there is refused, which no schema can say.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code)]
pub(crate) struct ConditionParams {
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
    /// The call came from a page of another site, or under a host name that may be a stranger's.
    #[response(status = 403, content_type = "application/json")]
    Forbidden(ErrorBody),
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
}

/// What watching can meet besides.
#[derive(IntoResponses)]
#[allow(dead_code)]
pub(crate) enum WatchFailures {
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
    #[param(
        rename = "for",
        example = "reports/1795252380250/flamegraph",
        pattern = r"^((reports/(0|[1-9][0-9]{0,18})/)?(report|flamegraph(\.svg)?|stats|table|tree|summary|pprof)|timeline)/?$"
    )]
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
}
