//! The endpoint that a path leads to.

use axum::http::Method;
use heapray_report::formats::Format;

use super::api::BASE;
use crate::nearest::nearest;
use crate::profiler::store::{OutputKind, ReportId};

/// Endpoint behind a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// The live page.
    Page,
    Start,
    Stop,
    Status,
    Mark,
    Ticket,
    Live,
    Metrics,
    Timeline,
    Output(OutputKind),
    Reports,
    Report(ReportId),
    ReportOutput(ReportId, OutputKind),
}

/// The names of endpoints, for people who misspell one.
const NAMES: [&str; 17] = [
    "start",
    "stop",
    "status",
    "mark",
    "ticket",
    "live",
    "metrics",
    "timeline",
    "reports",
    "report",
    "flamegraph",
    "stats",
    "table",
    "tree",
    "summary",
    "pprof",
    "flamegraph.svg",
];

/// Returns a path of each endpoint but the live page.
pub(super) fn examples() -> impl Iterator<Item = String> {
    let of_kept = NAMES.iter().filter(|name| output(name).is_some());
    let of_kept = of_kept.map(|view| format!("{BASE}/reports/1/{view}"));
    NAMES
        .iter()
        .map(|name| format!("{BASE}/{name}"))
        .chain([format!("{BASE}/reports/1")])
        .chain(of_kept)
}

impl Endpoint {
    /// Returns the name of the endpoint that was probably meant with `tail`, which is none.
    pub(super) fn nearest(tail: &str) -> Option<&'static str> {
        // Nobody means a long text, and comparing it would take long.
        let tail = tail.trim_end_matches('/');
        let name = tail.rsplit('/').next().filter(|name| name.len() <= 32)?;
        nearest(&name.to_ascii_lowercase(), NAMES.into_iter(), 2)
    }

    /// Returns the endpoint at `tail`, the path after the base and its slash. A slash at the end does not matter. A report's
    /// number consists of digits only.
    pub(super) fn at(tail: &str) -> Option<Endpoint> {
        if tail.is_empty() {
            return Some(Endpoint::Page);
        }
        let tail = tail.strip_suffix('/').unwrap_or(tail);
        Some(match tail {
            "start" => Endpoint::Start,
            "stop" => Endpoint::Stop,
            "status" => Endpoint::Status,
            "mark" => Endpoint::Mark,
            "ticket" => Endpoint::Ticket,
            "live" => Endpoint::Live,
            "metrics" => Endpoint::Metrics,
            "timeline" => Endpoint::Timeline,
            "reports" => Endpoint::Reports,
            _ => match tail.strip_prefix("reports/") {
                None => Endpoint::Output(output(tail)?),
                Some(rest) => match rest.split_once('/') {
                    None => Endpoint::Report(ReportId::parse(rest)?),
                    Some((id, view)) => Endpoint::ReportOutput(ReportId::parse(id)?, output(view)?),
                },
            },
        })
    }

    /// Returns the methods that this endpoint takes, written as an `Allow` header.
    pub(super) const fn allow(self) -> &'static str {
        match self {
            Endpoint::Start | Endpoint::Stop | Endpoint::Mark | Endpoint::Ticket => "POST, OPTIONS",
            Endpoint::Report(_) => "GET, HEAD, DELETE, OPTIONS",
            _ => "GET, HEAD, OPTIONS",
        }
    }

    /// Returns whether a `GET` costs work: heapray makes an output or reads a file.
    pub(super) const fn is_costly(self) -> bool {
        matches!(
            self,
            Endpoint::Output(_) | Endpoint::ReportOutput(..) | Endpoint::Timeline
        )
    }

    /// Returns whether this endpoint takes `method`.
    pub(super) fn takes(self, method: &Method) -> bool {
        is_allowed(self.allow(), method)
    }
}

/// Returns whether `method` is in `allow`, which is written as an `Allow` header.
pub(super) fn is_allowed(allow: &str, method: &Method) -> bool {
    let mut methods = allow.split(", ");
    methods.any(|allowed| allowed == method.as_str())
}

/// Returns the output that is named `view` in a path.
fn output(view: &str) -> Option<OutputKind> {
    Some(match view {
        "report" => OutputKind::Report,
        "flamegraph" => OutputKind::Flamegraph,
        "stats" => OutputKind::Stats,
        "table" => OutputKind::Table,
        "tree" => OutputKind::Tree,
        "summary" => OutputKind::Summary,
        "pprof" => OutputKind::File(Format::Pprof),
        "flamegraph.svg" => OutputKind::File(Format::Svg),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, Method, NAMES, OutputKind, ReportId};

    #[test]
    fn a_misspelt_endpoint_leads_to_the_one_that_was_meant() {
        for name in NAMES {
            assert!(Endpoint::at(name).is_some(), "{name}");
        }
        for (tail, meant) in [
            ("flamegraf", Some("flamegraph")),
            ("Stats", Some("stats")),
            ("reports/17/tabel", Some("table")),
            ("heap", None),
            ("", None),
        ] {
            assert_eq!(Endpoint::nearest(tail), meant, "{tail}");
        }
    }

    #[test]
    fn a_slash_at_the_end_does_not_matter_but_two_do() {
        let id = ReportId::parse("17").unwrap();
        for (tail, endpoint) in [
            ("", Endpoint::Page),
            ("status", Endpoint::Status),
            ("reports", Endpoint::Reports),
            ("timeline", Endpoint::Timeline),
            ("reports/17", Endpoint::Report(id)),
            (
                "reports/17/stats",
                Endpoint::ReportOutput(id, OutputKind::Stats),
            ),
        ] {
            assert_eq!(Endpoint::at(tail), Some(endpoint));
            if !tail.is_empty() {
                assert_eq!(Endpoint::at(&format!("{tail}/")), Some(endpoint));
                assert_eq!(Endpoint::at(&format!("{tail}//")), None);
            }
        }
    }

    #[test]
    fn a_name_that_is_not_a_number_is_not_a_report() {
        for tail in [
            "/",
            "reports/..",
            "reports/../status",
            "reports/%2e%2e/stats",
            "reports/1%2f..",
            "reports/1/..",
            "reports/1/../2/stats",
            "reports/-1",
            "reports/1/stats/x",
            "reports//stats",
            "reports/1/start",
            "reports/17.bin",
            "Reports",
        ] {
            assert_eq!(Endpoint::at(tail), None, "{tail}");
        }
    }

    #[test]
    fn each_endpoint_takes_what_it_says() {
        for (tail, method, takes) in [
            ("start", Method::POST, true),
            ("start", Method::GET, false),
            ("mark", Method::HEAD, false),
            ("reports", Method::DELETE, false),
            ("reports/1", Method::DELETE, true),
            ("reports/1", Method::POST, false),
            ("live", Method::HEAD, true),
            ("metrics", Method::HEAD, true),
            ("timeline", Method::HEAD, true),
            ("timeline", Method::POST, false),
        ] {
            assert_eq!(
                Endpoint::at(tail).unwrap().takes(&method),
                takes,
                "{method} {tail}"
            );
        }
    }
}
