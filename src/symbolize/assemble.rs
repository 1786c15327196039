//! From a snapshot to a report: everything but the knowledge of symbols.

use std::collections::HashMap;

use heapray_report::Report;
use heapray_report::model::{
    Allocator, Conditions, Overhead, Site, StackId, Survivor, Survivors, Tally, ThreadId, Totals,
};

use super::about;
use super::known::Known;
use super::lookup::Lookup;
use super::notes;
use super::options::ReportOptions;
use super::places::Places;
use super::resolver::ElfLookup;
use super::stacks::{self, Tree};
use super::threads::Threads;
use super::wanted::Wanted;
use crate::capture::event::NodeId;
use crate::collector::snapshot::{RawSite, Snapshot};

/// A report, and the way from the snapshot's numbers to its handles (for the event log, which speaks in
/// the former).
#[derive(Debug, Default)]
pub struct Resolved {
    /// The report.
    pub report: Report,
    stacks: Vec<StackId>,
    threads: Threads,
}

impl Resolved {
    /// The report's call stack of the snapshot's `node`, trimmed as the sites are; the empty stack for a node
    /// that the snapshot does not have.
    #[must_use]
    pub fn stack_of(&self, node: NodeId) -> StackId {
        let stack = self.stacks.get(node.0 as usize);
        stack.copied().unwrap_or_default()
    }

    /// The report's thread of the snapshot's thread `number`; the first one for a number that the snapshot
    /// does not have.
    #[must_use]
    pub fn thread_of(&self, number: u32) -> ThreadId {
        self.threads.id(number)
    }
}

/// Makes the report of `snapshot`, of this process: finds functions, files and lines of every return address,
/// trims and merges call sites as `options` say.
///
/// Never fails: code without symbols is shown as `module+0xoffset` (what `addr2line -e module` takes), and
/// [`Conditions::notes`] says what was missing. Reads the ELF objects that the snapshot names, anew at each
/// call, and keeps nothing but the report: 20,000 addresses of a program of 81 MB took 0.4 s of CPU time and
/// 19 MB of heap at their height, 13 of them the report's. The caller keeps the calling thread's allocations out of the capture.
#[must_use]
pub fn resolve(snapshot: &Snapshot, options: &ReportOptions) -> Resolved {
    assemble(snapshot, options, &mut ElfLookup::default())
}

/// [`resolve`], as long as the report is wanted: what is looked up later than that has no names.
pub(crate) fn resolve_while(
    wanted: &Wanted,
    snapshot: &Snapshot,
    options: &ReportOptions,
) -> Resolved {
    assemble(
        snapshot,
        options,
        &mut ElfLookup::while_wanted(wanted.clone()),
    )
}

/// [`resolve`] for a snapshot of another process, perhaps long ended: its modules' files are looked for where they were.
/// Whose report it is stays to be said: [`About`](heapray_report::model::About) has this process's number and arguments.
pub(crate) fn resolve_elsewhere(snapshot: &Snapshot, options: &ReportOptions) -> Resolved {
    assemble(
        snapshot,
        options,
        &mut ElfLookup::elsewhere(snapshot.started),
    )
}

/// [`resolve`] for small snapshots that are taken one after the other: what was looked up before is `known`.
#[must_use]
pub fn resolve_again(snapshot: &Snapshot, options: &ReportOptions, known: &mut Known) -> Resolved {
    assemble(snapshot, options, known)
}

/// [`resolve`] with symbols from `lookup`.
pub(super) fn assemble(
    snapshot: &Snapshot,
    options: &ReportOptions,
    lookup: &mut dyn Lookup,
) -> Resolved {
    let places = Places::find(&snapshot.nodes, &snapshot.modules, options.names, lookup);
    let Tree {
        mut strings,
        frames,
        full_names,
        places: places_of_frames,
        stacks,
        of_node,
    } = stacks::build(&snapshot.nodes, &places, options.full);
    let threads = Threads::of(snapshot, options.threads, &mut strings);
    let mut notes = snapshot.notes.clone();
    notes.extend(notes::about_program(&places.main));
    notes.extend(lookup.notes());
    let about = about::describe(snapshot, &places.table);
    drop(places);

    let mut resolved = Resolved {
        report: Report {
            about,
            strings,
            frames,
            full_names,
            places: places_of_frames,
            modules: snapshot.modules.iter().map(about::module).collect(),
            stacks,
            threads: threads.list.clone(),
            sites: Vec::new(),
            timeline: snapshot.timeline.clone(),
            marks: snapshot.marks.iter().map(about::mark).collect(),
            survivors: Survivors::default(),
            process_memory: snapshot.process_memory.clone(),
            totals: totals(snapshot),
            conditions: conditions(snapshot, notes),
        },
        stacks: of_node,
        threads,
    };
    let (sites, site_of) = merged_sites(&snapshot.sites, &resolved);
    resolved.report.sites = sites;
    resolved.report.survivors = merged_survivors(&snapshot.survivors, &site_of);
    resolved
}

