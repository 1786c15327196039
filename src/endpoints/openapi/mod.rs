//! The OpenAPI description: of our own routes, and merged with the app's.

pub(crate) mod failures;
mod merge;
pub(crate) mod params;
pub(crate) mod schemas;
mod views;

use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{HttpMethod, Info, PathItem, RefOr, Server};
use utoipa::{IntoParams, IntoResponses, OpenApi};

use self::failures::KeptFailures;
use self::params::ReportIdParam;
use self::schemas::{LiveEvent, Statistics, StatisticsAnswer, StatisticsByContext};
use self::views::VIEWS;
use super::api::BASE;
use super::error::{ErrorBody, ErrorKind};
use super::query::SinceQuery;
use super::{live, mark, outputs, reports, start, status, stop, ticket, timeline};
use crate::config::Config;
use crate::os::command_line;

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
    components(schemas(ErrorBody, ErrorKind, LiveEvent, Statistics, StatisticsAnswer, StatisticsByContext)),
    tags(
        (name = "profiler", description = "Where the memory of this service goes: heapray, its built-in heap profiler. \
                                           [The live page](../api/v1/profiler/memray/) shows it while it records."),
        (name = "reports", description = "The reports of the last few sessions"),
        (name = "live page", description = "The data of the live page"),
    )
)]
struct Ours;

/// Returns the description of our routes alone for this configuration, ready to be merged into an app's own document.
pub(crate) fn routes(config: &Config) -> utoipa::openapi::OpenApi {
    let mut document = Ours::openapi();
    describe_views(&mut document);
    let [job, version] = config.job();
    let title = match job.as_str() {
        "" => command_line::program(),
        job => format!("Job - {job}"),
    };
    let version = match version.as_str() {
        "" => env!("CARGO_PKG_VERSION").to_owned(),
        _ => version,
    };
    document.info = Info::new(title, version);
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
            // An empty list means that no token is needed, even if the rest of a merged document needs one.
            let wanted = operation.security.get_or_insert_default();
            if guarded {
                wanted.push(SecurityRequirement::new::<_, [&str; 0], &str>(SCHEME, []));
            }
        }
    }
    document
}

/// Describes the answers of each view, and the views of kept reports in the same way as those of the present session.
fn describe_views(document: &mut utoipa::openapi::OpenApi) {
    for described in VIEWS {
        let view = described.name;
        let item = document.paths.paths.get_mut(&format!("{BASE}/{view}"));
        // Every view has one: `tests/http/document.rs` compares the document with the routes.
        let Some(operation) = item.and_then(|item| item.get.as_mut()) else {
            continue;
        };
        operation.responses.responses.extend(described.responses());
        let mut view_of_kept = operation.clone();
        let name = view.replace('.', "_");
        view_of_kept.operation_id = Some(format!("heapray_kept_output_{name}"));
        view_of_kept.tags = Some(vec!["reports".into()]);
        let summary = view_of_kept.summary.get_or_insert_default();
        summary.push_str(", of a kept report");
        // The views of a kept report do not have these parameters.
        let id = ReportIdParam::into_params(|| None).into_iter();
        let others = view_of_kept.parameters.take().unwrap_or_default();
        let others = others.into_iter().filter(|parameter| match parameter {
            RefOr::T(parameter) => {
                !["full", "threads", "session"].contains(&parameter.name.as_str())
            }
            RefOr::Ref(_) => true,
        });
        let since = SinceQuery::into_params(|| None).into_iter();
        let parameters = id.chain(since).map(RefOr::T).chain(others).collect();
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

/// A document as `/openapi.json` answers it.
pub(crate) struct Document {
    pub(crate) title: String,
    pub(crate) text: Vec<u8>,
}

/// Returns the document of the profiler's routes alone.
pub(crate) fn own(config: &Config) -> Document {
    let document = with_servers(config, true);
    Document {
        text: bytes(&document),
        title: document.info.title,
    }
}

/// Returns the app's document merged with that of the profiler's routes.
///
/// # Errors
///
/// Fails if the app's document is not OpenAPI 3.1; the text says what is wrong with it.
pub(crate) fn merged(config: &Config, app: Value) -> Result<Document, String> {
    let ours = with_servers(config, config.routes_below_prefix);
    let ours = serde_json::to_value(ours).map_err(|error| error.to_string())?;
    let merged = merge::merged(app, ours)?;
    let title = merged["info"]["title"].as_str();
    Ok(Document {
        title: title.unwrap_or_default().to_owned(),
        text: bytes(&merged),
    })
}

fn bytes(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("an OpenAPI document can be written as JSON")
}

/// Returns the document of our routes with its servers.
///
/// The first server is relative to the document, which is right at the root, below any prefix, and behind a proxy that
/// removes one. The second is the prefixed path, for code generators that need a full path. A merged document leaves the
/// second out if the app's routes are not below the prefix.
fn with_servers(config: &Config, prefixed: bool) -> utoipa::openapi::OpenApi {
    let mut document = routes(config);
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
