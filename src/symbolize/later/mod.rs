//! Names for a report that lacks them: of a stripped program, or of one that looks up nothing itself.
//!
//! The call tree becomes one of addresses again, and is named and trimmed as that of a session is. Frames that have a line
//! already stay as they are.
//!
//! ```text
//! frames of the report ─┬─ without a line, in a module ──▶ node with the address ──▶ lookup in the files, else its old name
//!                       └─ any other ────────────────────▶ node that stands for the frame ──▶ its old name
//! ```

mod addresses;
mod before;
mod lookup;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heapray_report::Report;
use heapray_report::model::{
    About, ContextId, Event, Place as CodePlace, Site, Sites, StackId, Thread,
};
use heapray_report::sources::Unit;
use heapray_report::views::{forget_memory_without_route, is_offset, name_memory_without_route};

use self::addresses::{Addresses, lacks_line};
pub use self::before::FoundBefore;
use self::lookup::LaterLookup;
use super::lookup::Lookup as _;
use super::options::{NameMode, ReportOptions};
use super::places::Places;
use super::resolver::{FileLookup, Stranger, SymbolFiles};
use super::stacks::{self, Tree};
use super::{about, notes};
use crate::config::SymbolMode;

/// A report with the names that were found.
#[derive(Debug)]
pub struct NamedLater {
    /// The report.
    pub report: Report,
    /// What was found of each module that lacked names.
    pub modules: Vec<FoundNames>,
    /// Files that were given, but are of no module of the report.
    pub strangers: Vec<Stranger>,
    /// The new call stack of each old one.
    stacks: Vec<StackId>,
    /// The contexts with labels that are not given by call stack.
    contexts: usize,
    /// The context of each new call stack where there is none.
    without_route: Vec<ContextId>,
}

/// What was found of the names of a module's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundNames {
    /// Its index in [`Report::modules`].
    pub module: usize,
    /// Addresses that had no line.
    pub addresses: usize,
    /// Those that have a function now.
    pub named: usize,
    /// Those that have a line now.
    pub with_lines: usize,
}

impl NamedLater {
    /// Returns an event of the old report as one of the new.
    #[must_use]
    pub fn event(&self, mut event: Event) -> Event {
        if let Event::Allocation { stack, context, .. } = &mut event {
            *stack = self.stack(*stack);
            if context.0 == 0 || context.0 as usize >= self.contexts {
                let without = self.without_route.get(stack.0 as usize);
                *context = without.copied().unwrap_or(ContextId::NONE);
            }
        }
        event
    }

    fn stack(&self, old: StackId) -> StackId {
        self.stacks.get(old.0 as usize).copied().unwrap_or_default()
    }
}

