//! `GET timeline`: the memory log, as JSON or as its file.

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use heapray_report::formats::Format;
use heapray_report::memory_log::{Digest, DigestLimits, Reading};
use heapray_report::model::Moment;
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

use super::download::download;
use super::error::ApiError;
#[cfg(feature = "openapi")]
use super::openapi::failures::{CommonFailures, TimelineFailures};
#[cfg(feature = "openapi")]
use super::openapi::params::ConditionParams;
use super::{negotiate, params, reply};
use crate::config::{MemoryChildren, MemoryLogConfig, MemoryMetric, MemoryRole};
use crate::memory_log::{Recorder, Recording};
use crate::profiler::LogReader;
use crate::profiler::store::{Label, Output, OutputKey, OutputKind};
use crate::profiler::{Error, LiveFeed, Profiler};

/// Limits of the JSON for a log of any length.
const LIMITS: DigestLimits = DigestLimits {
    readings: 2_000,
    children: 50,
    functions: 1_000,
};

/// Parameter that chooses the format of the memory log.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct TimelineQuery {
    /// JSON, or the log's file. Beats an `Accept` header.
    #[cfg_attr(feature = "openapi", param(inline))]
    format: Option<TimelineFormat>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", schema(default = "json"))]
enum TimelineFormat {
    Json,
    Mprof,
}

/// The process's memory over time, from the memory log. All times are milliseconds since `started`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub(crate) struct Timeline {
    /// The log's file, as a path in the service's file system.
    pub(crate) file: String,
    /// Start of the log.
    #[serde(serialize_with = "crate::os::calendar::serialize")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub(crate) started: SystemTime,
    /// Process number.
    pub(crate) pid: u32,
    /// Role of the process in its job: `main` or `worker`.
    pub(crate) role: &'static str,
    /// Measure of memory: `rss`, `pss` or `uss`.
    pub(crate) metric: &'static str,
    /// True if `memory` includes the children.
    pub(crate) children_included: bool,
    /// Memory of the process. At most 2,000 readings and the latest: if there are more, neighbours are joined to the larger
    /// of them.
    pub(crate) memory: TimelineCurve,
    /// Child processes and their own children: the 50 that were seen last.
    pub(crate) children: Vec<TimelineChild>,
    /// Number of further child processes.
    pub(crate) more_children: u64,
    /// Calls of functions, and requests, if they are marked: the 1,000 longest, in the order of their beginnings.
    pub(crate) functions: Vec<TimelineFunction>,
    /// Number of further calls.
    pub(crate) more_functions: u64,
    /// Memory that the service had allocated and not freed, in the profiler's running session, or else in its last one; null
    /// if there was no session.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub(crate) heap: Option<TimelineCurve>,
}

/// Curve, as two columns of the same length.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub(crate) struct TimelineCurve {
    /// Times in milliseconds.
    pub(crate) at_ms: Vec<i64>,
    /// Values in bytes.
    pub(crate) bytes: Vec<u64>,
}

/// Process that descends from this one.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub(crate) struct TimelineChild {
    /// Its process number.
    pub(crate) id: String,
    /// Times in milliseconds.
    pub(crate) at_ms: Vec<i64>,
    /// Values in bytes.
    pub(crate) bytes: Vec<u64>,
}

/// Call of a function, or another marked span.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub(crate) struct TimelineFunction {
    /// Name of the function.
    pub(crate) name: String,
    /// Depth at which the call is nested.
    pub(crate) level: u32,
    /// Time at which the call began.
    pub(crate) from_ms: i64,
    /// Time at which the call ended.
    pub(crate) to_ms: i64,
    /// Memory of the process when the call began.
    pub(crate) from_bytes: u64,
    /// Memory of the process when the call ended.
    pub(crate) to_bytes: u64,
}

