//! Names for a report that lacks them: of a stripped program, or of one that looks up nothing itself.
//!
//! The call tree becomes one of addresses again, and is named and trimmed as that of a session is. Frames that have a line
//! already stay as they are.
//!
//! ```text
//! frames of the report ─┬─ without a line, in a module ──▶ node with the address ──▶ lookup in the files, else its old name
//!                       └─ any other ────────────────────▶ node that stands for the frame ──▶ its old name
//! ```

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heapray_report::Report;
use heapray_report::model::{
    About, ContextId, Event, Frame, FrameId, Place as CodePlace, Site, Sites, StackId, Thread,
};
use heapray_report::sources::Unit;
use heapray_report::views::{forget_memory_without_route, is_offset, name_memory_without_route};

use super::lookup::{Found, Lookup, Place};
use super::names::FunctionName;
use super::options::{NameMode, ReportOptions};
use super::places::{MARKS, Places};
use super::resolver::{FileLookup, Stranger, SymbolFiles};
use super::stacks::{self, Tree};
use super::{about, notes};
use crate::capture::event::NodeId;
use crate::collector::snapshot::{Module, ModuleId, RawNode};
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

/// Returns whether code of `report` has no line, and where it is.
fn lacks_line(frame: Frame, place: CodePlace) -> bool {
    let is_code = place.address > RawNode::OTHER && place.address < u64::MAX;
    frame.line == 0 && place.module.is_some() && !place.inlined && is_code
}

/// Returns `report`, which was read with [`SameNames::Apart`](heapray_report::memray::SameNames), with the names that `files`
/// have for its code.
#[must_use]
pub fn name_later(report: &Report, files: &SymbolFiles) -> NamedLater {
    let addresses = Addresses::of(report);
    let mut lookup = LaterLookup {
        report,
        addresses: &addresses,
        files: FileLookup::new(files, started(report)),
        found: Vec::new(),
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

/// A report's call tree as one of addresses.
#[derive(Debug)]
struct Addresses {
    /// The report's modules, and as many again that stand for frames of theirs that stay as they are. The last one stands for
    /// frames of no module.
    modules: Vec<Module>,
    nodes: Vec<RawNode>,
    of_stack: Vec<NodeId>,
    /// The report's frames of each address without a line, outermost first.
    frames: HashMap<Address, Vec<FrameId>>,
}

/// An address without a line, by its module, and the report's frames there, outermost first.
type End = (Address, Vec<FrameId>);
type Address = (usize, u64);

/// The most frames of an address that are kept. Compilers inline less deeply.
const MOST_INLINED: usize = 64;

/// Added to the number of a frame that stands for itself, so that it is larger than the marks.
const FIRST: u64 = RawNode::OTHER + 1;

impl Addresses {
    fn of(report: &Report) -> Addresses {
        let count = report.modules.len();
        let itself = |path: PathBuf| Module {
            path,
            load_bias: 0,
            start: 0,
            end: u64::MAX,
            code: None,
            build_id: Vec::new(),
            is_main: false,
        };
        let looked_up = report.modules.iter().enumerate().map(|(number, module)| {
            let path: PathBuf = (&*module.path).into();
            Module {
                load_bias: module.start.wrapping_sub(module.address),
                start: module.start,
                end: module.limit,
                build_id: bytes(&module.build_id),
                is_main: number == 0,
                ..itself(path)
            }
        });
        let paths = report.modules.iter().map(|module| (&*module.path).into());
        let themselves = paths.chain([PathBuf::new()]).map(itself);
        let modules = looked_up.chain(themselves).collect();

        let mut addresses = Addresses {
            modules,
            nodes: vec![RawNode {
                parent: NodeId(0),
                module: ModuleId::NONE,
                address: 0,
            }],
            of_stack: vec![NodeId(0)],
            frames: HashMap::new(),
        };
        let mut known = HashMap::new();
        // The address without a line that each call stack ends at, if it does, and its frames.
        let mut ends: Vec<Option<End>> = vec![None];
        for (_, node) in report.stacks.iter() {
            let parent = addresses.of_stack[node.parent.0 as usize];
            let at = node.frame.0 as usize;
            let frame = report.frames.get(at).copied().unwrap_or_default();
            let place = report.places.get(at).copied().unwrap_or_default();
            let around = ends[node.parent.0 as usize].as_ref();
            // A frame with a line says only where it was first met.
            let is_here = |((module, address), _): &&End| {
                place.inlined && (place.module, place.address) == (Some(*module as u32), *address)
            };
            if let Some((key, mut frames)) = around.filter(is_here).cloned() {
                if frames.len() < MOST_INLINED {
                    frames.push(node.frame);
                }
                let longest = addresses.frames.entry(key).or_default();
                if frames.len() > longest.len() {
                    longest.clone_from(&frames);
                }
                ends.push(Some((key, frames)));
                addresses.of_stack.push(parent);
                continue;
            }
            let function = report.strings.get(frame.function);
            let mark = MARKS.iter().find(|(_, name)| *name == function);
            let module = place.module.map(|module| module as usize);
            let module = module.filter(|&module| module < count);
            let (module, address) = match (module, mark) {
                (None, Some((mark, _))) => (usize::MAX, *mark),
                (Some(module), _) if lacks_line(frame, place) => (module, place.address + 1),
                // A return address: one more than what is looked up.
                (module, _) => (
                    count + module.unwrap_or(count),
                    FIRST + u64::from(node.frame.0) + 1,
                ),
            };
            let end = (module < count).then(|| ((module, place.address), vec![node.frame]));
            if let Some((key, frames)) = &end {
                addresses
                    .frames
                    .entry(*key)
                    .or_insert_with(|| frames.clone());
            }
            ends.push(end);
            let raw = RawNode {
                parent,
                module: u16::try_from(module).map_or(ModuleId::NONE, ModuleId),
                address,
            };
            let next = NodeId(u32::try_from(addresses.nodes.len()).unwrap_or(u32::MAX));
            let id = *known.entry((parent, module, address)).or_insert(next);
            if id == next {
                addresses.nodes.push(raw);
            }
            addresses.of_stack.push(id);
        }
        addresses
    }

    /// Returns the number of the report's modules.
    fn looked_up(&self) -> usize {
        self.modules.len() / 2
    }

    /// Returns the frame that stands for itself at `address` of a module for that.
    fn frame_at(address: u64) -> Option<FrameId> {
        let number = address.checked_sub(FIRST)?;
        Some(FrameId(u32::try_from(number).ok()?))
    }

    /// Returns the code of a frame in the new report.
    fn place(&self, report: &Report, place: CodePlace) -> CodePlace {
        match place.module {
            Some(module) if module as usize >= self.looked_up() => {
                let old = Addresses::frame_at(place.address);
                let old = old.and_then(|frame| report.places.get(frame.0 as usize));
                old.copied().unwrap_or_default()
            }
            _ => place,
        }
    }
}

/// Returns the bytes of `text` in hexadecimal digits.
fn bytes(text: &str) -> Vec<u8> {
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    pairs
        .iter()
        .filter_map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        })
        .collect()
}

