//! Split debug information: in files beside the objects (`.dwo`, `split-debuginfo=unpacked`), or in a package of these files
//! beside the program (`.dwp`).
//!
//! The program has a skeleton of each unit, with its lines, which names the unit's file.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gimli::{DebugInfoOffset, LittleEndian, SectionId};

use super::{Bytes, UnitRef};
use crate::symbolize::object::{DwarfSections, Object};

/// The files with split debug information of one program.
#[derive(Debug)]
pub(in crate::symbolize) struct SplitFiles {
    package: Option<Rc<Object>>,
    /// Files that were not found, or that belong to another build.
    missing: BTreeSet<PathBuf>,
}

impl SplitFiles {
    /// Returns the files of the program, or of the debug file, at `path`.
    pub(in crate::symbolize) fn of(path: &Path) -> Self {
        let mut package = path.as_os_str().to_owned();
        package.push(".dwp");
        // Beside a debug file, the package may be called after its program, as for gdb.
        let is_debug_file = path.extension().is_some_and(|is| is == "debug");
        let of_program = is_debug_file.then(|| path.with_extension("dwp"));
        let mut packages = [PathBuf::from(package)].into_iter().chain(of_program);
        SplitFiles {
            package: packages.find_map(|path| Object::open(&path)).map(Rc::new),
            missing: BTreeSet::new(),
        }
    }

    /// Returns the files that were missing.
    pub(in crate::symbolize) fn missing(self) -> BTreeSet<PathBuf> {
        self.missing
    }

    /// Returns the file that has the rest of the unit `skeleton`, which is at the offset `at` in the program's `sections`.
    pub(super) fn rest(
        &mut self,
        sections: &DwarfSections<'_>,
        at: DebugInfoOffset,
        skeleton: UnitRef<'_, '_>,
    ) -> Option<Rest> {
        // Each may be of another build.
        let has_unit = |rest: &Rest| rest.read(sections, at, &mut |_| Some(())).is_some();
        let package = self.package.clone().map(Rest);
        if let Some(package) = package.filter(has_unit) {
            package.0.give_back();
            return Some(package);
        }
        let path = path(skeleton)?;
        let rest = Object::open(&path).map(|object| Rest(Rc::new(object)));
        let rest = rest.filter(has_unit);
        if rest.is_none() {
            self.missing.insert(path);
        }
        rest
    }
}

/// Returns the path of a unit's file, where the compiler wrote it.
fn path(skeleton: UnitRef<'_, '_>) -> Option<PathBuf> {
    let name = skeleton.dwo_name().ok()??;
    let name = skeleton.attr_string(name).ok()?;
    let directory = skeleton.comp_dir.map_or(&[][..], |dir| dir.slice());
    let directory = Path::new(OsStr::from_bytes(directory));
    Some(directory.join(OsStr::from_bytes(name.slice())))
}

/// A file that has the rest of a unit.
#[derive(Debug)]
pub(super) struct Rest(Rc<Object>);

impl Rest {
    /// Calls `each` with the rest of the unit whose skeleton is at the offset `at` in `sections`. Returns `None` if the file
    /// does not have it.
    pub(super) fn read<T>(
        &self,
        sections: &DwarfSections<'_>,
        at: DebugInfoOffset,
        each: &mut dyn FnMut(UnitRef<'_, '_>) -> Option<T>,
    ) -> Option<T> {
        let rest = DwarfSections::of_split(&self.0);
        // Anew, since the parser wants both to live equally long.
        let program = sections.dwarf();
        let skeleton = program.unit(program.unit_header(at).ok()?).ok()?;
        let id = skeleton.dwo_id?;
        let dwarf = if rest.get(SectionId::DebugCuIndex).is_empty() {
            let mut dwarf = rest.dwarf();
            dwarf.make_dwo(&program);
            dwarf
        } else {
            let section = |id| Ok::<_, gimli::Error>(rest.get(id));
            let package = gimli::DwarfPackage::load(section, Bytes::new(&[], LittleEndian));
            package.ok()?.find_cu(id, &program).ok()??
        };
        let mut unit = dwarf.unit(dwarf.units().next().ok()??).ok()?;
        if unit.dwo_id != Some(id) {
            return None;
        }
        unit.copy_relocated_attributes(&skeleton);
        each(unit.unit_ref(&dwarf))
    }
}
