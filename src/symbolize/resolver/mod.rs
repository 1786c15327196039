//! Symbols from ELF files, read with blazesym.
//!
//! Symbolization must take little memory: it runs in the profiled service, which may be short of memory. blazesym keeps the
//! debug information of every compilation unit that it has read. So addresses are looked up in chunks, in ascending order,
//! and the symbolizer is dropped after each chunk.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Reason, Sym, Symbolized, Symbolizer};
use heapray_report::sources::Unit;

use super::lookup::{Found, Lookup, Place};
use super::names::FunctionName;
use super::notes::{about_compressed, about_missing_units, about_modules};
use super::split::{SplitProgram, is_split};
use super::units;
use super::wanted::Wanted;
use crate::collector::snapshot::Module;
use crate::os::elf::Sections;

/// The most addresses that one symbolizer looks up.
const CHUNK: usize = 2500;

/// The most bytes of code that one symbolizer spans. The memory depends on the compilation units that are read, so a few
/// addresses all over a large program take as much as many: 2,000 addresses in a program of 81 MB take 40 MB in a single
/// chunk and 13 MB in chunks of this span, in a fifth more time (the start of a symbolizer takes some 7 ms).
const CHUNK_SPAN: u64 = 2 << 20;

/// A lookup in the ELF files of modules and in their separate debug files.
#[derive(Debug)]
pub(super) struct ElfLookup {
    /// Directories of separate debug files, with gdb's layout: `<dir>/.build-id/ab/cdef….debug`, or by debug link.
    debug_dirs: Vec<PathBuf>,
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
        ElfLookup::with_debug_dirs(vec!["/usr/lib/debug".into(), "/lib/debug".into()])
    }
}

