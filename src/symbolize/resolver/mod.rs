//! Symbols from ELF files: by their debug information, else by their tables of symbols.

mod files;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use heapray_report::sources::Unit;

use super::about;
use super::dwarf::{self, Frame, SplitFiles, units};
use super::lookup::{Found, Lookup, Place};
use super::names::FunctionName;
use super::notes::{about_compressed, about_missing_units, about_modules};
use super::object::{DebugDirs, Object, Symbols};
use super::wanted::Wanted;
use crate::collector::snapshot::Module;
use crate::config::SymbolMode;
use crate::os::elf::Sections;
pub(super) use files::FileLookup;
pub use files::{ElfFile, Stranger, SymbolFiles};

/// The most bytes of demangled names that are kept. Most of them occur many times. Those of generic C++ code take some
/// kilobytes each.
const NAMES: usize = 2 << 20;

/// A lookup in the ELF files of modules and in their separate debug files.
#[derive(Debug)]
pub(super) struct ElfLookup {
    debug_dirs: DebugDirs,
    mode: SymbolMode,
    /// The time at which another process started to record, if the modules are those of that process. It may have ended.
    elsewhere: Option<SystemTime>,
    /// Whether the rest is still needed.
    wanted: Wanted,
    gone: Vec<String>,
    replaced: Vec<String>,
    unreadable: Vec<String>,
    /// Modules whose debug information is compressed with zstd.
    compressed: Vec<String>,
    /// Files of split debug information that were not found, of all modules.
    missing: BTreeSet<PathBuf>,
    /// Whether `units` are to be read.
    wants_units: bool,
    units: BTreeSet<Unit>,
}

impl Default for ElfLookup {
    fn default() -> Self {
        ElfLookup::with_debug_dirs(DebugDirs::default())
    }
}

impl Lookup for ElfLookup {
    fn lookup(&mut self, module: &Module, offsets: &[u64], found: &mut Found<'_>) {
        let mut left: Vec<usize> = (0..offsets.len()).collect();
        if self.mode == SymbolMode::Off {
            for nth in left {
                found(nth, &[]);
            }
            return;
        }
        let debug_file = self.debug_dirs.by_build_id(&module.build_id);
        self.look_up_in(module, debug_file, &mut left, offsets, found);
        if !left.is_empty() {
            let object = self.object(module);
            self.look_up_in(module, object, &mut left, offsets, found);
        }
        for nth in left {
            found(nth, &[]);
        }
    }

    fn units(&self) -> BTreeSet<Unit> {
        self.units.clone()
    }

