//! The lines that a report's description names: the one that holds most, and the one that probably leaks.

use std::borrow::Cow;

use heapray_report::Report;
use heapray_report::model::{FrameId, Tally};
use heapray_report::views::{self, Names, OwnSite};

use crate::profiler::Blocks;
use crate::profiler::store::{Line, ProbableLeak};

/// A line of code, and what of its allocations was not freed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct CallSite {
    /// The function.
    pub function: String,
    /// The source file; where it is not known, the program or library.
    pub file: String,
    /// The line in it; 0 if it is not known.
    pub line: u32,
    /// What is live.
    pub live: Blocks,
}

/// A line of code that probably leaks: it keeps memory for as long as the service works.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct LeakCandidate {
    /// The function.
    pub function: String,
    /// The source file; where it is not known, the program or library.
    pub file: String,
    /// The line in it; 0 if it is not known.
    pub line: u32,
    /// What is live.
    pub live: Blocks,
    /// Growth of the line in bytes an hour, from the time at which it began to grow.
    pub growth_bytes_per_hour: u64,
    /// How sure it is.
    pub confidence: Confidence,
}

/// Confidence that a line leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Confidence {
    /// It may be a coincidence, or too little to matter.
    Low,
    /// A leak, or a collection whose bound is not reached.
    Medium,
    /// Somebody should act.
    High,
}

impl CallSite {
    /// Returns what is still live of `site`; `None` if nothing is, or its line is not known.
    pub(crate) fn of(report: &Report, site: &OwnSite) -> Option<CallSite> {
        let live = site.sums.live;
        let line = line_of(report, site.frame?, live).filter(|_| live.bytes > 0)?;
        Some(line.into())
    }
}

impl From<Line> for CallSite {
    fn from(line: Line) -> CallSite {
        CallSite {
            function: line.function,
            file: line.file,
            line: line.line,
            live: Blocks::of(line.live),
        }
    }
}

impl From<ProbableLeak> for LeakCandidate {
    fn from(leak: ProbableLeak) -> LeakCandidate {
        let ProbableLeak {
            line,
            growth_bytes_per_hour,
            confidence,
        } = leak;
        LeakCandidate {
            function: line.function,
            file: line.file,
            line: line.line,
            live: Blocks::of(line.live),
            growth_bytes_per_hour,
            confidence: match confidence {
                views::Confidence::Low => Confidence::Low,
                views::Confidence::Medium => Confidence::Medium,
                views::Confidence::High => Confidence::High,
            },
        }
    }
}

/// The lines of a report that its description names.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(in crate::profiler) struct Lines {
    /// The line with the most live bytes.
    pub(in crate::profiler) largest: Option<Line>,
    /// The line that most probably leaks.
    pub(in crate::profiler) leak: Option<ProbableLeak>,
}

impl Lines {
    pub(in crate::profiler) fn of(report: &Report) -> Lines {
        let report = &*plainly_named(report);
        let sites = views::own_sites(report, &views::Origins::of(report));
        let largest = sites.first().filter(|site| site.sums.live.bytes > 0);
        Lines {
            largest: largest.and_then(|site| line_of(report, site.frame?, site.sums.live)),
            leak: views::leaks(report)
                .list()
                .iter()
                .find_map(|leak| probable_leak(report, leak)),
        }
    }
}

/// Returns `report` with those frames joined that its plain names cannot tell apart.
pub(in crate::profiler) fn plainly_named(report: &Report) -> Cow<'_, Report> {
    let joined = views::joined(report).map(|joined| joined.report);
    let plain = views::named(joined.as_ref().unwrap_or(report), Names::Plain);
    plain.or(joined).map_or(Cow::Borrowed(report), Cow::Owned)
}

/// Returns the line with the most live bytes, and the one that most probably leaks.
#[cfg(feature = "http")]
pub(crate) fn lines(report: &Report) -> (Option<CallSite>, Option<LeakCandidate>) {
    let Lines { largest, leak } = Lines::of(report);
    (largest.map(CallSite::from), leak.map(LeakCandidate::from))
}

/// Returns `leak` with its names; `None` if its line is not known.
pub(in crate::profiler) fn probable_leak(
    report: &Report,
    leak: &views::Leak,
) -> Option<ProbableLeak> {
    Some(ProbableLeak {
        line: line_of(report, leak.frame, leak.live)?,
        growth_bytes_per_hour: leak.growth_bytes_per_hour,
        confidence: leak.confidence,
    })
}

fn line_of(report: &Report, FrameId(frame): FrameId, live: Tally) -> Option<Line> {
    let frame = report.frames.get(frame as usize)?;
    Some(Line {
        function: report.strings.get(frame.function).to_owned(),
        file: report.strings.get(frame.file).to_owned(),
        line: frame.line,
        live,
    })
}