impl Lookup for ElfLookup {
    fn lookup(&mut self, module: &Module, offsets: &[u64], found: &mut Found<'_>) {
        let mut left: Vec<usize> = (0..offsets.len()).collect();
        for source in self.sources(module) {
            if left.is_empty() {
                break;
            }
            let sections = Sections::of(&source);
            let is_split =
                sections.is_some_and(|sections| self.look_at(module, &source, &sections));
            let mut still_left = Vec::new();
            for chunk in chunks(&left, offsets) {
                if !self.wanted.still() {
                    still_left.extend_from_slice(chunk);
                    continue;
                }
                let chunk = if is_split {
                    self.look_up_split(&source, chunk, offsets, found)
                } else {
                    chunk.to_vec()
                };
                still_left.extend(self.look_up_chunk(&source, &chunk, offsets, found));
            }
            left = still_left;
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

    fn with_debug_dirs(debug_dirs: Vec<PathBuf>) -> Self {
        ElfLookup {
            debug_dirs,
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

    /// Returns whether the units are still to be read.
    pub(super) fn wants_units(&self) -> bool {
        self.wants_units && self.units.is_empty()
    }

    /// Notes what the file at `source` shows of `module` as a whole. Returns whether its debug information is split.
    fn look_at(&mut self, module: &Module, source: &Path, sections: &Sections) -> bool {
        if sections.has_zstd() {
            self.compressed.push(file_name(&module.path));
        }
        // As with blazesym, a damaged file must not end the service.
        if module.is_main && self.wants_units() && self.wanted.still() {
            let read = catch_unwind(AssertUnwindSafe(|| units::of(sections).collect()));
            self.units = read.unwrap_or_default();
        }
        catch_unwind(AssertUnwindSafe(|| is_split(source, sections))).unwrap_or(false)
    }

    /// Returns the files that may have symbols of `module`, best first.
    fn sources(&mut self, module: &Module) -> Vec<PathBuf> {
        let mut sources = Vec::new();
        sources.extend(self.debug_file(&module.build_id));
        sources.extend(self.object(module));
        sources
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
        match read_elf_build_id(&path) {
            Ok(found) => {
                let found = found.unwrap_or_default();
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
            Err(_) if !path.exists() => self.gone.push(name()),
            Err(_) => self.unreadable.push(name()),
        }
        None
    }

    /// Returns the separate debug file of a build id. blazesym looks for one only if a debug link names it.
    pub(super) fn debug_file(&self, build_id: &[u8]) -> Option<PathBuf> {
        let (first, rest) = build_id.split_first()?;
        let mut name = format!(".build-id/{first:02x}/");
        for byte in rest {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        name.push_str(".debug");
        self.debug_dirs
            .iter()
            .map(|dir| dir.join(&name))
            .find(|path| matches!(read_elf_build_id(path), Ok(Some(found)) if found == build_id))
    }

    /// Looks up the `offsets` with the indices `chunk` in split debug information. Returns the indices that were not found.
    fn look_up_split(
        &mut self,
        path: &Path,
        chunk: &[usize],
        offsets: &[u64],
        found: &mut Found<'_>,
    ) -> Vec<usize> {
        let Some(program) = SplitProgram::open(path) else {
            return chunk.to_vec();
        };
        let mut left = Vec::new();
        for &nth in chunk {
            // As with blazesym, a damaged file must not end the service.
            let frames = catch_unwind(AssertUnwindSafe(|| program.frames(offsets[nth])));
            let frames = frames.unwrap_or_default();
            if frames.is_empty() {
                left.push(nth);
                continue;
            }
            let places = frames.iter().map(|frame| Place {
                function: Cow::Borrowed(&frame.function),
                file: Cow::Borrowed(&*frame.file),
                line: frame.line,
            });
            found(nth, &places.collect::<Vec<_>>());
        }
        self.missing.extend(program.missing());
        left
    }

    /// Looks up the `offsets` with the indices `chunk`: first with debug information, then, if that is broken, with the
    /// symbol table alone. Returns the indices that were not found.
    fn look_up_chunk(
        &self,
        path: &Path,
        chunk: &[usize],
        offsets: &[u64],
        found: &mut Found<'_>,
    ) -> Vec<usize> {
        let mut left = Vec::new();
        let mut broken = Vec::new();
        self.look_up(
            path,
            true,
            chunk,
            offsets,
            &mut |nth, result| match result {
                Answer::Frames(places) => found(nth, places),
                Answer::Unknown => left.push(nth),
                Answer::Broken => broken.push(nth),
            },
        );
        if !broken.is_empty() {
            self.look_up(
                path,
                false,
                &broken,
                offsets,
                &mut |nth, result| match result {
                    Answer::Frames(places) => found(nth, places),
                    Answer::Unknown | Answer::Broken => left.push(nth),
                },
            );
        }
        left
    }

    /// Calls `answer` once for each of `chunk`.
    fn look_up(
        &self,
        path: &Path,
        debug_syms: bool,
        chunk: &[usize],
        offsets: &[u64],
        answer: &mut dyn FnMut(usize, Answer<'_>),
    ) {
        let addresses: Vec<u64> = chunk.iter().map(|&nth| offsets[nth]).collect();
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            .enable_demangling(false)
            .set_debug_dirs(Some(&self.debug_dirs))
            .build();
        let Some(mut symbols) = symbolize(&symbolizer, path, debug_syms, &addresses) else {
            for &nth in chunk {
                answer(nth, Answer::Broken);
            }
            return;
        };
        if debug_syms {
            name_in_full(&mut symbols, &symbolizer, path, &addresses);
        }
        let mut names = Names::default();
        for (&nth, symbol) in chunk.iter().zip(&symbols) {
            match symbol {
                Symbolized::Sym(sym) => {
                    names.learn(sym);
                    answer(nth, Answer::Frames(&names.places(sym)));
                }
                Symbolized::Unknown(Reason::IgnoredError) => answer(nth, Answer::Broken),
                Symbolized::Unknown(_) => answer(nth, Answer::Unknown),
            }
        }
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Returns the symbol of each address, or `None` if the file is damaged.
fn symbolize<'s>(
    symbolizer: &'s Symbolizer,
    path: &Path,
    debug_syms: bool,
    addresses: &[u64],
) -> Option<Vec<Symbolized<'s>>> {
    let mut elf = Elf::new(path);
    elf.debug_syms = debug_syms;
    // blazesym indexes tables of the file, and may panic if the file is corrupt. That must not end the service.
    let symbols = catch_unwind(AssertUnwindSafe(|| {
        symbolizer.symbolize(&Source::Elf(elf), Input::VirtOffset(addresses))
    }));
    symbols.ok()?.ok()
}

/// Replaces names without a path, such as `new`, by the symbol table's names, which have the path. The debug information of
/// `debug = "line-tables-only"` has only names without a path. (The symbol table has no inlined calls.)
fn name_in_full<'s>(
    symbols: &mut [Symbolized<'s>],
    symbolizer: &'s Symbolizer,
    path: &Path,
    addresses: &[u64],
) {
    let (bare, addresses): (Vec<_>, Vec<u64>) = symbols
        .iter_mut()
        .zip(addresses)
        .filter_map(|(symbol, &address)| match symbol {
            Symbolized::Sym(sym) if is_bare(sym) => Some((sym, address)),
            _ => None,
        })
        .unzip();
    if bare.is_empty() {
        return;
    }
    let full = symbolize(symbolizer, path, false, &addresses).unwrap_or_default();
    for (sym, full) in bare.into_iter().zip(full) {
        if let Symbolized::Sym(full) = full {
            sym.name = full.name;
        }
    }
}

/// Returns whether `sym` is a Rust function whose name is not mangled.
fn is_bare(sym: &Sym<'_>) -> bool {
    let in_rust = sym
        .code_info
        .as_deref()
        .is_some_and(|code| code.to_path().extension().is_some_and(|is| is == "rs"));
    in_rust && !sym.name.starts_with("_R") && !sym.name.starts_with("_ZN")
}

/// Splits `left`, indices of ascending `offsets`, into parts for one symbolizer each.
fn chunks<'l>(left: &'l [usize], offsets: &[u64]) -> impl Iterator<Item = &'l [usize]> {
    let mut left = left;
    std::iter::from_fn(move || {
        let first = offsets[*left.first()?];
        let near = left.partition_point(|&nth| offsets[nth] - first < CHUNK_SPAN);
        let chunk;
        (chunk, left) = left.split_at(near.min(CHUNK));
        Some(chunk)
    })
}

/// The answer of a file about an address.
enum Answer<'a> {
    Frames(&'a [Place<'a>]),
    Unknown,
    /// The debug information is damaged, or of a kind that is not understood.
    Broken,
}

/// The demangled names of one chunk. Most of them occur many times.
#[derive(Debug, Default)]
struct Names<'s>(HashMap<&'s str, FunctionName>);

impl<'s> Names<'s> {
    fn learn(&mut self, sym: &'s Sym<'_>) {
        let inlined = sym.inlined.iter().map(|inlined| inlined.name.as_ref());
        for symbol in inlined.chain([sym.name.as_ref()]) {
            self.0
                .entry(symbol)
                .or_insert_with(|| FunctionName::of(symbol));
        }
    }

    fn places<'a>(&'a self, sym: &'a Sym<'_>) -> Vec<Place<'a>> {
        let outer = self.place(&sym.name, sym.code_info.as_deref());
        let inlined = sym
            .inlined
            .iter()
            .map(|inlined| self.place(&inlined.name, inlined.code_info.as_ref()));
        [outer].into_iter().chain(inlined).collect()
    }

    fn place<'a>(&'a self, symbol: &str, code: Option<&'a CodeInfo<'_>>) -> Place<'a> {
        let file = code.map_or(Cow::Borrowed(""), |code| match code.to_path() {
            Cow::Borrowed(path) => path.to_string_lossy(),
            Cow::Owned(path) => Cow::Owned(path.to_string_lossy().into_owned()),
        });
        Place {
            function: self.0.get(symbol).map_or_else(Cow::default, Cow::Borrowed),
            file,
            line: code.and_then(|code| code.line).unwrap_or(0),
        }
    }
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
