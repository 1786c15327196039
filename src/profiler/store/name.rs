//! Names of temporary files: event logs, and drafts (`.heapray-4711-0123456789abcdef`), which also serve to probe a directory
//! and to reserve disk space.

use std::ffi::OsStr;

use crate::os::unique::unique;
use crate::session::log_name::{self, LogName, is_number, numbered};

/// Prefix of every draft's name.
const DRAFT: &str = ".heapray-";

/// Returns a new name for a draft.
pub(super) fn draft() -> String {
    format!("{DRAFT}{}-{:016x}", std::process::id(), unique())
}

/// The kind of a file, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// A draft: useless once its owner is dead.
    Draft,
    /// An event log.
    Log(LogName),
}

impl Passing {
    /// Returns the kind of the file `name`; `None` if it is not a temporary file of ours.
    pub(super) fn of(name: &OsStr) -> Option<Passing> {
        let name = name.to_str()?;
        if let Some(rest) = name.strip_prefix(DRAFT) {
            return numbered(rest).then_some(Passing::Draft);
        }
        // The former name of drafts in the reports' folder: `.ID-PID`.
        if let Some(rest) = name.strip_prefix('.') {
            let (id, pid) = rest.split_once('-')?;
            return (is_number(id) && is_number(pid)).then_some(Passing::Draft);
        }
        log_name::parse(name).map(Passing::Log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_names_are_known_and_those_of_others_are_not() {
        let of = |name: &str| Passing::of(OsStr::new(name));
        assert_ne!(draft(), draft());
        assert_eq!(of(&draft()), Some(Passing::Draft));
        for old in [
            ".heapray-1-0",
            ".heapray-1-probe",
            ".heapray-1-room",
            ".1795252380250-1",
        ] {
            assert_eq!(of(old), Some(Passing::Draft), "{old}");
        }
        let log = "heapray-1-0123456789abcdef-2.spool";
        assert!(matches!(of(log), Some(Passing::Log(_))));
        for other in [
            ".heapray-AbC123",
            "heapray-reports",
            "heapray-notes.spool",
            "x.spool",
            ".1-x",
            "..",
            "memray-report.bin",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
