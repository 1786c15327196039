//! The process that was recorded, and the directories of its sources.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use heapray_report::known::Known;
use heapray_report::memray::in_one_line;
use heapray_report::model::{self, About, Mark};
use heapray_report::sources::{Directories, Unit};

use super::places::FrameTable;
use crate::collector::Process;
use crate::collector::snapshot::Module;
use crate::config::SymbolMode;
use crate::hex;
use crate::os::file_hash;

/// memray's number for `malloc` (capture format, section 1).
const MALLOC: u8 = 3;

/// The most directories of one kind that a report names.
const DIRS_LIMIT: usize = 64;

/// Returns the directories of the sources of the frames in `table`. `units` are those of `program`, the executable's name.
pub(super) fn code(table: &FrameTable, units: &BTreeSet<Unit>, program: &str) -> About {
    let files = table.files();
    let files = files.into_iter().map(|file| table.strings.get(file));
    let dirs = Directories::of(files, units, program);
    let Said {
        own_crates,
        known,
        source_url,
        symbols: _,
    } = said();
    About {
        library_dir: dirs.library,
        package_dirs: dirs.packages.into_iter().take(DIRS_LIMIT).collect(),
        source_dirs: dirs.sources.into_iter().take(DIRS_LIMIT).collect(),
        own_crates,
        known,
        source_root: dirs.root,
        source_url,
        producer: concat!("heapray ", env!("CARGO_PKG_VERSION")).to_owned(),
        python_allocator: MALLOC,
        ..About::default()
    }
}

/// What the service says about its sources and its symbols.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Said {
    /// The crates that reports name as the service's own: names and patterns.
    pub(crate) own_crates: Vec<String>,
    /// Rules that make call sites known.
    pub(crate) known: Vec<Known>,
    /// The template of its sources' addresses; empty without one.
    pub(crate) source_url: String,
    /// How much of the names of its code is looked up.
    pub(crate) symbols: SymbolMode,
}

static SAID: OnceLock<Said> = OnceLock::new();

/// Sets what this process's reports say about its sources. A process has one profiler: only the first call counts.
pub(crate) fn set_said(said: Said) {
    SAID.get_or_init(|| said);
}

/// Returns what the service says about its sources.
pub(crate) fn said() -> Said {
    SAID.get().cloned().unwrap_or_default()
}

/// Returns whether this process looks up any names of its code.
#[cfg(any(feature = "http", feature = "push"))]
pub(crate) fn looks_up_names() -> bool {
    symbols() != SymbolMode::Off
}

/// Returns how much of the names of its code this process looks up.
pub(super) fn symbols() -> SymbolMode {
    SAID.get().map(|said| said.symbols).unwrap_or_default()
}

/// Returns `about` with the data of `process`.
pub(crate) fn process(about: About, process: Process) -> About {
    About {
        command_line: process.command_line,
        pid: process.pid,
        start_ms: unix_ms(process.started),
        ..about
    }
}

/// Converts `module` for formats that contain addresses.
pub(super) fn module(module: &Module) -> model::Module {
    // A module without code has no addresses, but it stays in the list, so that the numbers of the others do not change.
    let (start, limit, offset) = module.code.map_or((module.start, module.end, 0), |code| {
        (code.start, code.end, code.offset)
    });
    model::Module {
        path: in_one_line(&module.path.to_string_lossy()).into_owned(),
        build_id: hex::digits(&module.build_id),
        start,
        limit,
        offset,
        address: start.wrapping_sub(module.load_bias),
        hash: if module.build_id.is_empty() && module.path.is_absolute() {
            file_hash::of(&module.path).map_or_else(String::new, |hash| hex::digits(&hash))
        } else {
            String::new()
        },
    }
}

/// Returns `mark` with a name that is safe to show: one line without control characters.
pub(crate) fn mark(mark: &Mark) -> Mark {
    Mark {
        name: in_one_line(&mark.name).into_owned(),
        ..mark.clone()
    }
}

pub(super) fn unix_ms(time: SystemTime) -> i64 {
    let ms =
        |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => ms(since),
        Err(before) => -ms(before.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_epoch_are_negative() {
        let second = std::time::Duration::from_secs(1);
        assert_eq!(unix_ms(UNIX_EPOCH + second), 1000);
        assert_eq!(unix_ms(UNIX_EPOCH - second), -1000);
    }
}
