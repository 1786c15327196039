//! Points in time as text, and in JSON.

use std::time::{SystemTime, UNIX_EPOCH};

use heapray_report::calendar::date;

/// Returns `2026-11-21T09:13:00.250Z`, precise to the millisecond. A time before 1970 is shown as 1970's beginning.
pub(crate) fn rfc3339(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days.cast_signed());
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}

/// Serializes a time, for serde's `serialize_with`.
pub(crate) fn serialize<S: serde::Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&rfc3339(*at))
}

/// Serializes an optional time, for serde's `serialize_with`.
#[allow(clippy::ref_option)] // serde's `serialize_with` hands it so
pub(crate) fn serialize_option<S: serde::Serializer>(
    at: &Option<SystemTime>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serialize(at, to),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::rfc3339;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn moments_read_as_date_says_them() {
        // Each pair from `date -u -d @N +%FT%T`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800, "2024-02-29T00:00:00.000Z"),
            (1_795_252_380, "2026-11-21T09:13:00.000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
        let with_millis = UNIX_EPOCH + Duration::from_millis(1_250);
        assert_eq!(rfc3339(with_millis), "1970-01-01T00:00:01.250Z");
    }

    #[cfg(feature = "http")]
    #[test]
    fn dates_agree_with_httpdates_for_two_centuries() {
        for day in 0..73_000u64 {
            let at = UNIX_EPOCH + Duration::from_secs(day * 86_400 + day % 86_400);
            let theirs = httpdate::fmt_http_date(at);
            let ours = rfc3339(at);
            assert_eq!(ours[8..10], theirs[5..7], "{ours} {theirs}");
            assert_eq!(ours[..4], theirs[12..16], "{ours} {theirs}");
            assert_eq!(ours[11..19], theirs[17..25], "{ours} {theirs}");
        }
    }
}