/// The sites with the report's handles. Those that became equal by trimming, or whose threads are one entry,
/// are added up. Also the place that each of `raw` has among them.
fn merged_sites(raw: &[RawSite], resolved: &Resolved) -> (Vec<Site>, Vec<Option<u32>>) {
    let mut sites: Vec<Site> = Vec::new();
    let mut site_of = vec![None; raw.len()];
    let mut index = HashMap::new();
    for (raw, site_of) in raw.iter().zip(&mut site_of) {
        // Sites are of allocations only.
        let Some(allocator) = Allocator::from_id(raw.kind as u8) else {
            continue;
        };
        let site = Site {
            thread: resolved.thread_of(raw.thread),
            stack: resolved.stack_of(raw.node),
            allocator,
            allocated: raw.allocated,
            high_water: raw.high_water,
            live: raw.live,
            temporary: raw.temporary,
            oldest_live_ms: raw.oldest_live_ms,
        };
        let at = *index
            .entry((site.thread, site.stack, allocator))
            .or_insert(sites.len());
        *site_of = u32::try_from(at).ok();
        match sites.get_mut(at) {
            Some(same) => same.add(&site),
            None => sites.push(site),
        }
    }
    (sites, site_of)
}

/// The survivors with the report's sites.
fn merged_survivors(raw: &Survivors, site_of: &[Option<u32>]) -> Survivors {
    let known = raw.list.iter().filter_map(|survivor| {
        let site = (*site_of.get(survivor.site as usize)?)?;
        Some(Survivor { site, ..*survivor })
    });
    let mut list: Vec<Survivor> = known.collect();
    list.sort_by_key(|survivor| (survivor.site, survivor.generation));
    list.dedup_by(|later, first| {
        let same = (later.site, later.generation) == (first.site, first.generation);
        if same {
            first.live += later.live;
        }
        same
    });
    Survivors {
        starts_ms: raw.starts_ms.clone(),
        list,
    }
}

fn totals(snapshot: &Snapshot) -> Totals {
    let raw = &snapshot.totals;
    let by_allocator = Allocator::ALL.into_iter().filter_map(|allocator| {
        let mut sum = Tally::default();
        for site in &snapshot.sites {
            if site.kind as u8 == allocator.id() {
                sum += site.allocated;
            }
        }
        (sum.count > 0).then_some((allocator, sum))
    });
    Totals {
        allocated: raw.allocated,
        freed: raw.freed,
        live: raw.live,
        high_water: raw.high_water,
        high_water_ms: Some(raw.high_water_ms),
        sizes: raw.sizes.clone(),
        sizes_rounded: raw.sizes_rounded,
        by_allocator: by_allocator.collect(),
    }
}

fn conditions(snapshot: &Snapshot, notes: Vec<String>) -> Conditions {
    Conditions {
        still_recording: snapshot.still_recording,
        hooks: snapshot.hooks.to_owned(),
        lost_events: snapshot.lost_events,
        lost_since_ms: snapshot.lost_since_ms,
        stacks_cut: snapshot.stacks_cut,
        stacks_incomplete: snapshot.stacks_incomplete,
        unknown_frees: snapshot.totals.unknown_frees,
        log_given_up: snapshot.log_given_up.clone(),
        notes,
        overhead: Overhead {
            memory_bytes: snapshot.own_bytes,
            collector_cpu_ns: snapshot.collector_cpu_ns,
            log_bytes: snapshot.log.as_ref().map_or(0, |log| log.bytes),
        },
        sampling: snapshot.sampling.clone(),
    }
}
