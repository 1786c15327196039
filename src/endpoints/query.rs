//! The query parameters of the outputs: the structs that read and describe them.

use heapray_report::formats::Format;
use heapray_report::formats::pprof::Labels as PprofLabels;
use heapray_report::memray::Version;
use heapray_report::views::{Measure, Unit};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
#[cfg(feature = "openapi")]
use utoipa::openapi::RefOr;
#[cfg(feature = "openapi")]
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, PartialSchema, ToSchema};

use super::error::ApiError;
#[cfg(feature = "openapi")]
use super::openapi::schemas::Truth;
use super::params;
use crate::config::values::one_of;
use crate::contexts::LabelKey;
use crate::profiler::Of;
use crate::profiler::store::{OutputKey, OutputKind, ReportId};
use crate::symbolize::{ThreadMode, looks_up_names};

/// Parameter that says which session an output is of.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct SessionQuery {
    /// `last`: the session that was started last, whether it runs or has ended. `running`: the one that runs now, which with
    /// `MEMRAY_PROFILER_CONTINUOUS` may be the one in the background.
    #[cfg_attr(feature = "openapi", param(inline))]
    session: Option<WhichSession>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", schema(default = "last"))]
enum WhichSession {
    Last,
    Running,
}

/// Returns which session the query asks for.
pub(super) fn session(query: Option<&str>) -> Result<Of, ApiError> {
    let SessionQuery { session } = params::read(query)?;
    Ok(match session {
        None | Some(WhichSession::Last) => Of::Session,
        Some(WhichSession::Running) => Of::Running,
    })
}

/// Parameters that say how frames and threads are shown.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct MakingQuery {
    /// Keep leaf frames inside Rust's own `alloc`, `core` and `std`: true, t, yes, y, on or 1. By default the leaf of a call
    /// stack is the code that requested the memory.
    #[cfg_attr(feature = "openapi", param(inline, value_type = Option<Truth>))]
    pub(super) full: Option<bool>,
    /// Name functions in full, with generic arguments: true, t, yes, y, on or 1. By default names are short, and call sites that
    /// differ only in type parameters are joined. A page holds both.
    #[serde(rename = "full-names")]
    #[cfg_attr(feature = "openapi", param(inline, value_type = Option<Truth>))]
    full_names: Option<bool>,
    /// `name`: threads of the same name are counted as one. `each`: every thread is counted by itself.
    #[cfg_attr(feature = "openapi", param(inline))]
    pub(super) threads: Option<Threads>,
}

/// Parameters that say what a file shows.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct FileQuery {
    /// The measure of the heap. pprof files have all measures, and take this one as the default view.
    #[cfg_attr(feature = "openapi", param(inline))]
    measure: Option<ShownMeasure>,
    /// Bytes or blocks, for formats that hold only one of them.
    #[cfg_attr(feature = "openapi", param(inline))]
    unit: Option<ShownUnit>,
    /// Leaf first instead of root first: true, t, yes, y, on or 1.
    #[cfg_attr(feature = "openapi", param(inline, value_type = Option<Truth>))]
    inverted: Option<bool>,
    /// Write frames with file and line, for formats that leave the choice: true, t, yes, y, on or 1.
    #[cfg_attr(feature = "openapi", param(inline, value_type = Option<Truth>))]
    lines: Option<bool>,
}

/// Parameters of a profile for pprof.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct PprofQuery {
    /// Labels of each sample, for pprof: `thread`, `allocator`, `context` (each label of the context by its own name, such
    /// as `route`), or several of them, separated by commas. By default there are none, because profile stores make a
    /// series of its own for each value of a label.
    #[cfg_attr(
        feature = "openapi",
        param(pattern = "^ *((thread|allocator|context) *(, *(thread|allocator|context) *)*)?$")
    )]
    labels: Option<String>,
    /// Most samples, for pprof: the smaller ones are summed up, so that no total changes. By default 16,000 samples and 4 MiB,
    /// since Pyroscope refuses more; `0` writes all of them.
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>, pattern = "^[0-9]{1,9}$"))]
    #[serde(default, deserialize_with = "number_of_samples")]
    limit: Option<u32>,
    /// Whether code has names, for pprof: true, t, yes, y, on or 1. By default it has, unless the service looks up no symbols.
    /// Without, the profile has addresses and build ids: profile stores that have the debug information look the names up.
    #[cfg_attr(feature = "openapi", param(inline, value_type = Option<Truth>))]
    symbolize: Option<bool>,
}

fn number_of_samples<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    params::whole(value, u32::MAX, "a number of samples, or 0 for all").map(Some)
}

/// Parameter that shows memory by context.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct ByQuery {
    /// The key of contexts, such as `route` or `tenant`, by which memory is shown: call stacks stand below a root frame of their
    /// context's value, such as `[GET /users/{id}]`, and statistics are a table of the values. A report then has sums, not every
    /// event.
    #[cfg_attr(
        feature = "openapi",
        param(value_type = Option<String>, min_length = 1)
    )]
    by: Option<LabelKey>,
}

