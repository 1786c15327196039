//! Conditional requests (RFC 9110, section 13): has the client got it already, and may a range be served.

use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, header};

/// Headers of a request whose sender has a copy. `Range` and `If-Range` are told of with `Accept-Ranges`: a range that is not
/// there is refused, which no schema can say.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code)] // a description only: what follows reads them
pub(super) struct ConditionParams {
    /// An `ETag`: 304 if nothing has changed.
    #[param(rename = "If-None-Match", required = false)]
    if_none_match: String,
    /// A date: 304 if nothing has changed.
    #[param(rename = "If-Modified-Since", required = false)]
    if_modified_since: String,
}

/// What is known of the output that is asked for.
#[derive(Debug)]
pub(crate) struct Validators<'v> {
    /// Its strong entity tag, quotes included.
    pub(crate) etag: &'v str,
    /// When it last changed.
    pub(crate) modified: SystemTime,
}

impl Validators<'_> {
    /// Whether the client's copy is still good: answer 304. `If-None-Match` beats `If-Modified-Since`.
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

    /// Whether a `Range` header counts: `If-Range` is missing or names exactly this output (section 13.1.5).
    pub(crate) fn range_counts(&self, headers: &HeaderMap) -> bool {
        let Some(condition) = headers.get(header::IF_RANGE) else {
            return true;
        };
        // A date is no strong validator where two outputs can be made within its second; section 8.8.2.2 wants a
        // minute between them. Only the tag counts.
        condition.as_bytes() == self.etag.as_bytes()
    }
}

/// HTTP dates have no fractions: compared with one, a time must have none either.
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
