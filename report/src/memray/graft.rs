//! Replaces the data of memray's records by heapray's more exact data.

use std::collections::HashMap;

use super::extension::{Extension, ThreadEntry};
use super::limit::in_map;
use super::source::{Decoded, damaged};
use super::tables::Tables;
use crate::model::{Frame, FrameId, Place, Report, Sites, StackId, StrId};

/// What becomes of frames of the same names at different addresses. Only code without lines has such frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SameNames {
    /// They are one frame. The default: this is how reports are shown.
    #[default]
    Joined,
    /// They stay apart, so that the names that are missing can be looked up.
    Apart,
}

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
pub(super) fn graft(
    tables: &mut Tables,
    mut extension: Extension,
    same_names: SameNames,
) -> Decoded<Grafted> {
    if extension.threads.len() != tables.threads.len() {
        return damaged("it has other threads than the capture");
    }
    let mut full_names = Vec::with_capacity(extension.full_names.len());
    for (code, name) in std::mem::take(&mut extension.full_names) {
        full_names.push((code, tables.intern(&name)?));
    }
    let has_joined = same_names == SameNames::Joined && join(tables, &extension, &full_names)?;
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
    let mut named = Vec::with_capacity(full_names.len());
    for (code, name) in full_names {
        named.push((tables.frame(u64::from(code), 0)?, name));
    }
    // A frame that stands for others has its own place.
    places.reverse();
    if has_joined {
        join_sites(&mut extension);
    }
    Ok(Grafted {
        extension,
        places,
        full_names: named,
    })
}

/// Lets code objects without lines that have the same names be one frame. Returns whether there are such.
fn join(tables: &mut Tables, extension: &Extension, full_names: &[(u32, StrId)]) -> Decoded<bool> {
    let full_names: HashMap<u32, StrId> = full_names.iter().copied().collect();
    let mut known: HashMap<(Frame, StrId), FrameId> = HashMap::new();
    let mut has_joined = false;
    for &(code, _) in &extension.places {
        let id = tables.frame(u64::from(code), 0)?;
        let frame = tables.frames[id.0 as usize];
        if frame.line > 0 {
            continue;
        }
        let full_name = full_names.get(&code).copied().unwrap_or(StrId::EMPTY);
        tables.budget.take(in_map::<((Frame, StrId), FrameId)>())?;
        let first = *known.entry((frame, full_name)).or_insert(id);
        if first != id {
            tables.join(code, first)?;
            has_joined = true;
        }
    }
    Ok(has_joined)
}

/// Adds up sites whose call stacks have become the same.
fn join_sites(extension: &mut Extension) {
    let mut sites = Sites::default();
    let list = std::mem::take(&mut extension.sites).into_iter();
    let numbers: Vec<u32> = list.map(|site| sites.add(site)).collect();
    extension.sites = sites.into_list();
    let number = |site: u32| numbers.get(site as usize).copied();
    extension.survivors = extension.survivors.renumbered(number);
    extension.history = extension.history.renumbered(number);
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
