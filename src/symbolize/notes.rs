//! Notes for people about symbols that a report lacks, and what to do about it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::places::Coverage;
use crate::config::SymbolMode;
use crate::os::helper::reason_of;

/// The note about a program without symbols.
pub(super) const STRIPPED: &str = "the program is stripped: its functions are shown as offsets; keep its symbols \
                                   (`debug = 1` and no `strip` in the build profile), install its debug file by \
                                   build id, or name them later with `heapray symbolize`";

/// The note about a program with symbols, but without debug information.
pub(super) const NO_LINES: &str = "the program has no debug information: build with `debug = 1` to see files, lines and \
                                   inlined functions";

/// The note about a service that looks up no names.
const OFF: &str = "symbols are off (MEMRAY_PROFILER_SYMBOLS=off): functions are shown as offsets; `heapray symbolize` names \
                   them where the program's debug information is";

/// The note about a service that looks up functions only.
const FUNCTIONS: &str = "only functions are looked up (MEMRAY_PROFILER_SYMBOLS=functions): `heapray symbolize` adds files, \
                         lines and inlined functions where the program's debug information is";

/// Returns the note about missing symbols of the program itself, by its code in the report. `has_units` tells that it has
/// debug information: then the report has too little of its code to judge by. `mode`: what was looked up.
pub(super) fn about_program(
    main: &Coverage,
    has_units: bool,
    mode: SymbolMode,
) -> Option<&'static str> {
    if mode == SymbolMode::Off {
        Some(OFF)
    } else if main.addresses == 0 || main.with_lines > 0 || has_units {
        None
    } else if main.named == 0 {
        Some(STRIPPED)
    } else if mode == SymbolMode::Functions {
        Some(FUNCTIONS)
    } else {
        Some(NO_LINES)
    }
}

/// Returns whether `note` is one of those in this module, of this process or of another.
pub(super) fn is_about_names(note: &str) -> bool {
    let begins = [
        "the program is stripped: ",
        "the program has no debug information: ",
        "symbols are off ",
        "only functions are looked up ",
        "the debug information of ",
        "code of ",
        "functions are shown as offsets, because ",
    ];
    begins.iter().any(|begin| note.starts_with(begin))
        || note.contains(" files of split debug information (`.dwo`) are missing")
}

/// The most modules that one note names.
const NAMED: usize = 8;

/// Returns the note about `modules` whose debug information is compressed with zstd.
pub(super) fn about_compressed(modules: &[String]) -> Option<String> {
    (!modules.is_empty()).then(|| {
        format!(
            "the debug information of {} is compressed with zstd, which a service does not read: files, lines and inlined \
             functions are missing; `heapray symbolize` adds them, or link with `--compress-debug-sections=zlib`",
            listed(modules)
        )
    })
}

/// Returns the note about `files` of split debug information that were not found.
pub(super) fn about_missing_units(files: &BTreeSet<PathBuf>) -> Option<String> {
    let first = files.first()?;
    Some(format!(
        "{} files of split debug information (`.dwo`) are missing, for example {}: inlined functions in that code are not \
         shown, and lines may be those of inlined code; keep the files where the compiler wrote them, or build with \
         `split-debuginfo = \"packed\"` and keep the `.dwp` file beside the program",
        files.len(),
        first.display()
    ))
}

fn listed(modules: &[String]) -> String {
    let mut names = modules[..modules.len().min(NAMED)].join(", ");
    if modules.len() > NAMED {
        names.push_str(&format!(" and {} more", modules.len() - NAMED));
    }
    names
}

/// Returns the note about names that are missing because a signal has ended the helper process that looked them up.
pub(super) fn about_helper(signal: i32) -> String {
    let why = reason_of(signal);
    format!(
        "functions are shown as offsets, because signal {signal} ended the process that looks up their names{why}"
    )
}

/// Returns one note about all `modules` that could not be read for the given reason.
pub(super) fn about_modules(modules: &[String], reason: &str) -> Option<String> {
    if modules.is_empty() {
        return None;
    }
    let names = listed(modules);
    Some(format!(
        "code of {names} is shown as offsets, because the file {reason}"
    ))
}
