//! Names of files that come and go: drafts (`.heapray-4711-0123456789abcdef`), which are also the probe of a directory and
//! room set aside, and event logs.

use std::ffi::OsStr;

use crate::os::unique::unique;
use crate::session::log_name::{self, LogName, is_number, numbered};

/// Every draft's name begins so.
const DRAFT: &str = ".heapray-";

/// A name for a draft.
pub(super) fn draft() -> String {
    format!("{DRAFT}{}-{:016x}", std::process::id(), unique())
}

/// What a file is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// Of no use to anybody once its owner is gone.
    Draft,
    /// An event log.
    Log(LogName),
}

impl Passing {
    /// `None` for what is not one of these.
    pub(super) fn of(name: &OsStr) -> Option<Passing> {
        let name = name.to_str()?;
        if let Some(rest) = name.strip_prefix(DRAFT) {
            return numbered(rest).then_some(Passing::Draft);
        }
        // As drafts in the reports' folder were called once: `.ID-PID`.
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
