//! The format that a client wants for a report, or for statistics (RFC 9110, section 12.5.1).

use axum::http::{HeaderMap, header};
use heapray_report::formats::Format;

use crate::profiler::store::OutputKind;

/// Media types that name a format. `text/html` is not one of them: a browser that follows a link to a report sends it.
const NAMED: [(&str, OutputKind); 7] = [
    ("application/octet-stream", OutputKind::Report),
    ("application/x-protobuf", OutputKind::File(Format::Pprof)),
    (
        "application/vnd.google.protobuf",
        OutputKind::File(Format::Pprof),
    ),
    (
        "application/vnd.speedscope+json",
        OutputKind::File(Format::Speedscope),
    ),
    ("application/json", OutputKind::File(Format::Json)),
    ("text/csv", OutputKind::File(Format::Csv)),
    ("text/plain", OutputKind::File(Format::Collapsed)),
];

/// Returns the output at the path of `kind` that the client likes best. Returns `kind` itself if the client names no type
/// that is known.
pub(super) fn preferred(kind: OutputKind, headers: &HeaderMap) -> OutputKind {
    best(headers, |media| offered(kind, media)).unwrap_or(kind)
}

/// Returns whether the client prefers OpenMetrics to Prometheus's text format 0.0.4, which is the default.
pub(super) fn prefers_openmetrics(headers: &HeaderMap) -> bool {
    let offered = |media: &str| match media.to_ascii_lowercase().as_str() {
        "application/openmetrics-text" => Some(true),
        "text/plain" | "text/*" | "*/*" => Some(false),
        _ => None,
    };
    best(headers, offered).unwrap_or(false)
}

/// Returns what the client likes best of what is `offered` for its media types.
fn best<T>(headers: &HeaderMap, offered: impl Fn(&str) -> Option<T>) -> Option<T> {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let accepted = accepted.filter_map(|value| value.to_str().ok());
    let mut best = None;
    let mut best_weight = 0;
    for range in accepted.flat_map(|list| list.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let weight = parts
            .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
            .map_or(1000, thousandths);
        // The first of equals: clients list their favourite first.
        if let Some(found) = offered(media)
            && weight > best_weight
        {
            (best, best_weight) = (Some(found), weight);
        }
    }
    best
}

/// Returns whether the client prefers plain text to JSON. JSON is the default.
pub(super) fn prefers_text(headers: &HeaderMap) -> bool {
    preferred(OutputKind::StatsJson, headers) == OutputKind::Stats
}

/// Returns the output that `media` means at the path of `kind`.
fn offered(kind: OutputKind, media: &str) -> Option<OutputKind> {
    let is = |name: &str| media.eq_ignore_ascii_case(name);
    if media == "*/*" {
        return Some(kind);
    }
    match kind {
        OutputKind::Report if media == "application/*" => Some(kind),
        OutputKind::Report => named(media),
        OutputKind::Stats | OutputKind::StatsJson if is("application/json") => {
            Some(OutputKind::StatsJson)
        }
        OutputKind::Stats | OutputKind::StatsJson if is("text/plain") || media == "text/*" => {
            Some(OutputKind::Stats)
        }
        _ => None,
    }
}

fn named(media: &str) -> Option<OutputKind> {
    if media.eq_ignore_ascii_case("image/svg+xml") {
        return Some(OutputKind::File(Format::Svg));
    }
    let mut all = NAMED.into_iter();
    all.find(|(name, _)| media.eq_ignore_ascii_case(name))
        .map(|(_, kind)| kind)
}

/// Returns a weight from 0 to 1 in thousandths, and 0 for a text that is not a weight.
fn thousandths(text: &str) -> u32 {
    let weight: f32 = text.parse().unwrap_or(0.0);
    // The cast turns a value that is not a number into 0.
    (weight.clamp(0.0, 1.0) * 1000.0) as u32
}

#[cfg(test)]
mod tests {
    use super::{Format, HeaderMap, OutputKind, header, preferred};
    use axum::http::HeaderValue;

    #[test]
    fn the_client_gets_what_it_likes_best() {
        let file = OutputKind::File;
        for (accept, kind) in [
            ("", OutputKind::Report),
            ("*/*", OutputKind::Report),
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                OutputKind::Report,
            ),
            ("application/octet-stream", OutputKind::Report),
            ("application/json", file(Format::Json)),
            ("Application/JSON", file(Format::Json)),
            ("application/json;q=0.5, text/csv", file(Format::Csv)),
            ("application/json, text/csv", file(Format::Json)),
            ("application/json;q=0, */*;q=0.1", OutputKind::Report),
            (
                "text/plain;charset=utf-8;q=0.9, application/json;q=0.8",
                file(Format::Collapsed),
            ),
            ("application/x-protobuf", file(Format::Pprof)),
            ("image/png", OutputKind::Report),
            ("application/json;q=nonsense", OutputKind::Report),
            ("application/json;q=NaN", OutputKind::Report),
        ] {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(preferred(OutputKind::Report, &headers), kind, "{accept:?}");
        }
        let none = HeaderMap::new();
        assert_eq!(preferred(OutputKind::Report, &none), OutputKind::Report);
    }

    #[test]
    fn statistics_are_text_or_json_and_a_page_is_a_page() {
        for (kind, accept, expected) in [
            (OutputKind::Stats, "*/*", OutputKind::Stats),
            (OutputKind::Stats, "text/html, */*;q=0.8", OutputKind::Stats),
            (OutputKind::Stats, "application/json", OutputKind::StatsJson),
            (
                OutputKind::Stats,
                "text/plain, application/json;q=0.5",
                OutputKind::Stats,
            ),
            (OutputKind::Stats, "text/csv", OutputKind::Stats),
            (
                OutputKind::Flamegraph,
                "application/json",
                OutputKind::Flamegraph,
            ),
        ] {
            let value = HeaderValue::from_static(accept);
            let headers = HeaderMap::from_iter([(header::ACCEPT, value)]);
            assert_eq!(preferred(kind, &headers), expected, "{accept:?}");
        }
    }
}