/// Memory over time
///
/// The content of the memory log (`MEMRAY_PROFILER_MEMORY_LOG`): the process's memory, that of each of its children, marked
/// functions and requests, and beside them the heap of the profiler's session. `?format=mprof`, or `Accept: text/plain`,
/// gives the log's file, for `mprof plot` and `heapray memory plot`, whole or as a range. The log goes on.
#[cfg_attr(feature = "openapi", utoipa::path(
    get,
    path = "/api/v1/profiler/memray/timeline",
    tag = "profiler",
    operation_id = "heapray_timeline",
    params(TimelineQuery, ConditionParams),
    responses(
        (
            status = 200,
            description = "The curves, or the file up to its last whole line.",
            content(
                (Timeline = "application/json"),
                (
                    String = "text/plain; charset=utf-8",
                    example = "CMDLINE ./service\nMEM 12.500000 1795278525.7620\n"
                ),
            )
        ),
        (status = 206, description = "The requested range of the file.", body = String, content_type = "text/plain; charset=utf-8"),
        (status = 304, description = "The client's copy of the file is up to date."),
        TimelineFailures,
        CommonFailures,
    )
))]
pub(super) async fn timeline(
    profiler: &Profiler,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let TimelineQuery { format } = params::read(query)?;
    let as_file = match format {
        Some(TimelineFormat::Json) => false,
        Some(TimelineFormat::Mprof) => true,
        None => negotiate::prefers_text(headers),
    };
    let core = profiler.core()?;
    let recorder = match &profiler.memory_log {
        Recording::On(recorder) => Arc::clone(recorder),
        Recording::Off => return Err(ApiError::NoMemoryLog(None)),
        Recording::Failed(reason) => return Err(ApiError::NoMemoryLog(Some(Arc::clone(reason)))),
    };
    let Some(reader) = core.log_reader() else {
        return Err(ApiError::NoMemoryLog(None));
    };
    let log = Arc::clone(reader);
    let mut response = if as_file {
        let name = recorder.path().file_name().unwrap_or_default();
        let disposition = format!("inline; filename=\"{}\"", name.to_string_lossy());
        let opened = reader.read(move || file(&log, &recorder)).await?;
        let mut response = download(core.reports(), opened?, headers)?;
        // A host name consists of letters, digits and hyphens. Any other name is left out.
        if let Ok(disposition) = HeaderValue::try_from(disposition) {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_DISPOSITION, disposition);
        }
        response
    } else {
        let feed = Arc::clone(core.live());
        let text = reader.read(move || json(&feed, &log, &recorder)).await?;
        reply::json_text(StatusCode::OK, text?)
    };
    let accept = HeaderValue::from_static("Accept");
    response.headers_mut().insert(header::VARY, accept);
    Ok(response)
}

/// Returns the file up to its last whole line.
fn file(log: &LogReader, recorder: &Recorder) -> Result<Output, ApiError> {
    let label = Label {
        key: OutputKey::new(OutputKind::File(Format::Mprof)),
        taken: SystemTime::now(),
        snapshot: true,
    };
    let opened = log.file(recorder.path(), label, &LIMITS);
    opened.map_err(|error| unreadable(recorder, &error))
}

fn json(feed: &LiveFeed, log: &LogReader, recorder: &Recorder) -> Result<Vec<u8>, ApiError> {
    let read = log.digest(recorder.path(), &LIMITS);
    let digest = read.map_err(|error| unreadable(recorder, &error))?;
    let timeline = to_timeline(recorder, digest, feed.heap_curve(LIMITS.readings));
    Ok(serde_json::to_vec(&timeline).expect("our own plain types can be written as JSON"))
}

fn unreadable(recorder: &Recorder, error: &io::Error) -> ApiError {
    tracing::warn!(path = %recorder.path().display(), %error, "the memory log cannot be read");
    match error.kind() {
        io::ErrorKind::NotFound => {
            let gone = format!("the memory log {} is gone", recorder.path().display());
            ApiError::NoMemoryLog(Some(gone.into()))
        }
        _ => Error::Internal("the memory log cannot be read; see the service's log for the reason")
            .into(),
    }
}

fn to_timeline(
    recorder: &Recorder,
    digest: Digest,
    heap: Option<(SystemTime, Vec<Moment>)>,
) -> Timeline {
    let started = recorder.started();
    let zero = since_epoch_ms(started);
    let ms = |at: f64| (at * 1000.0).round() as i64 - zero;
    let MemoryLogConfig {
        role,
        metric,
        children,
        ..
    } = recorder.config();
    let curve = |readings: &[Reading]| TimelineCurve {
        at_ms: readings.iter().map(|reading| ms(reading.at)).collect(),
        bytes: readings.iter().map(Reading::bytes).collect(),
    };
    let child = |(id, readings): (String, Vec<Reading>)| {
        let TimelineCurve { at_ms, bytes } = curve(&readings);
        TimelineChild { id, at_ms, bytes }
    };
    let heap = heap.map(|(began, rows)| {
        let began = since_epoch_ms(began) - zero;
        TimelineCurve {
            at_ms: rows
                .iter()
                .map(|row| began.saturating_add_unsigned(row.at_ms))
                .collect(),
            bytes: rows.iter().map(|row| row.heap).collect(),
        }
    });
    let functions = digest.functions.into_iter().map(|call| TimelineFunction {
        name: call.name,
        level: call.level.unwrap_or_default(),
        from_ms: ms(call.from.at),
        to_ms: ms(call.to.at),
        from_bytes: call.from.bytes(),
        to_bytes: call.to.bytes(),
    });
    Timeline {
        file: recorder.path().display().to_string(),
        started,
        pid: std::process::id(),
        role: match role {
            MemoryRole::Main => "main",
            MemoryRole::Worker => "worker",
        },
        metric: match metric {
            MemoryMetric::Rss => "rss",
            MemoryMetric::Pss => "pss",
            MemoryMetric::Uss => "uss",
        },
        children_included: MemoryChildren::are_included(*children),
        memory: curve(&digest.memory),
        children: digest.children.into_iter().map(child).collect(),
        more_children: digest.more_children,
        functions: functions.collect(),
        more_functions: digest.more_functions,
        heap,
    }
}

fn since_epoch_ms(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
