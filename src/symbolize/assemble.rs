//! Makes the whole report of a session from its snapshot: the call stacks with symbols, and the data that needs no symbols.

use heapray_report::Report;
use heapray_report::model::{Allocator, Conditions, Overhead, Tally, Totals};

use super::about;
use super::helped::HelpedLookup;
use super::known::Known;
use super::lookup::Lookup;
use super::options::ReportOptions;
use super::resolve::{Resolved, with_sites};
use super::resolver::ElfLookup;
use super::wanted::Wanted;
use crate::collector::Process;
use crate::collector::snapshot::Snapshot;
use crate::os::command_line;

/// Returns the whole report of a session of this process. [`resolve`](super::resolve()) makes its call stacks, and states
/// the cost.
#[must_use]
pub fn report(snapshot: &Snapshot, options: &ReportOptions) -> Resolved {
    assemble(snapshot, options, &mut HelpedLookup::default())
}

/// Makes a report like [`report`] while it is wanted. Addresses that are looked up later have no names.
pub(crate) fn report_while(
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

/// Makes a report like [`report`], without names: `signal` has ended the helper process that looked them up.
pub(crate) fn report_without_names(
    snapshot: &Snapshot,
    options: &ReportOptions,
    signal: i32,
) -> Resolved {
    assemble(snapshot, options, &mut HelpedLookup::killed_by(signal))
}

/// Makes a report like [`report`]. `known` caches the results of earlier calls.
pub(crate) fn report_again(
    snapshot: &Snapshot,
    options: &ReportOptions,
    known: &mut Known,
) -> Resolved {
    assemble(snapshot, options, known)
}

/// Makes a report like [`report`], with symbols from `lookup`.
pub(super) fn assemble(
    snapshot: &Snapshot,
    options: &ReportOptions,
    lookup: &mut dyn Lookup,
) -> Resolved {
    let (mut resolved, site_of) = with_sites(&snapshot.stacks, options, lookup);
    let of_stacks = std::mem::take(&mut resolved.report);
    let process = Process {
        pid: std::process::id(),
        started: snapshot.started,
        command_line: command_line::read(),
    };
    let mut about = about::process(of_stacks.about, process);
    about.end_ms = about::unix_ms(snapshot.taken);
    about.events = snapshot.totals.events;
    let mut notes = snapshot.notes.clone();
    notes.extend(of_stacks.conditions.notes);
    let number = |site: u32| site_of.get(site as usize).copied().flatten();
    resolved.report = Report {
        about,
        timeline: snapshot.timeline.clone(),
        marks: snapshot.marks.iter().map(about::mark).collect(),
        survivors: snapshot.survivors.renumbered(number),
        history: snapshot.history.renumbered(number),
        process_memory: snapshot.process_memory.clone(),
        totals: totals(snapshot),
        conditions: conditions(snapshot, notes),
        ..of_stacks
    };
    resolved.name_memory_without_route();
    resolved
}

fn totals(snapshot: &Snapshot) -> Totals {
    let raw = &snapshot.totals;
    let by_allocator = Allocator::ALL.into_iter().filter_map(|allocator| {
        let mut sum = Tally::default();
        for site in &snapshot.stacks.sites {
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
        hooks: snapshot.hooks.to_string(),
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
