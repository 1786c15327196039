//! The page: one HTML file that shows a report, opens from disk and asks the network for nothing.
//!
//! A [`Page`] writes the template with its style and scripts (`report/page/`), and the report as one block of compressed
//! columns (`payload`). Names from the profiled process are hostile input: they are only inside that block, as base64, and
//! the scripts put them on the page as text.

mod assets;
mod contexts;
mod excerpts;
mod generations;
mod head;
mod html;
mod known;
mod payload;
mod ranking;
mod rows;
pub mod shared;
mod used;
mod varint;

use std::io::{self, Write};

pub use self::excerpts::{SourceFiles, SourceServer};
use self::ranking::Ranking;
use crate::Report;
use crate::views::{Intervals, with_both_names};

/// Content of a page.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The report that it shows.
    pub report: &'a Report,
    /// Times at which its blocks were allocated and freed, if an event log has them, for a view of any time range. Without
    /// them the page uses the report's own [`Survivors`](crate::model::Survivors), and says so.
    pub intervals: Option<&'a Intervals>,
    /// Set if there is an event log. If there are no intervals, the page says how to get them, or why there are none.
    pub has_log: bool,
    /// Where the service's own source files are, if their lines are to be shown. The report says which files those are, so
    /// they must not be set for a report of a stranger's.
    pub sources: Option<SourceFiles<'a>>,
}

impl<'a> Page<'a> {
    /// Makes the page of an aggregated `report`, without intervals.
    #[must_use]
    pub fn of(report: &'a Report) -> Page<'a> {
        Page {
            report,
            intervals: None,
            has_log: false,
            sources: None,
        }
    }

    /// Writes the page to `out`: one HTML file that needs nothing else.
    ///
    /// It has the plain and the full names of functions, as far as the report has them, and a switch between them.
    ///
    /// It is streamed: besides the report, memory is needed only for the call tree and for data about call sites, and before
    /// that for the ranking of leaks: about 20 MB for a call tree of 100,000 nodes. Equal reports and sources give equal
    /// pages, byte for byte.
    ///
    /// # Errors
    ///
    /// Only those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_opened_at("", out)
    }

    /// Does what [`write`](Page::write) does, for a page that opens as if `hash` stood after the `#` of its address:
    /// `view=peak&order=leaf`. Parts that the page does not understand have their defaults.
    ///
    /// # Errors
    ///
    /// Only those of `out`.
    pub fn write_opened_at(&self, hash: &str, out: &mut impl Write) -> io::Result<()> {
        // Before the page's own tables are made: the judgement needs memory of its own for a moment.
        let ranking = Ranking::of(self.report);
        let both = with_both_names(self.report);
        let page = Page {
            report: both.as_ref().unwrap_or(self.report),
            ..*self
        };
        html::write(&page, &ranking, hash, out)
    }
}

/// Writes the page of `report` to `out`, without intervals: see [`Page::write`].
///
/// # Errors
///
/// Only those of `out`.
pub fn flamegraph(report: &Report, out: &mut impl Write) -> io::Result<()> {
    Page::of(report).write(out)
}
