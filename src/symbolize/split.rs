//! Split debug information: `.dwo` files beside the objects, not in the program (`split-debuginfo=unpacked`).
//!
//! The program has a skeleton of each unit, which names the unit's file. blazesym reads a package of these files (`.dwp`,
//! beside the program), but not the files. Without a package it finds no inlined calls and reports the line of the innermost
//! one. This module looks for the files where the compiler wrote them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{Context, LookupContinuation as _, LookupResult, SplitDwarfLoad};
use gimli::{EndianArcSlice, LittleEndian, Reader as _, SectionId};

use super::names::FunctionName;
use crate::os::elf::Sections;

type Reader = EndianArcSlice<LittleEndian>;

/// A frame: its function, file and line.
#[derive(Debug, Clone)]
pub(super) struct SplitFrame {
    pub(super) function: FunctionName,
    pub(super) file: String,
    pub(super) line: u32,
}

/// A program whose debug information is split. Keeps the units that it has read until it is dropped.
pub(super) struct SplitProgram {
    context: Context<Reader>,
    names: RefCell<HashMap<String, FunctionName>>,
    /// Files that were not found, or that belong to another build.
    missing: RefCell<BTreeSet<PathBuf>>,
}

impl std::fmt::Debug for SplitProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SplitProgram")
            .field("missing", &self.missing)
            .finish_non_exhaustive()
    }
}

/// Returns whether the program at `path`, which has these `sections`, has units whose debug information is in other files,
/// without a package beside the program.
pub(super) fn is_split(path: &Path, sections: &Sections) -> bool {
    let mut package = path.as_os_str().to_owned();
    package.push(".dwp");
    if Path::new(&package).exists() {
        return false;
    }
    // All forms of split debug information have this section. Few other programs have it.
    if !sections.has(".debug_addr") {
        return false;
    }
    let dwarf = load(sections, |id| Some(id.name()));
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if dwarf.unit(header).is_ok_and(|unit| unit.dwo_id.is_some()) {
            return true;
        }
    }
    false
}

fn load(
    sections: &Sections,
    name: impl Fn(SectionId) -> Option<&'static str>,
) -> gimli::Dwarf<Reader> {
    let section = |id: SectionId| {
        let bytes = name(id).map(|name| sections.bytes(name));
        let bytes: Arc<[u8]> = bytes.unwrap_or_default().into();
        Ok::<_, std::convert::Infallible>(Reader::new(bytes, LittleEndian))
    };
    match gimli::Dwarf::load(section) {
        Ok(dwarf) => dwarf,
        Err(never) => match never {},
    }
}

impl SplitProgram {
    /// Opens the program at `path`, for which [`is_split`] is true.
    pub(super) fn open(path: &Path) -> Option<SplitProgram> {
        let sections = Sections::of(path)?;
        let dwarf = load(&sections, |id| Some(id.name()));
        Some(SplitProgram {
            context: Context::from_dwarf(dwarf).ok()?,
            names: RefCell::default(),
            missing: RefCell::default(),
        })
    }

    /// Returns the frames of the code at `address`, outermost first, or no frames if the function of one is unknown.
    pub(super) fn frames(&self, address: u64) -> Vec<SplitFrame> {
        let mut found = self.context.find_frames(address);
        let frames = loop {
            match found {
                LookupResult::Output(frames) => break frames,
                LookupResult::Load { load, continuation } => {
                    found = continuation.resume(self.unit(&load));
                }
            }
        };
        let Ok(mut frames) = frames else {
            return Vec::new();
        };
        let mut list = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let Some(function) = &frame.function else {
                return Vec::new();
            };
            let Ok(name) = function.raw_name() else {
                return Vec::new();
            };
            let location = frame.location.as_ref();
            list.push(SplitFrame {
                function: self.name(&name),
                file: location.and_then(|l| l.file).unwrap_or("").to_owned(),
                line: location.and_then(|l| l.line).unwrap_or(0),
            });
        }
        list.reverse();
        list
    }

    fn name(&self, symbol: &str) -> FunctionName {
        let mut names = self.names.borrow_mut();
        if let Some(known) = names.get(symbol) {
            return known.clone();
        }
        let name = FunctionName::of(symbol);
        names.insert(symbol.to_owned(), name.clone());
        name
    }

    /// Reads a unit's debug information from its file.
    fn unit(&self, load: &SplitDwarfLoad<Reader>) -> Option<Arc<gimli::Dwarf<Reader>>> {
        let mut path = PathBuf::new();
        for part in [load.comp_dir.as_ref(), Some(load.path.as_ref()?)] {
            let Some(part) = part else { continue };
            path.push(OsStr::from_bytes(&part.to_slice().ok()?));
        }
        let read = read_unit(&path, load);
        if read.is_none() {
            self.missing.borrow_mut().insert(path);
        }
        read
    }

    /// Takes the files that were missing so far.
    pub(super) fn missing(&self) -> BTreeSet<PathBuf> {
        self.missing.take()
    }
}

fn read_unit(path: &Path, load: &SplitDwarfLoad<Reader>) -> Option<Arc<gimli::Dwarf<Reader>>> {
    let sections = Sections::of(path)?;
    let mut dwarf = self::load(&sections, SectionId::dwo_name);
    let header = dwarf.units().next().ok()??;
    let unit = dwarf.unit(header).ok()?;
    // The file belongs to another build.
    if unit.dwo_id != Some(load.dwo_id) {
        return None;
    }
    dwarf.make_dwo(&load.parent);
    Some(Arc::new(dwarf))
}
