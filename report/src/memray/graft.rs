//! Replaces the data of memray's records by heapray's more exact data.

use super::extension::{Extension, ThreadEntry};
use super::source::{Decoded, damaged};
use super::tables::Tables;
use crate::model::{FrameId, Place, Report, StackId, StrId};

/// Extension whose numbers of stacks and frames are those of the capture's tables.
#[derive(Debug)]
pub(super) struct Grafted {
    extension: Extension,
    /// Code addresses by frame.
    places: Vec<(FrameId, Place)>,
    /// Full names by frame.
    full_names: Vec<(FrameId, StrId)>,
}

/// Adds the extension's call stacks and names of threads to the tables.
pub(super) fn graft(tables: &mut Tables, mut extension: Extension) -> Decoded<Grafted> {
    if extension.threads.len() != tables.threads.len() {
        return damaged("it has other threads than the capture");
    }
    let mut stacks = vec![StackId::EMPTY];
    for node in std::mem::take(&mut extension.stacks) {
        let frame = tables.frame(u64::from(node.code), 0)?;
        // Parents come first: the extension's reader has checked that, and the sites' stacks.
        stacks.push(tables.child(stacks[node.parent as usize], frame)?);
    }
    for site in &mut extension.sites {
        site.stack = stacks[site.stack.0 as usize];
    }
    for (index, entry) in extension.threads.iter().enumerate() {
        let ThreadEntry { tid, threads, name } = entry;
        let name = tables.intern(name)?;
        let thread = &mut tables.threads[index];
        (thread.tid, thread.threads, thread.name) = (*tid, *threads, name);
    }
    let mut places = Vec::with_capacity(extension.places.len());
    for (code, place) in std::mem::take(&mut extension.places) {
        places.push((tables.frame(u64::from(code), 0)?, place));
    }
    let mut full_names = Vec::with_capacity(extension.full_names.len());
    for (code, name) in std::mem::take(&mut extension.full_names) {
        let frame = tables.frame(u64::from(code), 0)?;
        full_names.push((frame, tables.intern(&name)?));
    }
    Ok(Grafted {
        extension,
        places,
        full_names,
    })
}

impl Grafted {
    /// Gives `report`, which has the tables already, all data of the extension that is better than memray's records.
    pub(super) fn give_to(self, report: &mut Report) {
        let Grafted {
            extension,
            places,
            full_names,
        } = self;
        report.about = extension.about;
        report.contexts = extension.contexts;
        report.sites = extension.sites;
        report.timeline = extension.timeline;
        report.totals = extension.totals;
        report.conditions = extension.conditions;
        report.marks = extension.marks;
        report.survivors = extension.survivors;
        report.history = extension.history;
        report.process_memory = extension.process_memory;
        if !full_names.is_empty() {
            report.full_names = report.frames.iter().map(|frame| frame.function).collect();
            for (frame, name) in full_names {
                if let Some(known) = report.full_names.get_mut(frame.0 as usize) {
                    *known = name;
                }
            }
        }
        if !places.is_empty() {
            report.modules = extension.modules;
            report.places = vec![Place::default(); report.frames.len()];
            for (frame, place) in places {
                // An aggregated capture has frames for memray alone, which are gone by now.
                if let Some(known) = report.places.get_mut(frame.0 as usize) {
                    *known = place;
                }
            }
        }
    }
}
