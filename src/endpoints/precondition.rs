//! Conditional requests (RFC 9110, section 13): whether the client has the output already, and whether a range may be
//! served.

use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, header};

/// Entity tag and time of the requested output.
#[derive(Debug)]
pub(crate) struct Validators<'v> {
    /// Strong entity tag of the output, with quotes.
    pub(crate) etag: &'v str,
    /// Time of the last change.
    pub(crate) modified: SystemTime,
}

impl Validators<'_> {
    /// Returns whether the client's copy is up to date, so that the answer is 304. `If-None-Match` beats
    /// `If-Modified-Since`.
    pub(crate) fn not_modified(&self, headers: &HeaderMap) -> bool {
        let mut tags = headers.get_all(header::IF_NONE_MATCH).iter().peekable();
        if tags.peek().is_some() {
            // Weak comparison (section 13.1.2): a `W/` before the tag does not matter.
            return tags
                .filter_map(|value| value.to_str().ok())
                .flat_map(|list| list.split(','))
                .map(|tag| tag.trim())
                .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.etag);
        }
        let since = headers.get(header::IF_MODIFIED_SINCE);
        let since = since.and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
        since.is_some_and(|since| whole_seconds(self.modified) <= since)
    }

    /// Returns whether a `Range` header counts: `If-Range` is missing or names exactly this output (section 13.1.5).
    pub(crate) fn range_counts(&self, headers: &HeaderMap) -> bool {
        let Some(condition) = headers.get(header::IF_RANGE) else {
            return true;
        };
        // A date is not a strong validator if two outputs can be made in the same second; section 8.8.2.2 demands a minute
        // between them. So only the tag counts.
        condition.as_bytes() == self.etag.as_bytes()
    }
}

/// Returns `at` in whole seconds. HTTP dates have no fractions, so a time that is compared with one must have none either.
fn whole_seconds(at: SystemTime) -> SystemTime {
    let since = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::Validators;
    use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
    use std::time::{Duration, UNIX_EPOCH};

    fn with(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    fn validators() -> Validators<'static> {
        Validators {
            etag: "\"ab\"",
            modified: UNIX_EPOCH + Duration::from_millis(1_795_252_380_900),
        }
    }

    #[test]
    fn a_known_tag_means_not_modified() {
        for (tags, not_modified) in [
            ("\"ab\"", true),
            ("W/\"ab\"", true),
            ("\"x\", \"ab\"", true),
            ("*", true),
            ("\"x\"", false),
            ("ab", false),
        ] {
            let headers = with(header::IF_NONE_MATCH, tags);
            assert_eq!(validators().not_modified(&headers), not_modified, "{tags}");
        }
        assert!(!validators().not_modified(&HeaderMap::new()));
    }

    #[test]
    fn a_date_counts_only_where_no_tag_is_given() {
        for (date, not_modified) in [
            ("Sat, 21 Nov 2026 09:13:00 GMT", true),
            ("Sat, 21 Nov 2026 09:13:01 GMT", true),
            ("Sat, 21 Nov 2026 09:12:59 GMT", false),
            ("yesterday", false),
        ] {
            let mut headers = with(header::IF_MODIFIED_SINCE, date);
            assert_eq!(validators().not_modified(&headers), not_modified, "{date}");
            headers.extend(with(header::IF_NONE_MATCH, "\"x\""));
            assert!(!validators().not_modified(&headers));
        }
    }

    #[test]
    fn a_range_counts_only_for_exactly_this_output() {
        assert!(validators().range_counts(&HeaderMap::new()));
        for (condition, counts) in [
            ("\"ab\"", true),
            ("W/\"ab\"", false),
            ("\"x\"", false),
            ("Sat, 21 Nov 2026 09:13:00 GMT", false),
        ] {
            let headers = with(header::IF_RANGE, condition);
            assert_eq!(validators().range_counts(&headers), counts, "{condition}");
        }
    }
}