/// Parameter that chooses the version of a report's format.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct VersionQuery {
    /// Version of memray's capture format, for an older memray.
    #[cfg_attr(feature = "openapi", param(inline))]
    version: Option<FormatVersion>,
}

/// Parameter that compares a kept report with another one.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct SinceQuery {
    /// The number of an earlier kept report: only what has grown since then is shown.
    #[cfg_attr(feature = "openapi", param(pattern = "^(0|[1-9][0-9]{0,18})$"))]
    since: Option<String>,
}

/// Returns the kept report that a kept report is compared with, if the query names one.
pub(super) fn since(query: Option<&str>) -> Result<Option<ReportId>, ApiError> {
    let SinceQuery { since } = params::read(query)?;
    let refused = || ApiError::BadRequest("since must be the number of a kept report".to_owned());
    since
        .map(|text| {
            // As the document says it: every number of 19 digits fits 64 bits.
            let id = ReportId::parse(&text).filter(|_| text.len() <= 19);
            id.ok_or_else(refused)
        })
        .transpose()
}

/// Parameter that chooses the format of a report.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct ReportQuery {
    /// A file for another tool. Beats an `Accept` header.
    #[cfg_attr(feature = "openapi", param(inline))]
    format: Option<FileFormat>,
}

/// Parameter that chooses the format of statistics.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct StatsQuery {
    /// Text or JSON. Beats an `Accept` header.
    #[cfg_attr(feature = "openapi", param(inline))]
    format: Option<StatsFormat>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", schema(default = "text"))]
enum StatsFormat {
    Text,
    Json,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "openapi", schema(default = "high-water"))]
enum ShownMeasure {
    Live,
    HighWater,
    Allocated,
    Temporary,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", schema(default = "bytes"))]
enum ShownUnit {
    Bytes,
    Count,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", schema(default = "name"))]
pub(super) enum Threads {
    Name,
    Each,
}

impl Threads {
    pub(super) fn name(self) -> &'static str {
        match self {
            Threads::Name => "name",
            Threads::Each => "each",
        }
    }
}

#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[cfg_attr(feature = "openapi", schema(default = "13"))]
enum FormatVersion {
    #[serde(rename = "12")]
    V12,
    #[serde(rename = "13")]
    V13,
}

/// Name of a format, in any case, out of those of this build.
struct FileFormat(Format);

impl FileFormat {
    fn names() -> Vec<&'static str> {
        Format::ALL.iter().map(|format| format.name()).collect()
    }
}

impl<'q> Deserialize<'q> for FileFormat {
    fn deserialize<D: Deserializer<'q>>(value: D) -> Result<FileFormat, D::Error> {
        let format = String::deserialize(value)?.parse();
        let refused = |_| D::Error::custom(one_of(&FileFormat::names()));
        format.map(FileFormat).map_err(refused)
    }
}

#[cfg(feature = "openapi")]
impl PartialSchema for FileFormat {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let one = text.enum_values(Some(FileFormat::names()));
        let one = one.default(Some(Format::Memray.name().into()));
        RefOr::T(one.build().into())
    }
}

#[cfg(feature = "openapi")]
impl ToSchema for FileFormat {}

