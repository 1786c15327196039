//! The query parameters of the outputs.

use heapray_report::memray::Version;

use super::error::ApiError;
use crate::config::truth;
use crate::store::OutputKey;
use crate::symbolize::ThreadMode;

/// Reads `?full=`, `?threads=` and `?version=` into `key`. Parameters of other names are left to others.
pub(crate) fn read(key: OutputKey, query: Option<&str>) -> Result<OutputKey, ApiError> {
    let mut key = key;
    for pair in query.unwrap_or("").split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        key = match (name, value) {
            // `?full` alone says yes, as it would in a command line.
            ("full", "") => key.full(true),
            ("full", value) => {
                key.full(truth::parse(value).ok_or_else(|| refuse("full", value, truth::ALLOWED))?)
            }
            ("threads", "each") => key.threads(ThreadMode::Each),
            ("threads", "name") => key.threads(ThreadMode::ByName),
            ("threads", value) => return Err(refuse("threads", value, "name or each")),
            ("version", "12") => key.version(Version::V12),
            ("version", "13") => key.version(Version::V13),
            ("version", value) => return Err(refuse("version", value, "12 or 13")),
            _ => key,
        };
    }
    Ok(key)
}

fn refuse(name: &str, value: &str, allowed: &str) -> ApiError {
    ApiError::BadRequest(format!("{name} is {value:?}, but must be {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::store::{OutputKey, OutputKind};

    const KEY: OutputKey = OutputKey::new(OutputKind::Report);

    fn name(query: &str) -> String {
        read(KEY, Some(query)).unwrap().stored_name()
    }

    #[test]
    fn parameters_choose_how_it_is_made() {
        assert_eq!(read(KEY, None).unwrap(), KEY);
        for (query, stored) in [
            ("", "memray-report.bin"),
            ("full=true", "memray-report.full.bin"),
            ("full=Y", "memray-report.full.bin"),
            ("full", "memray-report.full.bin"),
            ("full=0", "memray-report.bin"),
            ("threads=each", "memray-report.each.bin"),
            ("threads=name", "memray-report.bin"),
            ("version=12", "memray-report.v12.bin"),
            ("version=13&x=y&_=1", "memray-report.bin"),
            (
                "full=1&threads=each&version=12",
                "memray-report.full.each.v12.bin",
            ),
        ] {
            assert_eq!(name(query), stored, "{query:?}");
        }
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
        ] {
            assert!(read(KEY, Some(query)).is_err(), "{query:?}");
        }
    }
}
