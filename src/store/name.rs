//! Names of files that come and go.
//!
//! ```text
//! .heapray-4711-0123456789abcdef            a draft, the probe of a directory, or room set aside
//! heapray-4711-0123456789abcdef-1.spool     an event log; the last number counts a process's sessions
//! heapray-4711-0123456789abcdef-1.try1.spool     one that a later process began to recover
//! heapray-4711-0123456789abcdef-1.kept.spool     one that nobody recovers by himself: for the command line
//! ```
//!
//! A process's number says nothing: in a container it is always 1. So each name has 64 random bits, and whether its owner
//! still lives is told by the file's lock ([`super::held`]).

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Every draft's name begins so.
const DRAFT: &str = ".heapray-";
/// How an event log's name begins and ends.
const SPOOL: (&str, &str) = ("heapray-", ".spool");
/// Times that a log's recovery is begun: what ended the process that did it last may have been the recovery.
const TRIES: u32 = 3;

/// A number that no other call gives, of this process or another one.
pub(super) fn unique() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    // The hasher's keys are random, from the operating system. A forked child has its parent's.
    RandomState::new().hash_one((std::process::id(), call))
}

/// A number of this process's life: another life of the same process number has another one. Never 0.
pub(crate) fn life() -> u64 {
    static LIFE: OnceLock<u64> = OnceLock::new();
    *LIFE.get_or_init(|| unique() | 1)
}

/// A name for a draft.
pub(super) fn draft() -> String {
    format!("{DRAFT}{}-{:016x}", std::process::id(), unique())
}

/// Names for the event log of this process's session `number`: the first has the number of the process's life.
pub(crate) fn spools(number: u32) -> impl Fn() -> String {
    let (pid, middle) = (std::process::id(), Cell::new(life()));
    move || {
        let middle = middle.replace(unique());
        format!("{}{pid}-{middle:016x}-{number}{}", SPOOL.0, SPOOL.1)
    }
}

/// What a file is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// Of no use to anybody once its owner is gone.
    Draft,
    /// An event log, and how often its recovery was begun.
    Spool {
        tries: u32,
        /// Nobody recovers it by himself.
        kept: bool,
    },
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
        let stem = name.strip_prefix(SPOOL.0)?.strip_suffix(SPOOL.1)?;
        if !numbered(stem) {
            return None;
        }
        let mark = stem.rsplit_once('.').map(|(_, mark)| mark);
        let tries = mark
            .and_then(|mark| mark.strip_prefix("try")?.parse().ok())
            .unwrap_or(0);
        Some(Passing::Spool {
            tries,
            kept: mark == Some("kept") || tries >= TRIES,
        })
    }
}

/// The name of an event log whose recovery begins once more.
pub(super) fn tried(name: &str) -> String {
    let tries = match Passing::of(OsStr::new(name)) {
        Some(Passing::Spool { tries, .. }) => tries,
        _ => 0,
    };
    marked(name, &format!(".try{}", tries + 1))
}

/// The name of an event log as it was called at first.
pub(super) fn untried(name: &str) -> String {
    marked(name, "")
}

/// The name of an event log that nobody is to recover by himself.
pub(super) fn kept(name: &str) -> String {
    marked(name, ".kept")
}

fn marked(name: &str, mark: &str) -> String {
    let stem = name.strip_suffix(SPOOL.1).unwrap_or(name);
    let stem = stem.split_once('.').map_or(stem, |(stem, _)| stem);
    format!("{stem}{mark}{}", SPOOL.1)
}

/// The life of the process that an event log is of, 0 if it is not known, and the number of its session, 1 for the first.
pub(super) fn session_of(name: &str) -> (u64, u64) {
    let name = untried(name);
    let stem = name.strip_suffix(SPOOL.1).unwrap_or(&name);
    let mut parts = stem.rsplit('-');
    let number = parts.next().and_then(|part| part.parse().ok());
    let life = parts.next().filter(|part| part.len() == 16);
    let life = life.and_then(|part| u64::from_str_radix(part, 16).ok());
    (life.unwrap_or(0), number.unwrap_or(1))
}

/// Begins with a process's number and a hyphen: other programs' temporary files may begin as ours do.
fn numbered(rest: &str) -> bool {
    rest.split_once('-').is_some_and(|(pid, _)| is_number(pid))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_the_same() {
        let names: std::collections::HashSet<String> = (0..10_000).map(|_| draft()).collect();
        assert_eq!(names.len(), 10_000);
    }

    #[test]
    fn our_names_are_known_and_those_of_others_are_not() {
        let of = |name: &str| Passing::of(OsStr::new(name));
        let spool_of = |tries, kept| Some(Passing::Spool { tries, kept });
        assert_eq!(of(&draft()), Some(Passing::Draft));
        for old in [
            ".heapray-1-0",
            ".heapray-1-probe",
            ".heapray-1-room",
            ".1795252380250-1",
        ] {
            assert_eq!(of(old), Some(Passing::Draft), "{old}");
        }
        let next = spools(7);
        let spool = next();
        assert_ne!(spool, next());
        assert_eq!(of(&spool), spool_of(0, false));
        assert_eq!(session_of(&spool), (life(), 7));
        let old = "heapray-1-1795252380250-2.spool";
        assert_eq!((of(old), session_of(old)), (spool_of(0, false), (0, 2)));
        let mut name = spool.clone();
        for tries in 1..=TRIES {
            name = tried(&name);
            assert_eq!(of(&name), spool_of(tries, tries == TRIES), "{name}");
            assert_eq!(session_of(&name), (life(), 7));
        }
        assert_eq!(untried(&name), spool);
        assert_eq!(of(&kept(&name)), spool_of(0, true));
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