/// Returns the output that a query asks for at the path of `kind`: with `?format=` a file for another tool, else
/// `preferred`. Ignores unknown parameters.
pub(super) fn read(
    kind: OutputKind,
    preferred: OutputKind,
    query: Option<&str>,
) -> Result<OutputKey, ApiError> {
    let asked = match kind {
        OutputKind::Report => {
            let ReportQuery { format } = params::read(query)?;
            format.map(|FileFormat(format)| match format {
                // The report has every event. The format of the same name has only sums.
                Format::Memray => OutputKind::Report,
                format => OutputKind::File(format),
            })
        }
        OutputKind::Stats => {
            let StatsQuery { format } = params::read(query)?;
            format.map(|format| match format {
                StatsFormat::Text => OutputKind::Stats,
                StatsFormat::Json => OutputKind::StatsJson,
            })
        }
        _ => None,
    };
    let making: MakingQuery = params::read(query)?;
    let file: FileQuery = params::read(query)?;
    let VersionQuery { version } = params::read(query)?;
    let PprofQuery {
        labels,
        limit,
        symbolize,
    } = params::read(query)?;
    let ByQuery { by } = params::read(query)?;
    let mut key = OutputKey::new(asked.unwrap_or(preferred))
        .full(making.full.unwrap_or_default())
        .full_names(making.full_names.unwrap_or_default())
        .inverted(file.inverted.unwrap_or_default())
        .lines(file.lines.unwrap_or_default())
        .by(by);
    if let Some(threads) = making.threads {
        key = key.threads(match threads {
            Threads::Name => ThreadMode::ByName,
            Threads::Each => ThreadMode::Each,
        });
    }
    if let Some(version) = version {
        key = key.version(match version {
            FormatVersion::V12 => Version::V12,
            FormatVersion::V13 => Version::V13,
        });
    }
    if let Some(measure) = file.measure {
        key = key.measure(match measure {
            ShownMeasure::Live => Measure::Live,
            ShownMeasure::HighWater => Measure::HighWater,
            ShownMeasure::Allocated => Measure::Allocated,
            ShownMeasure::Temporary => Measure::Temporary,
        });
    }
    if let Some(labels) = labels {
        let labels: Result<PprofLabels, _> = labels.parse();
        key = key.labels(labels.map_err(|error| ApiError::BadRequest(error.to_string()))?);
    }
    if let Some(samples) = limit {
        key = key.limit(samples);
    }
    key = key.symbolize(symbolize.unwrap_or_else(looks_up_names));
    if let Some(unit) = file.unit {
        key = key.unit(match unit {
            ShownUnit::Bytes => Unit::Bytes,
            ShownUnit::Count => Unit::Count,
        });
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::{
        ApiError, Format, LabelKey, Measure, OutputKey, OutputKind, ThreadMode, Unit, Version,
    };

    const REPORT: OutputKey = OutputKey::new(OutputKind::Report);

    fn read(query: &str) -> Result<OutputKey, ApiError> {
        super::read(OutputKind::Report, OutputKind::Report, Some(query))
    }

    #[test]
    fn parameters_choose_how_it_is_made() {
        let csv = OutputKey::new(OutputKind::File(Format::Csv));
        for (query, key) in [
            ("", REPORT),
            ("full=true", REPORT.full(true)),
            ("full=Y", REPORT.full(true)),
            ("full", REPORT.full(true)),
            ("full=0", REPORT),
            ("full-names=true", REPORT.full_names(true)),
            ("full-names", REPORT.full_names(true)),
            ("threads=each", REPORT.threads(ThreadMode::Each)),
            ("threads=name", REPORT),
            ("version=12", REPORT.version(Version::V12)),
            ("version=1%32", REPORT.version(Version::V12)),
            ("version=13&x=y&_=1", REPORT),
            ("format=memray", REPORT),
            ("by=route", REPORT.by(LabelKey::new("route"))),
            ("by=a+b%20c", REPORT.by(LabelKey::new("a b c"))),
            ("format=csv", csv),
            ("measure=live&format=CSV", csv.measure(Measure::Live)),
            (
                "format=csv&unit=count&inverted&lines=1",
                csv.unit(Unit::Count).inverted(true).lines(true),
            ),
        ] {
            assert_eq!(read(query).unwrap(), key, "{query:?}");
        }
    }

    #[test]
    fn a_profile_for_pprof_has_labels_and_a_limit() {
        let key = OutputKey::new(OutputKind::File(Format::Pprof));
        let [thread, both] = ["thread", "thread,allocator"].map(|list| list.parse().unwrap());
        for (query, expected) in [
            ("", key),
            ("measure=live", key),
            ("labels=", key),
            ("labels=thread&limit=0", key.labels(thread).limit(0)),
            ("labels=allocator,thread", key.labels(both)),
            ("limit=100", key.limit(100)),
            ("symbolize=false", key.symbolize(false)),
            ("symbolize=on", key),
        ] {
            let pprof = OutputKind::File(Format::Pprof);
            assert_eq!(
                super::read(pprof, pprof, Some(query)).unwrap(),
                expected,
                "{query}"
            );
        }
        assert_eq!(read("labels=thread&limit=1").unwrap(), REPORT);
    }

    #[test]
    fn a_report_that_holds_everything_is_one_whatever_is_to_be_shown() {
        assert_eq!(read("measure=live&unit=count&inverted").unwrap(), REPORT);
    }

    #[test]
    fn only_reports_and_statistics_have_formats_and_the_query_beats_the_header() {
        let [stats, csv] = [OutputKind::Stats, OutputKind::File(Format::Csv)];
        assert!(super::read(stats, stats, Some("format=csv")).is_err());
        let key = super::read(stats, stats, Some("format=json")).unwrap();
        assert_eq!(key, OutputKey::new(OutputKind::StatsJson));
        let page = OutputKind::Flamegraph;
        let key = super::read(page, page, Some("format=csv")).unwrap();
        assert_eq!(key, OutputKey::new(page));
        let key = super::read(OutputKind::Report, csv, None).unwrap();
        assert_eq!(key, OutputKey::new(csv));
        let key = super::read(OutputKind::Report, csv, Some("format=memray")).unwrap();
        assert_eq!(key, REPORT);
    }

    #[test]
    fn bad_values_are_refused() {
        for query in [
            "full=maybe",
            "threads=",
            "threads=all",
            "version=",
            "version=11",
            "full&full=no",
            "format=csv&format=csv",
            "measure=leaks",
            "unit=blocks",
            "format=",
            "format=xml",
            "inverted=2",
            "full-names=2",
            "by=",
            "by",
            "by=a&by=b",
            "limit=many",
            "limit=-1",
            "limit=4294967296",
            "limit=%2B5",
            "labels=route",
        ] {
            assert!(read(query).is_err(), "{query:?}");
        }
    }
}
