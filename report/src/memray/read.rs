//! Reads a whole capture into a report.

use std::io::{Read, Seek};

use super::aggregated::Aggregated;
use super::error::ReadError;
use super::events::Events;
use super::extension::{self, Extension};
use super::graft::{Grafted, graft};
use super::header::{ALL_ALLOCATIONS, Facts, Header, Version};
use super::ledger::Ledger;
use super::limit::{Budget, MemoryLimit};
use super::shortcut::Shortcut;
use super::source::{Source, Stop};
use super::tables::Tables;
use crate::model::Report;

/// The two kinds of capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Every event, in order: [`events`](super::events) gives them.
    AllAllocations,
    /// Sums by call stack only; what was allocated and freed again is not in it.
    Aggregated,
}

/// A capture that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// What it says.
    pub report: Report,
    /// Which kind it is.
    pub format: Format,
    /// Its format version.
    pub version: Version,
    /// What else its header says.
    pub facts: Facts,
    /// Whether all of it could be read; if not, the last of the report's notes says why.
    pub complete: bool,
}

/// Reads a capture of either kind, version 12 or 13, packed or not, written by heapray or by memray.
///
/// What heapray wrote comes back whole. From memray's own files, an all-allocations capture gives every sum by
/// memray's rules; an aggregated one has only the high-water mark and what is live. Native frames keep their
/// addresses as names. A capture that is cut short or damaged behind its header gives what comes before, as in
/// memray, and a note in the report's conditions.
///
/// Memory grows with what the capture holds (call stacks, live blocks), not with the number of events, nor with any
/// length that it merely claims, and not beyond [`MemoryLimit`].
///
/// # Errors
/// If the input fails, is not a capture, is of another version, its header is damaged, or it holds more than fits into the
/// default [`MemoryLimit`].
pub fn read(input: impl Read) -> Result<Capture, ReadError> {
    read_within(input, MemoryLimit::default())
}

/// Reads a capture as [`read`] does, within `limit`.
///
/// # Errors
/// As [`read`].
pub fn read_within(input: impl Read, limit: MemoryLimit) -> Result<Capture, ReadError> {
    let mut source = Source::new(input).map_err(ReadError::Io)?;
    let mut budget = Budget::new(limit);
    let header = Header::read(&mut source, &mut budget)?;
    let (version, facts) = (header.version, header.facts());
    let (format, (report, problem)) = if header.format == ALL_ALLOCATIONS {
        (Format::AllAllocations, read_all(source, header, budget)?)
    } else {
        (
            Format::Aggregated,
            read_aggregated(source, &header, budget)?,
        )
    };
    let mut capture = Capture {
        report,
        format,
        version,
        facts,
        complete: problem.is_none(),
    };
    capture.report.conditions.notes.extend(problem);
    Ok(capture)
}

/// Reads a capture as [`read`] does, from the start of an input that can seek: of one that heapray wrote, only what is
/// defined at its front and the sums at its end, not the events between them. With millions of events that is a
/// hundred times as fast.
///
/// The report is the same but for the numbers of its call stacks: [`events_of_file`](super::events_of_file) gives
/// events that fit. Damage among the events goes unnoticed here; they say so.
///
/// # Errors
/// As [`read`], and if the input cannot be set to its start.
pub fn read_file<R: Read + Seek>(input: R) -> Result<Capture, ReadError> {
    read_file_within(input, MemoryLimit::default())
}

/// Reads a capture as [`read_file`] does, within `limit`.
///
/// # Errors
/// As [`read_file`].
pub fn read_file_within<R: Read + Seek>(
    mut input: R,
    limit: MemoryLimit,
) -> Result<Capture, ReadError> {
    if let Some(shortcut) = Shortcut::take(&mut input, limit) {
        return Ok(shortcut.into_capture());
    }
    input.rewind().map_err(ReadError::Io)?;
    read_within(input, limit)
}

/// A report, and why it is not whole if it is not.
type Partial = (Report, Option<String>);