    fn notes(&self) -> Vec<String> {
        [
            about_modules(&self.gone, "is no longer there"),
            about_modules(&self.replaced, "was replaced since it was loaded"),
            about_modules(&self.unreadable, "could not be read"),
            about_compressed(&self.compressed),
            about_missing_units(&self.missing),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl ElfLookup {
    /// Returns a lookup for the modules of another process, which `started` to record at that time.
    pub(super) fn elsewhere(started: SystemTime) -> Self {
        ElfLookup {
            elsewhere: Some(started),
            ..ElfLookup::default()
        }
    }

    /// Returns a lookup that finds no more symbols when they are not wanted any more.
    pub(super) fn while_wanted(wanted: Wanted) -> Self {
        ElfLookup {
            wanted,
            ..ElfLookup::default()
        }
    }

    fn with_debug_dirs(debug_dirs: DebugDirs) -> Self {
        ElfLookup {
            debug_dirs,
            mode: about::symbols(),
            elsewhere: None,
            wanted: Wanted::default(),
            gone: Vec::new(),
            replaced: Vec::new(),
            unreadable: Vec::new(),
            compressed: Vec::new(),
            missing: BTreeSet::new(),
            wants_units: true,
            units: BTreeSet::new(),
        }
    }

    /// Returns a lookup that reads the units only if they are not `known`.
    pub(super) fn without_units(known: bool) -> Self {
        ElfLookup {
            wants_units: !known,
            ..ElfLookup::default()
        }
    }

    /// Returns a lookup like this that looks up as much as `mode` says.
    pub(super) fn with_mode(self, mode: SymbolMode) -> Self {
        ElfLookup { mode, ..self }
    }

    /// Returns whether nothing was missing of the debug information that was looked up.
    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.unreadable.is_empty()
    }

    /// Returns whether the units are still to be read.
    pub(super) fn wants_units(&self) -> bool {
        self.mode == SymbolMode::Lines && self.wants_units && self.units.is_empty()
    }

    /// Notes what a file of `module` shows as a whole.
    fn look_at(&mut self, module: &Module, sections: &Sections) {
        let reads_zstd = cfg!(feature = "debug-files");
        if self.mode == SymbolMode::Lines && !reads_zstd && sections.has_zstd() {
            self.compressed.push(file_name(&module.path));
        }
        if module.is_main && self.wants_units() && self.wanted.still() {
            // A damaged file must not end the service.
            let read = catch_unwind(AssertUnwindSafe(|| units::of(sections).collect()));
            self.units = read.unwrap_or_default();
        }
    }

    /// Returns the file that `module` was loaded from. Another file of the same name would give wrong names, which are worse
    /// than no names.
    fn object(&mut self, module: &Module) -> Option<PathBuf> {
        // The kernel's module has a bare name, `linux-vdso.so.1`. A relative path is the one that `dlopen` was given.
        if !module.path.as_os_str().as_bytes().contains(&b'/') {
            return None;
        }
        let path = if module.is_main && self.elsewhere.is_none() {
            own_program(&module.path)
        } else {
            module.path.clone()
        };
        let name = || file_name(&module.path);
        match Sections::of(&path).map(|sections| sections.build_id()) {
            Some(found) => {
                // Without a build id, only the modification time shows that the file is a later one.
                let is_same = if module.build_id.is_empty() {
                    self.elsewhere
                        .is_none_or(|started| !is_newer(&path, started))
                } else {
                    found == module.build_id
                };
                if is_same {
                    return Some(path);
                }
                self.replaced.push(name());
            }
            None if !path.exists() => self.gone.push(name()),
            None => self.unreadable.push(name()),
        }
        None
    }

    /// Looks up those of `offsets` that are `left` in the file at `path` and in the debug file that it names. Those that it
    /// has names for are no longer left.
    fn look_up_in(
        &mut self,
        module: &Module,
        path: Option<PathBuf>,
        left: &mut Vec<usize>,
        offsets: &[u64],
        found: &mut Found<'_>,
    ) {
        let Some(object) = path.and_then(|path| Object::open(&path)) else {
            return;
        };
        if !object.sections.has(".debug_info")
            && let Some(linked) = self.debug_dirs.by_link(&object)
        {
            self.look_at(module, &linked.sections);
            self.look_up(&linked, left, offsets, found);
        }
        self.look_at(module, &object.sections);
        self.look_up(&object, left, offsets, found);
    }

    fn look_up(
        &mut self,
        object: &Object,
        left: &mut Vec<usize>,
        offsets: &[u64],
        found: &mut Found<'_>,
    ) {
        if !self.wanted.still() {
            return;
        }
        let addresses: Vec<u64> = left.iter().map(|&nth| offsets[nth]).collect();
        let embedded = object.embedded();
        let symbols = Symbols::of(object, embedded.as_ref(), &addresses);
        let mut names = Names::default();
        let mut is_found = vec![false; left.len()];
        if self.mode == SymbolMode::Lines {
            let shared = self.debug_dirs.shared(object);
            let mut split = SplitFiles::of(&object.path);
            dwarf::look_up(
                object,
                shared.as_ref(),
                &addresses,
                &mut split,
                &self.wanted,
                &mut |at, frames| {
                    let by_table = || symbols.get(at);
                    is_found[at] = names.answer(left[at], frames, &by_table, found);
                },
            );
            self.missing.extend(split.missing());
        }
        let mut at = 0;
        left.retain(|&nth| {
            let is_left = !is_found[at]
                && !symbols.get(at).is_some_and(|symbol| {
                    let frame = Frame {
                        symbol: Some(symbol),
                        file: "".into(),
                        line: 0,
                    };
                    names.answer(nth, &[frame], &|| None, found)
                });
            at += 1;
            is_left
        });
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The demangled names of one file.
#[derive(Debug, Default)]
struct Names {
    known: HashMap<String, Rc<FunctionName>>,
    /// The bytes of all names that are known.
    bytes: usize,
}

impl Names {
    /// Calls `found` for the address with the index `nth`. The outermost function has its name from the table of symbols if
    /// the debug information has none, or only one without a path, such as `new`: that is all that
    /// `debug = "line-tables-only"` leaves. (The table has no inlined calls.) Returns false if there is no name.
    fn answer<'f>(
        &mut self,
        nth: usize,
        frames: &[Frame<'f>],
        by_table: &dyn Fn() -> Option<Cow<'f, str>>,
        found: &mut Found<'_>,
    ) -> bool {
        let Some((outer, inlined)) = frames.split_first() else {
            return false;
        };
        let of_table = outer.symbol.is_none() || is_bare(outer);
        let full = of_table.then(by_table).flatten();
        let Some(symbol) = full.as_ref().or(outer.symbol.as_ref()) else {
            return false;
        };
        let mut named = vec![self.name(symbol)];
        for frame in inlined {
            named.push(self.name(frame.symbol.as_deref().unwrap_or_default()));
        }
        let places = named.iter().zip(frames).map(|(name, frame)| Place {
            function: Cow::Borrowed(&**name),
            file: Cow::Borrowed(&*frame.file),
            line: frame.line,
        });
        found(nth, &places.collect::<Vec<_>>());
        true
    }

    fn name(&mut self, symbol: &str) -> Rc<FunctionName> {
        if let Some(known) = self.known.get(symbol) {
            return known.clone();
        }
        if self.bytes > NAMES {
            *self = Names::default();
        }
        let name = Rc::new(FunctionName::of(symbol));
        let texts = [symbol, &name.full, &name.plain, &name.by_trait];
        self.bytes += texts.map(str::len).iter().sum::<usize>();
        self.known.insert(symbol.to_owned(), name.clone());
        name
    }
}

/// Returns whether the function of `frame` is one of Rust whose name is not mangled.
fn is_bare(frame: &Frame<'_>) -> bool {
    let is_mangled = |symbol: &str| symbol.starts_with("_R") || symbol.starts_with("_ZN");
    frame.file.ends_with(".rs")
        && frame
            .symbol
            .as_deref()
            .is_some_and(|symbol| !is_mangled(symbol))
}

/// Returns the program's own file: its path if that is still the same file, because debug links and packages (`.dwp`) are
/// relative to it. Else `/proc/self/exe`, which also works after the file was deleted or replaced.
fn own_program(path: &Path) -> PathBuf {
    let exe = Path::new("/proc/self/exe");
    let id = |path: &Path| path.metadata().ok().map(|data| (data.dev(), data.ino()));
    if id(exe).is_none() || id(exe) == id(path) {
        path.to_owned()
    } else {
        exe.to_owned()
    }
}

/// Returns whether the file at `path` was written after `moment`.
fn is_newer(path: &Path, moment: SystemTime) -> bool {
    let modified = path.metadata().and_then(|about| about.modified());
    modified.is_ok_and(|at| at > moment)
}

#[cfg(test)]
mod tests;
