//! Reads a whole capture into a report.

use std::io::{Read, Seek};

use super::aggregated::Aggregated;
use super::error::ReadError;
use super::events::Events;
use super::extension::{self, Extension};
use super::graft::{Grafted, SameNames, graft};
use super::header::{ALL_ALLOCATIONS, Facts, Header, Version};
use super::ledger::Ledger;
use super::limit::{Budget, MemoryLimit};
use super::shortcut::Shortcut;
use super::source::{Source, Stop};
use super::tables::Tables;
use crate::model::Report;

/// Kind of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Every event, in order: [`events`](super::events) gives them.
    AllAllocations,
    /// Sums by call stack only, without the memory that was freed before the end.
    Aggregated,
}

/// Capture that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// The report.
    pub report: Report,
    /// Kind of the capture.
    pub format: Format,
    /// Version of the format.
    pub version: Version,
    /// Further fields of its header.
    pub facts: Facts,
    /// Set if all of it could be read. If not, the last of the report's notes says why.
    pub complete: bool,
}

/// Reads a capture of either kind, version 12 or 13, packed or not, written by heapray or by memray.
///
/// A capture of heapray gives the whole report. An all-allocations capture of memray gives every sum by memray's rules; an
/// aggregated one gives only the high-water mark and the live memory. Native frames have their addresses as names. For a
/// capture that is cut short or damaged after its header, the report has everything before that, as in memray, and a note in
/// its conditions.
///
/// Memory grows with the content of the capture (call stacks, live blocks), not with the number of events, nor with claimed
/// lengths, and not beyond [`MemoryLimit`].
///
/// # Errors
/// The input fails, is not a capture, is of another version, has a damaged header, or needs more memory than the default
/// [`MemoryLimit`].
pub fn read(input: impl Read) -> Result<Capture, ReadError> {
    read_within(input, MemoryLimit::default())
}

/// Does what [`read`] does, within `limit`.
///
/// # Errors
/// The same as of [`read`].
pub fn read_within(input: impl Read, limit: MemoryLimit) -> Result<Capture, ReadError> {
    read_as(input, limit, SameNames::default())
}

/// Does what [`read_within`] does. `same_names` says whether frames of the same names stay apart.
///
/// # Errors
/// The same as of [`read`].
pub fn read_as(
    input: impl Read,
    limit: MemoryLimit,
    same_names: SameNames,
) -> Result<Capture, ReadError> {
    let mut source = Source::new(input).map_err(ReadError::Io)?;
    let mut budget = Budget::new(limit);
    let header = Header::read(&mut source, &mut budget)?;
    let (version, facts) = (header.version, header.facts());
    let (format, (report, problem)) = if header.format == ALL_ALLOCATIONS {
        (
            Format::AllAllocations,
            read_all(source, header, budget, same_names)?,
        )
    } else {
        (
            Format::Aggregated,
            read_aggregated(source, &header, budget, same_names)?,
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

/// Does what [`read`] does, from the start of an input that can seek. In a capture that heapray wrote, it reads only the
/// definitions at the front and the sums at the end, not the events between them. With millions of events that is a hundred
/// times as fast.
///
/// The report is the same except for the numbers of its call stacks: [`events_of_file`](super::events_of_file) returns
/// events that fit. Damage among the events is not noticed here, but when the events are read.
///
/// # Errors
/// The same as of [`read`], and an error if the input cannot be set to its start.
pub fn read_file<R: Read + Seek>(input: R) -> Result<Capture, ReadError> {
    read_file_within(input, MemoryLimit::default())
}

/// Does what [`read_file`] does, within `limit`.
///
/// # Errors
/// The same as of [`read_file`].
pub fn read_file_within<R: Read + Seek>(
    input: R,
    limit: MemoryLimit,
) -> Result<Capture, ReadError> {
    read_file_as(input, limit, SameNames::default())
}

/// Does what [`read_file_within`] does. `same_names` says whether frames of the same names stay apart.
///
/// # Errors
/// The same as of [`read_file`].
pub fn read_file_as<R: Read + Seek>(
    mut input: R,
    limit: MemoryLimit,
    same_names: SameNames,
) -> Result<Capture, ReadError> {
    if let Some(shortcut) = Shortcut::take(&mut input, limit, same_names) {
        return Ok(shortcut.into_capture());
    }
    input.rewind().map_err(ReadError::Io)?;
    read_as(input, limit, same_names)
}

/// Report, and the reason why it is not whole, if it is not.
type Partial = (Report, Option<String>);

fn read_all<R: Read>(
    source: Source<R>,
    header: Header,
    budget: Budget,
    same_names: SameNames,
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
    // memray writes the end time at the end of a capture. If the process was killed, the end time is the start time.
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
        Some(extension) => try_graft(&mut tables, extension, same_names, &mut problem)?,
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
    same_names: SameNames,
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
        // Rows that share a stack have root frames for memray, which the extension's call tree does not have.
        let rows_tree = tables.forget_stacks();
        match try_graft(&mut tables, extension, same_names, &mut problem)? {
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

/// Drops the root frames that only memray needs, if the header is right: those that the call tree does not need.
pub(super) fn forget_roots(tables: &mut Tables, header: &Header) {
    let frames = tables.stacks.iter().map(|(_, node)| node.frame.0 as usize);
    let in_use = frames.max().map_or(0, |last| last + 1);
    tables.frames.truncate(in_use.max(header.n_frames as usize));
}

/// Reads the extension after the end mark, if heapray wrote the capture and the extension is whole.
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
                "heapray's extension of the capture at byte {at} is cut short and ignored"
            ));
        }
        Err(Stop::Damaged(what)) => *problem = Some(damage(at, &what)),
    }
    Ok(None)
}

fn damage(at: u64, what: &str) -> String {
    format!("heapray's extension of the capture at byte {at} is damaged and ignored: {what}")
}

/// Returns the extension in the tables' numbers. If it does not fit them, `problem` says so.
fn try_graft(
    tables: &mut Tables,
    extension: Extension,
    same_names: SameNames,
    problem: &mut Option<String>,
) -> Result<Option<Grafted>, ReadError> {
    match graft(tables, extension, same_names) {
        Ok(grafted) => return Ok(Some(grafted)),
        Err(Stop::Damaged(what)) => *problem = Some(damage(0, &what)),
        Err(Stop::TooLarge(error)) => return Err(error.into()),
        // Grafting reads nothing.
        Err(Stop::Io(_) | Stop::Cut) => {}
    }
    Ok(None)
}