fn read_all<R: Read>(
    source: Source<R>,
    header: Header,
    budget: Budget,
) -> Result<Partial, ReadError> {
    let mut report = Report {
        about: header.about.clone(),
        ..Report::default()
    };
    let mut events = Events::new(source, header, budget);
    let mut ledger = Ledger::default();
    events.drain(&mut ledger)?;
    let mut problem = events.problem.take();
    ledger.close(&mut report);
    // memray writes the end when it gets there: that of a process that was killed is where it began.
    if problem.is_some()
        && let Some(last) = report.timeline.last()
    {
        let seen = report.about.start_ms.saturating_add_unsigned(last.at_ms);
        report.about.end_ms = report.about.end_ms.max(seen);
    }
    let Events {
        mut source,
        mut tables,
        ..
    } = events;
    let extension = read_extension(&mut source, &mut tables, &mut problem)?;
    let grafted = match extension {
        Some(extension) => try_graft(&mut tables, extension, &mut problem)?,
        None => None,
    };
    tables.give_to(&mut report);
    if let Some(grafted) = grafted {
        grafted.give_to(&mut report);
    }
    Ok((report, problem))
}

fn read_aggregated<R: Read>(
    mut source: Source<R>,
    header: &Header,
    budget: Budget,
) -> Result<Partial, ReadError> {
    let mut report = Report {
        about: header.about.clone(),
        ..Report::default()
    };
    let mut body = Aggregated::new(header, budget);
    let mut problem = body.read(&mut source)?;
    let Aggregated {
        mut tables,
        sites,
        timeline,
        ..
    } = body;
    report.timeline = timeline.into_moments();
    for site in &sites {
        report.totals.high_water += site.high_water;
        report.totals.live += site.live;
    }
    report.sites = sites;
    let extension = read_extension(&mut source, &mut tables, &mut problem)?;
    if let Some(extension) = extension {
        // Rows that share a stack were given root frames for memray; the extension's call tree has none.
        let rows_tree = tables.forget_stacks();
        match try_graft(&mut tables, extension, &mut problem)? {
            Some(grafted) => {
                forget_roots(&mut tables, header);
                tables.give_to(&mut report);
                grafted.give_to(&mut report);
                return Ok((report, problem));
            }
            None => tables.stacks = rows_tree,
        }
    }
    tables.give_to(&mut report);
    Ok((report, problem))
}

/// Drops the frames that are there for memray alone: those that the call tree does not need, if the header tells the
/// truth.
pub(super) fn forget_roots(tables: &mut Tables, header: &Header) {
    let frames = tables.stacks.iter().map(|(_, node)| node.frame.0 as usize);
    let in_use = frames.max().map_or(0, |last| last + 1);
    tables.frames.truncate(in_use.max(header.n_frames as usize));
}

/// The extension behind the end mark, if heapray wrote the capture and it is whole.
fn read_extension<R: Read>(
    source: &mut Source<R>,
    tables: &mut Tables,
    problem: &mut Option<String>,
) -> Result<Option<Extension>, ReadError> {
    if !tables.ours || problem.is_some() {
        return Ok(None);
    }
    let at = source.position();
    match extension::read(source, &mut tables.budget) {
        Ok(extension) => return Ok(extension),
        Err(Stop::Io(error)) => return Err(ReadError::Io(error)),
        Err(Stop::TooLarge(error)) => return Err(error.into()),
        Err(Stop::Cut) => {
            *problem = Some(format!(
                "what heapray adds to the capture at byte {at} is cut short and ignored"
            ));
        }
        Err(Stop::Damaged(what)) => *problem = Some(damage(at, &what)),
    }
    Ok(None)
}

fn damage(at: u64, what: &str) -> String {
    format!("what heapray adds to the capture at byte {at} is damaged and ignored: {what}")
}

/// The extension in the tables' numbers; if it does not fit them, `problem` says so.
fn try_graft(
    tables: &mut Tables,
    extension: Extension,
    problem: &mut Option<String>,
) -> Result<Option<Grafted>, ReadError> {
    match graft(tables, extension) {
        Ok(grafted) => return Ok(Some(grafted)),
        Err(Stop::Damaged(what)) => *problem = Some(damage(0, &what)),
        Err(Stop::TooLarge(error)) => return Err(error.into()),
        // Nothing is read here.
        Err(Stop::Io(_) | Stop::Cut) => {}
    }
    Ok(None)
}
