//! What the program's own file lacks, told when recording starts and not only in the report.

use std::path::Path;

use super::about;
use super::dwarf::units;
use super::notes::{NO_LINES, STRIPPED};
use super::object::DebugDirs;
use crate::config::SymbolMode;
use crate::os::elf::Sections;

/// Returns what reports of this program will lack, and what to do about it, or `None` if they will be complete, or if its
/// debug information is in a file of its own. Reads of the program's file no more than it needs.
pub(crate) fn symbols_that_lack() -> Option<&'static str> {
    let mode = about::symbols();
    if mode == SymbolMode::Off {
        return None;
    }
    let program = Path::new("/proc/self/exe");
    let sections = Sections::of(program)?;
    let debug_file = DebugDirs::default().by_build_id(&sections.build_id());
    if debug_file.is_some() || sections.has(".gnu_debuglink") {
        return None;
    }
    if !sections.has(".symtab") {
        return Some(STRIPPED);
    }
    if mode == SymbolMode::Functions {
        return None;
    }
    // Compressed, or split: it is there, which is all that this is about.
    let mut units = units::of(&sections).peekable();
    let is_read = units.peek().is_some() || !sections.has(".debug_info");
    (is_read && !units.any(|unit| unit.is_program())).then_some(NO_LINES)
}