/// A lookup in files, and in the report itself.
struct LaterLookup<'r> {
    report: &'r Report,
    addresses: &'r Addresses,
    files: FileLookup,
    found: Vec<FoundNames>,
}

impl LaterLookup<'_> {
    /// Returns the names that the report has for a frame.
    fn old(&self, id: FrameId, module: &Module) -> Place<'static> {
        let at = id.0 as usize;
        let report = self.report;
        let frame = report.frames.get(at).copied().unwrap_or_default();
        let plain = report.strings.get(frame.function);
        let full = report
            .full_names
            .get(at)
            .map(|&name| report.strings.get(name));
        let file = report.strings.get(frame.file);
        let function = if is_offset(plain, &module.path.to_string_lossy()) {
            FunctionName::default()
        } else {
            FunctionName::of_report(full.unwrap_or(plain), plain)
        };
        Place {
            function: Cow::Owned(function),
            // The path of the module stands for a file that is not known.
            file: if *file == *module.path.to_string_lossy() {
                Cow::Borrowed("")
            } else {
                Cow::Owned(file.to_owned())
            },
            line: frame.line,
        }
    }

    fn look_up_code(&mut self, at: usize, module: &Module, offsets: &[u64], found: &mut Found<'_>) {
        let mut sums = FoundNames {
            module: at,
            addresses: offsets.len(),
            named: 0,
            with_lines: 0,
        };
        let hash = &self.report.modules[at].hash;
        let mut left = Vec::new();
        let mut answer = |nth: usize, places: &[Place<'_>]| {
            sums.named += usize::from(places.iter().any(|place| !place.function.is_empty()));
            sums.with_lines += usize::from(places.iter().any(|place| place.line > 0));
            found(nth, places);
        };
        self.files
            .look_up(module, hash, offsets, &mut |nth, places| {
                if places.is_empty() {
                    left.push(nth);
                } else {
                    answer(nth, places);
                }
            });
        for nth in left {
            let address = offsets[nth].wrapping_add(module.load_bias);
            let old = self.addresses.frames.get(&(at, address));
            let old = old.map_or(&[][..], Vec::as_slice);
            let old: Vec<Place<'_>> = old.iter().map(|&id| self.old(id, module)).collect();
            answer(nth, &old);
        }
        self.found.push(sums);
    }
}

impl Lookup for LaterLookup<'_> {
    fn lookup(&mut self, module: &Module, offsets: &[u64], found: &mut Found<'_>) {
        let mut modules = self.addresses.modules.iter();
        let at = modules.position(|known| std::ptr::eq(known, module));
        match at {
            Some(at) if at < self.addresses.looked_up() => {
                self.look_up_code(at, module, offsets, found);
            }
            _ => {
                for (nth, &offset) in offsets.iter().enumerate() {
                    match Addresses::frame_at(offset) {
                        Some(id) => found(nth, &[self.old(id, module)]),
                        None => found(nth, &[]),
                    }
                }
            }
        }
    }

    fn units(&self) -> BTreeSet<Unit> {
        self.files.elf().units()
    }

    fn notes(&self) -> Vec<String> {
        self.files.elf().notes()
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
