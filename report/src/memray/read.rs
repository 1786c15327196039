//! Reads a whole capture into a report.

use std::io::Read;

use super::aggregated::Aggregated;
use super::error::ReadError;
use super::events::Events;
use super::extension::{self, Extension};
use super::header::{ALL_ALLOCATIONS, Facts, Header, Version};
use super::ledger::Ledger;
use super::source::{Decoded, Source, Stop, damaged};
use super::tables::Tables;
use crate::model::{Report, Site, StackId};

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
/// length that it merely claims.
///
/// # Errors
/// If the input fails, is no capture, is of another version, or its header is damaged.
pub fn read(input: impl Read) -> Result<Capture, ReadError> {
    let mut source = Source::new(input).map_err(ReadError::Io)?;
    let header = Header::read(&mut source)?;
    let (version, facts) = (header.version, header.facts());
    let (format, (report, problem)) = if header.format == ALL_ALLOCATIONS {
        (Format::AllAllocations, read_all(source, header)?)
    } else {
        (Format::Aggregated, read_aggregated(source, &header)?)
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

/// A report, and why it is not whole if it is not.
type Partial = (Report, Option<String>);

fn read_all<R: Read>(source: Source<R>, header: Header) -> Result<Partial, ReadError> {
    let mut report = Report {
        about: header.about.clone(),
        ..Report::default()
    };
    let mut events = Events::new(source, header);
    let mut ledger = Ledger::default();
    for event in &mut events {
        ledger.enter(&event?);
    }
    let mut problem = events.problem.take();
    ledger.close(&mut report);
    let Events {
        mut source,
        mut tables,
        ..
    } = events;
    let extension = read_extension(&mut source, &tables, &mut problem)?;
    if let Some(extension) = &extension
        && let Some(stacks) = graft(&mut tables, extension, &mut problem)
    {
        tables.give_to(&mut report);
        take_over(&mut report, extension, &stacks);
    } else {
        tables.give_to(&mut report);
    }
    Ok((report, problem))
}

fn read_aggregated<R: Read>(mut source: Source<R>, header: &Header) -> Result<Partial, ReadError> {
    let mut report = Report {
        about: header.about.clone(),
        ..Report::default()
    };
    let mut body = Aggregated::new(header);
    let mut problem = body.read(&mut source).map_err(ReadError::Io)?;
    let Aggregated {
        mut tables,
        sites,
        timeline,
        ..
    } = body;
    report.timeline = timeline;
    for site in &sites {
        report.totals.high_water += site.high_water;
        report.totals.live += site.live;
    }
    report.sites = sites;
    let extension = read_extension(&mut source, &tables, &mut problem)?;
    if let Some(extension) = &extension {
        // Rows that share a stack were given root frames for memray; the extension's call tree has none.
        let rows_tree = tables.forget_stacks();
        match graft(&mut tables, extension, &mut problem) {
            Some(stacks) => {
                tables.frames.truncate(header.n_frames as usize);
                tables.give_to(&mut report);
                take_over(&mut report, extension, &stacks);
                return Ok((report, problem));
            }
            None => tables.stacks = rows_tree,
        }
    }
    tables.give_to(&mut report);
    Ok((report, problem))
}

/// The extension behind the end mark, if heapray wrote the capture and it is whole.
fn read_extension<R: Read>(
    source: &mut Source<R>,
    tables: &Tables,
    problem: &mut Option<String>,
) -> Result<Option<Extension>, ReadError> {
    if !tables.ours || problem.is_some() {
        return Ok(None);
    }
    let at = source.position();
    match extension::read(source) {
        Ok(extension) => return Ok(extension),
        Err(Stop::Io(error)) => return Err(ReadError::Io(error)),
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

/// Adds the extension's call stacks to the tables: the handles of its stacks, by their numbers there.
fn graft(
    tables: &mut Tables,
    extension: &Extension,
    problem: &mut Option<String>,
) -> Option<Vec<StackId>> {
    let grafted = try_graft(tables, extension);
    match grafted {
        Ok(stacks) => Some(stacks),
        Err(Stop::Damaged(what)) => {
            *problem = Some(damage(0, &what));
            None
        }
        Err(_) => None,
    }
}

fn try_graft(tables: &mut Tables, extension: &Extension) -> Decoded<Vec<StackId>> {
    if extension.threads.len() != tables.threads.len() {
        return damaged("it has other threads than the capture");
    }
    let mut stacks = vec![StackId::EMPTY];
    for node in &extension.stacks {
        let frame = tables.frame(node.code, 0);
        // Parents come first: the extension's reader has checked it.
        stacks.push(tables.child(stacks[node.parent as usize], frame)?);
    }
    for (thread, entry) in tables.threads.iter_mut().zip(&extension.threads) {
        thread.tid = entry.tid;
        thread.threads = entry.threads;
        thread.name = tables.strings.intern(&entry.name);
    }
    Ok(stacks)
}

/// Takes everything from the extension that it says better than memray's records.
fn take_over(report: &mut Report, extension: &Extension, stacks: &[StackId]) {
    report.about = extension.about.clone();
    report.sites = extension
        .sites
        .iter()
        .map(|site| Site {
            stack: stacks[site.stack.0 as usize],
            ..*site
        })
        .collect();
    report.timeline.clone_from(&extension.timeline);
    report.totals.clone_from(&extension.totals);
    report.conditions.clone_from(&extension.conditions);
    report.marks.clone_from(&extension.marks);
    report.survivors.clone_from(&extension.survivors);
    report.process_memory.clone_from(&extension.process_memory);
}
