//! What the program's own file lacks, told when recording starts and not only in the report.

use std::path::Path;

use blazesym::helper::read_elf_build_id;
use heapray_report::sources::Unit;

use super::notes::{NO_LINES, STRIPPED};
use super::resolver::ElfLookup;
use super::units;
use crate::os::elf::Sections;

/// Returns what reports of this program will lack, and what to do about it, or `None` if they will be complete, or if its
/// debug information is in a file of its own. Reads the program's file: some 10 ms, more if the file is not in memory.
pub(crate) fn symbols_that_lack() -> Option<&'static str> {
    let program = Path::new("/proc/self/exe");
    let sections = Sections::of(program)?;
    let build_id = read_elf_build_id(program).ok()?.unwrap_or_default();
    let debug_file = ElfLookup::default().debug_file(&build_id);
    if debug_file.is_some() || sections.has(".gnu_debuglink") {
        return None;
    }
    if !sections.has(".symtab") {
        return Some(STRIPPED);
    }
    // Compressed, or split: it is there, which is all that this is about.
    let units = units::of(program);
    let is_read = !units.is_empty() || !sections.has(".debug_info");
    (is_read && !units.iter().any(Unit::is_program)).then_some(NO_LINES)
}
