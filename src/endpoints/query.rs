//! The query parameters of the outputs.

use heapray_report::formats::Format;
use heapray_report::memray::Version;
use heapray_report::views::{Measure, Unit};

use super::error::ApiError;
use super::params;
use crate::config::truth;
use crate::profiler::store::{OutputKey, OutputKind};
use crate::symbolize::ThreadMode;

/// The output that a query asks for at the path of `kind`: with `?format=` a file for another tool, else `preferred`.
/// Parameters of other names are left to others.
pub(super) fn read(
    kind: OutputKind,
    preferred: OutputKind,
    query: Option<&str>,
) -> Result<OutputKey, ApiError> {
    let format = params::pairs(query).find(|(name, _)| *name == "format");
    let kind = match format {
        Some((_, value)) if kind == OutputKind::Report => self::format(value)?,
        Some((_, "text")) if kind == OutputKind::Stats => OutputKind::Stats,
        Some((_, "json")) if kind == OutputKind::Stats => OutputKind::StatsJson,
        Some((_, value)) if kind == OutputKind::Stats => {
            return Err(refuse("format", value, "text or json"));
        }
        _ => preferred,
    };
    let mut key = OutputKey::new(kind);
    for (name, value) in params::pairs(query) {
        key = match (name, value) {
            ("full", value) => key.full(truth(name, value)?),
            ("full-names", value) => key.full_names(truth(name, value)?),
            ("inverted", value) => key.inverted(truth(name, value)?),
            ("lines", value) => key.lines(truth(name, value)?),
            ("threads", "each") => key.threads(ThreadMode::Each),
            ("threads", "name") => key.threads(ThreadMode::ByName),
            ("threads", value) => return Err(refuse(name, value, "name or each")),
            ("version", "12") => key.version(Version::V12),
            ("version", "13") => key.version(Version::V13),
            ("version", value) => return Err(refuse(name, value, "12 or 13")),
            ("measure", value) => key.measure(measure(value)?),
            ("unit", "bytes") => key.unit(Unit::Bytes),
            ("unit", "count") => key.unit(Unit::Count),
            ("unit", value) => return Err(refuse(name, value, "bytes or count")),
            _ => key,
        };
    }
    Ok(key)
}

/// `?full` alone says yes, as it would in a command line.
fn truth(name: &str, value: &str) -> Result<bool, ApiError> {
    if value.is_empty() {
        return Ok(true);
    }
    truth::parse(value).ok_or_else(|| refuse(name, value, truth::ALLOWED))
}

fn measure(value: &str) -> Result<Measure, ApiError> {
    Ok(match value {
        "live" => Measure::Live,
        "high-water" => Measure::HighWater,
        "allocated" => Measure::Allocated,
        "temporary" => Measure::Temporary,
        _ => {
            let allowed = "live, high-water, allocated or temporary";
            return Err(refuse("measure", value, allowed));
        }
    })
}

fn format(value: &str) -> Result<OutputKind, ApiError> {
    match value.parse() {
        // Ours has every event where that has only sums.
        Ok(Format::Memray) => Ok(OutputKind::Report),
        Ok(format) => Ok(OutputKind::File(format)),
        Err(_) => {
            let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
            Err(refuse("format", value, &names.join(", ")))
        }
    }
}

fn refuse(name: &str, value: &str, allowed: &str) -> ApiError {
    ApiError::BadRequest(format!("{name} is {value:?}, but must be {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::{ApiError, Format, Measure, OutputKey, OutputKind, ThreadMode, Unit, Version};

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
            ("version=13&x=y&_=1", REPORT),
            ("format=memray", REPORT),
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
            "version=1%32",
            "measure=leaks",
            "unit=blocks",
            "format=",
            "format=xml",
            "inverted=2",
            "full-names=2",
        ] {
            assert!(read(query).is_err(), "{query:?}");
        }
    }
}
