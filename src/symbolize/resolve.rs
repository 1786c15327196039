//! From a table of call stacks to a report of them: everything but the knowledge of symbols.

use std::collections::HashMap;
use std::time::SystemTime;

use heapray_report::Report;
use heapray_report::model::{Allocator, Conditions, Site, StackId, ThreadId};

use super::about;
use super::known::Known;
use super::lookup::Lookup;
use super::notes;
use super::options::ReportOptions;
use super::places::Places;
use super::resolver::ElfLookup;
use super::stacks::{self, Tree};
use super::threads::Threads;
use crate::capture::event::NodeId;
use crate::collector::snapshot::{RawSite, StackTable};

/// A report, and the way from the numbers of a stack table to the report's handles (for the event log, which speaks in
/// the former).
#[derive(Debug, Default)]
pub struct Resolved {
    /// The report.
    pub report: Report,
    stacks: Vec<StackId>,
    threads: Threads,
}

impl Resolved {
    /// The report's call stack of the table's `node`, trimmed as the sites are; the empty stack for a node
    /// that the table does not have.
    #[must_use]
    pub fn stack_of(&self, node: NodeId) -> StackId {
        let stack = self.stacks.get(node.0 as usize);
        stack.copied().unwrap_or_default()
    }

    /// The report's thread of the table's thread `number`; the first one for a number that the table
    /// does not have.
    #[must_use]
    pub fn thread_of(&self, number: u32) -> ThreadId {
        self.threads.id(number)
    }
}

/// Returns the report of call stacks alone, of this process: finds functions, files and lines of every return address,
/// trims and merges call sites as `options` say. What only a session knows is left empty: times, totals, memory.
///
/// Never fails: code without symbols is shown as `module+0xoffset` (what `addr2line -e module` takes), and
/// [`Conditions::notes`] says what was missing. Reads the ELF objects that the table names, anew at each
/// call, and keeps nothing but the report: 20,000 addresses of a program of 81 MB took 0.4 s of CPU time and
/// 19 MB of heap at their height, 13 of them the report's. The caller keeps the calling thread's allocations out of the capture.
#[must_use]
pub fn resolve(table: &StackTable, options: &ReportOptions) -> Resolved {
    with_sites(table, options, &mut ElfLookup::default()).0
}

/// [`resolve`] for small tables that are taken one after the other: what was looked up before is `known`.
#[must_use]
pub fn resolve_again(table: &StackTable, options: &ReportOptions, known: &mut Known) -> Resolved {
    with_sites(table, options, known).0
}

/// [`resolve`] for call stacks of another process, which `started` then and has perhaps ended: its modules' files are
/// looked for where they were.
pub(crate) fn resolve_elsewhere(
    table: &StackTable,
    options: &ReportOptions,
    started: SystemTime,
) -> Resolved {
    with_sites(table, options, &mut ElfLookup::elsewhere(started)).0
}

/// [`resolve`] with symbols from `lookup`. Also the place that each of the table's sites has among those of the report.
pub(super) fn with_sites(
    table: &StackTable,
    options: &ReportOptions,
    lookup: &mut dyn Lookup,
) -> (Resolved, Vec<Option<u32>>) {
    let places = Places::find(&table.nodes, &table.modules, options.names, lookup);
    let Tree {
        mut strings,
        frames,
        full_names,
        places: places_of_frames,
        stacks,
        of_node,
    } = stacks::build(&table.nodes, &places, options.full);
    let threads = Threads::of(table, options.threads, &mut strings);
    let about_program = notes::about_program(&places.main);
    let about = about::code(&places.table);
    drop(places);

    let mut resolved = Resolved {
        report: Report {
            about,
            strings,
            frames,
            full_names,
            places: places_of_frames,
            modules: table.modules.iter().map(about::module).collect(),
            stacks,
            threads: threads.list.clone(),
            conditions: Conditions {
                notes: about_program.into_iter().chain(lookup.notes()).collect(),
                ..Conditions::default()
            },
            ..Report::default()
        },
        stacks: of_node,
        threads,
    };
    let (sites, site_of) = merged_sites(&table.sites, &resolved);
    resolved.report.sites = sites;
    (resolved, site_of)
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
