//! Makes a report from a table of call stacks. The symbols come from a [`Lookup`].

use std::collections::HashMap;
use std::time::SystemTime;

use heapray_report::Report;
use heapray_report::model::{
    About, Allocator, Conditions, Context, ContextId, Site, StackId, ThreadId,
};
use heapray_report::sources::Unit;
use heapray_report::views::name_memory_without_route;

use super::about;
use super::helped::HelpedLookup;
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

/// A report, and a map from the numbers of the stack table to the report's handles. The event log uses the numbers of the
/// stack table.
#[derive(Debug, Default)]
pub struct Resolved {
    /// The report.
    pub report: Report,
    stacks: Vec<StackId>,
    threads: Threads,
    /// The context of each call stack where there is none: see [`name_memory_without_route`]. Empty if none has one.
    without_route: Vec<ContextId>,
}

impl Resolved {
    /// Returns the report's call stack of the table's `node`, trimmed in the same way as the sites. Returns the empty stack
    /// for a node that the table does not have.
    #[must_use]
    pub fn stack_of(&self, node: NodeId) -> StackId {
        let stack = self.stacks.get(node.0 as usize);
        stack.copied().unwrap_or_default()
    }

    /// Returns the report's thread of the table's thread `number`. Returns the first thread for a number that the table does
    /// not have.
    #[must_use]
    pub fn thread_of(&self, number: u32) -> ThreadId {
        self.threads.id(number)
    }

    /// Returns the report's context of the table's context `number` of an allocation with the report's `stack`. Returns none
    /// for a number that the table does not have.
    #[must_use]
    pub fn context_of(&self, number: u32, stack: StackId) -> ContextId {
        if number as usize >= self.report.contexts.len() {
            return ContextId::NONE;
        }
        let without = self.without_route.get(stack.0 as usize);
        let without = without.filter(|_| number == 0);
        without.copied().unwrap_or(ContextId(number))
    }

    /// Names the memory of no request in the report.
    pub(crate) fn name_memory_without_route(&mut self) {
        self.without_route = name_memory_without_route(&mut self.report);
    }
}

/// Returns a report of the call stacks of this process. It finds function, file and line of every return address, and trims
/// and merges call sites as `options` say. Fields that only a session can fill stay empty: times, totals, memory.
///
/// Never fails: code without symbols is shown as `module+0xoffset` (the form that `addr2line -e module` takes), and
/// [`Conditions::notes`] says what was missing. Each call has a helper process read the ELF objects of the table again, or
/// reads them itself where there is none, and keeps only the report: 20,000 addresses of a program of 81 MB took 0.4 s of
/// CPU time and at most 19 MB of heap, 13 MB of them for the report. The caller must mark the calling thread as untracked,
/// so that its allocations are not recorded.
#[must_use]
pub fn resolve(table: &StackTable, options: &ReportOptions) -> Resolved {
    with_sites(table, options, &mut HelpedLookup::default()).0
}

/// Resolves like [`resolve`], for small tables in a row. `known` caches the results of earlier calls.
#[must_use]
pub fn resolve_again(table: &StackTable, options: &ReportOptions, known: &mut Known) -> Resolved {
    with_sites(table, options, known).0
}

/// Resolves like [`resolve`], but call stacks of another process, which may have ended. Looks for the files of its modules
/// at their old paths. `started` is the time at which that process started to record.
pub(crate) fn resolve_elsewhere(
    table: &StackTable,
    options: &ReportOptions,
    started: SystemTime,
) -> Resolved {
    with_sites(table, options, &mut ElfLookup::elsewhere(started)).0
}

/// Resolves like [`resolve`], with symbols from `lookup`. Also returns the index of each of the table's sites among the
/// report's sites.
pub(super) fn with_sites(
    table: &StackTable,
    options: &ReportOptions,
    lookup: &mut dyn Lookup,
) -> (Resolved, Vec<Option<u32>>) {
    let places = Places::find(&table.nodes, &table.modules, options, lookup);
    let Tree {
        mut strings,
        frames,
        full_names,
        places: places_of_frames,
        stacks,
        of_node,
    } = stacks::build(&table.nodes, &places, options.full);
    let threads = Threads::of(table, options.threads, &mut strings);
    let program = table.modules.iter().find(|module| module.is_main);
    let program = program.and_then(|module| module.path.file_name());
    let program = program.unwrap_or_default().to_string_lossy();
    let units = lookup.units();
    let about_program = notes::about_program(
        &places.main,
        units.iter().any(Unit::is_program),
        about::symbols(),
    );
    let about = About {
        untrimmed: options.full,
        ..about::code(&places.table, &units, &program)
    };
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
            contexts: contexts(table),
            conditions: Conditions {
                notes: about_program
                    .map(str::to_owned)
                    .into_iter()
                    .chain(lookup.notes())
                    .collect(),
                ..Conditions::default()
            },
            ..Report::default()
        },
        stacks: of_node,
        threads,
        without_route: Vec::new(),
    };
    let (sites, site_of) = merged_sites(&table.sites, &resolved);
    resolved.report.sites = sites;
    (resolved, site_of)
}

fn contexts(table: &StackTable) -> Vec<Context> {
    let all = (0u32..).zip(&table.contexts);
    all.map(|(number, labels)| Context {
        labels: labels.clone(),
        runs: table.runs.get(&number).cloned().unwrap_or_default(),
    })
    .collect()
}

/// Returns the sites with the report's handles, and for each of `raw` its index among them. Sites that became equal by
/// trimming, or whose threads share an entry, are added up.
fn merged_sites(raw: &[RawSite], resolved: &Resolved) -> (Vec<Site>, Vec<Option<u32>>) {
    let mut sites: Vec<Site> = Vec::new();
    let mut site_of = vec![None; raw.len()];
    let mut index = HashMap::new();
    for (raw, site_of) in raw.iter().zip(&mut site_of) {
        // A site belongs to an allocation function, never to a free.
        let Some(allocator) = Allocator::from_id(raw.kind as u8) else {
            continue;
        };
        let site = Site {
            thread: resolved.thread_of(raw.thread),
            stack: resolved.stack_of(raw.node),
            context: ContextId(raw.context),
            allocator,
            allocated: raw.allocated,
            high_water: raw.high_water,
            live: raw.live,
            temporary: raw.temporary,
            oldest_live_ms: raw.oldest_live_ms,
        };
        let at = *index
            .entry((site.thread, site.stack, allocator, site.context))
            .or_insert(sites.len());
        *site_of = u32::try_from(at).ok();
        match sites.get_mut(at) {
            Some(same) => same.add(&site),
            None => sites.push(site),
        }
    }
    (sites, site_of)
}
