//! Symbols from ELF files, by blazesym.
//!
//! Memory is the scarce thing: this runs in the service that is being profiled, perhaps because it is short
//! of memory. blazesym keeps the debug information of every compilation unit it has touched, so addresses
//! are looked up in ascending chunks and the symbolizer is dropped after each.

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

use super::lookup::{Found, Lookup, Place};
use super::names::FunctionName;
use super::notes::{about_compressed, about_missing_units, about_modules};
use super::sections::Sections;
use super::split::{SplitProgram, is_split};
use super::wanted::Wanted;
use crate::collector::snapshot::Module;

/// Addresses that one symbolizer looks up at most.
const CHUNK: usize = 2500;

/// Bytes of code that one symbolizer looks at. Memory goes with the compilation units that are touched, so a
/// few addresses all over a large program cost as much as many: 2,000 in a program of 81 MB take 40 MB in one
/// go and 13 MB so, for a fifth more time (a symbolizer costs some 7 ms to begin with).
const CHUNK_SPAN: u64 = 2 << 20;

/// Looks into the ELF files of modules, and into their separate debug files.
#[derive(Debug)]
pub(super) struct ElfLookup {
    /// Where separate debug files are, as gdb has it: `<dir>/.build-id/ab/cdef….debug`, or by debug link.
    debug_dirs: Vec<PathBuf>,
    /// Modules are those of another process, perhaps long ended, that began to record then.
    elsewhere: Option<SystemTime>,
    /// Whoever asks throws the rest away where it is not wanted any more.
    wanted: Wanted,
    gone: Vec<String>,
    replaced: Vec<String>,
    unreadable: Vec<String>,
    /// Debug information that is compressed in a way that is not read.
    compressed: Vec<String>,
    /// Files of split debug information that were not found, over all modules.
    missing: BTreeSet<PathBuf>,
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
            if Sections::of(&source).is_some_and(|sections| sections.has_zstd()) {
                self.compressed.push(file_name(&module.path));
            }
            let is_split = catch_unwind(|| is_split(&source)).unwrap_or(false);
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
    /// Looks for the modules of another process.
    pub(super) fn elsewhere(started: SystemTime) -> Self {
        ElfLookup {
            elsewhere: Some(started),
            ..ElfLookup::default()
        }
    }

    /// Looks up names as long as they are wanted.
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
        }
    }

    /// The files that may know the code of `module`, best first.
    fn sources(&mut self, module: &Module) -> Vec<PathBuf> {
        let mut sources = Vec::new();
        sources.extend(self.debug_file(&module.build_id));
        sources.extend(self.object(module));
        sources
    }

    /// The file that `module` was loaded from. Another file of its name would give wrong names, which is
    /// worse than none.
    fn object(&mut self, module: &Module) -> Option<PathBuf> {
        // The kernel's own has a bare name, `linux-vdso.so.1`; a relative path is as `dlopen` was given it.
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
                // Without a build id only its time tells a file that came later.
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

    /// The separate debug file of a build id. blazesym looks for one only where a debug link names it.
    fn debug_file(&self, build_id: &[u8]) -> Option<PathBuf> {
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

    /// Looks up those of `offsets` that `chunk` names in split debug information. Returns what was not found.
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
            // As with blazesym: what is damaged must not take the service down.
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

    /// Looks up those of `offsets` that `chunk` names, first with debug information, then, where that is
    /// broken, by symbol table alone. Returns what was not found.
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

/// What the file says about each address; nothing if it says nonsense.
fn symbolize<'s>(
    symbolizer: &'s Symbolizer,
    path: &Path,
    debug_syms: bool,
    addresses: &[u64],
) -> Option<Vec<Symbolized<'s>>> {
    let mut elf = Elf::new(path);
    elf.debug_syms = debug_syms;
    // blazesym indexes tables of the file it reads: a corrupt one must not take the service down.
    let symbols = catch_unwind(AssertUnwindSafe(|| {
        symbolizer.symbolize(&Source::Elf(elf), Input::VirtOffset(addresses))
    }));
    symbols.ok()?.ok()
}

/// Gives functions that are called `new` in the debug information of `debug = "line-tables-only"` the symbol table's name,
/// which has their path. (Inlined calls are not in that table.)
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

/// Whether it is a function of Rust that is not called by its mangled name.
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

/// What a file says about an address.
enum Answer<'a> {
    Frames(&'a [Place<'a>]),
    Unknown,
    /// The debug information is damaged, or of a kind that is not understood.
    Broken,
}

/// Demangled names of one chunk: most occur many times.
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

/// The program's own file: by its path as long as that is still the same file, because debug links and
/// packages (`.dwp`) are found beside it; else through `/proc/self/exe`, which outlives it.
fn own_program(path: &Path) -> PathBuf {
    let exe = Path::new("/proc/self/exe");
    let id = |path: &Path| path.metadata().ok().map(|data| (data.dev(), data.ino()));
    if id(exe).is_none() || id(exe) == id(path) {
        path.to_owned()
    } else {
        exe.to_owned()
    }
}

/// Whether the file at `path` was written after that moment.
fn is_newer(path: &Path, moment: SystemTime) -> bool {
    let modified = path.metadata().and_then(|about| about.modified());
    modified.is_ok_and(|at| at > moment)
}

#[cfg(test)]
mod tests;