/// Returns `report`, which was read with [`SameNames::Apart`](heapray_report::memray::SameNames), with the names that `files`
/// have for its code. Those that were found `before` are looked up there first, and new ones are added.
#[must_use]
pub fn name_later(report: &Report, files: &SymbolFiles, before: &mut FoundBefore) -> NamedLater {
    let addresses = Addresses::of(report);
    let mut lookup = LaterLookup {
        report,
        addresses: &addresses,
        files: FileLookup::new(files, started(report)),
        before,
        found: Vec::new(),
        units: BTreeSet::new(),
    };
    let options = ReportOptions {
        full: report.about.untrimmed,
        names: NameMode::Both,
        by_address: true,
        ..ReportOptions::default()
    };
    let places = Places::find(&addresses.nodes, &addresses.modules, &options, &mut lookup);
    let Tree {
        mut strings,
        frames,
        full_names,
        places: places_of_frames,
        stacks,
        of_node,
    } = stacks::build(&addresses.nodes, &places, options.full);
    let units = lookup.units();
    let program = addresses.modules.first();
    let program = program.and_then(|module| module.path.file_name());
    let code = about::code(
        &places.table,
        &units,
        &program.unwrap_or_default().to_string_lossy(),
    );
    let about_program = notes::about_program(
        &places.main,
        units.iter().any(Unit::is_program),
        SymbolMode::Lines,
    );
    let thread = |thread: &Thread| Thread {
        name: strings.intern(report.strings.get(thread.name)),
        ..*thread
    };
    let threads = report.threads.iter().map(thread).collect();
    let is_about_names = |note: &String| notes::is_about_names(note);
    let mut conditions = report.conditions.clone();
    conditions.notes.retain(|note| !is_about_names(note));
    conditions.notes.extend(about_program.map(str::to_owned));
    conditions.notes.extend(lookup.notes());
    let place = |place: &CodePlace| addresses.place(report, *place);
    let mut named = Report {
        about: with_directories(&report.about, code),
        strings,
        frames,
        full_names,
        places: places_of_frames.iter().map(place).collect(),
        modules: report.modules.clone(),
        stacks,
        threads,
        contexts: report.contexts.clone(),
        timeline: report.timeline.clone(),
        marks: report.marks.clone(),
        process_memory: report.process_memory.clone(),
        totals: report.totals.clone(),
        conditions,
        ..Report::default()
    };
    named.sites.clone_from(&report.sites);
    let contexts = forget_memory_without_route(&mut named);
    let stacks: Vec<StackId> = addresses
        .of_stack
        .iter()
        .map(|node| of_node[node.0 as usize])
        .collect();
    let mut sites = Sites::default();
    let numbers: Vec<u32> = std::mem::take(&mut named.sites)
        .into_iter()
        .map(|site| {
            let stack = stacks.get(site.stack.0 as usize).copied();
            sites.add(Site {
                stack: stack.unwrap_or_default(),
                ..site
            })
        })
        .collect();
    named.sites = sites.into_list();
    let number = |site: u32| numbers.get(site as usize).copied();
    named.survivors = report.survivors.renumbered(number);
    named.history = report.history.renumbered(number);
    let without_route = name_memory_without_route(&mut named);
    NamedLater {
        report: named,
        modules: lookup.found,
        strangers: lookup.files.strangers(),
        stacks,
        contexts,
        without_route,
    }
}

/// Returns `about` with the directories of sources in `code` as well.
fn with_directories(about: &About, code: About) -> About {
    let or = |new: String, old: &str| if new.is_empty() { old.to_owned() } else { new };
    let both = |new: Vec<String>, old: &[String]| -> Vec<String> {
        let all: BTreeSet<String> = new.into_iter().chain(old.iter().cloned()).collect();
        all.into_iter().collect()
    };
    About {
        library_dir: or(code.library_dir, &about.library_dir),
        package_dirs: both(code.package_dirs, &about.package_dirs),
        source_dirs: both(code.source_dirs, &about.source_dirs),
        source_root: or(code.source_root, &about.source_root),
        ..about.clone()
    }
}

/// Returns whether `files` have more names for the code of `report` than it has: debug information of a module that has no line
/// at all, or symbols of one that has no function either.
#[must_use]
pub fn can_name_later(report: &Report, files: &SymbolFiles) -> bool {
    let count = report.modules.len();
    let (mut lacks, mut has_lines) = (vec![None; count], vec![false; count]);
    for (&frame, &place) in report.frames.iter().zip(&report.places) {
        let Some(module) = place.module.map(|module| module as usize) else {
            continue;
        };
        if module >= count {
            continue;
        }
        has_lines[module] |= frame.line > 0;
        if lacks_line(frame, place) {
            let function = report.strings.get(frame.function);
            let is_offset = is_offset(function, &report.modules[module].path);
            *lacks[module].get_or_insert(true) &= is_offset;
        }
    }
    let modules = Addresses::of(&Report {
        modules: report.modules.clone(),
        ..Report::default()
    });
    let files = FileLookup::new(files, started(report));
    (0..count).any(|at| match lacks[at] {
        Some(lacks_functions) if !has_lines[at] => {
            let (module, hash) = (&modules.modules[at], &report.modules[at].hash);
            files.offers(module, hash, lacks_functions)
        }
        _ => false,
    })
}

/// Returns when the process of `report` began to record.
fn started(report: &Report) -> SystemTime {
    let since = u64::try_from(report.about.start_ms).unwrap_or(0);
    UNIX_EPOCH + Duration::from_millis(since)
}
