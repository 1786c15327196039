//! Names of event logs.
//!
//! ```text
//! heapray-4711-0123456789abcdef-1.spool          the last number counts a process's sessions
//! heapray-4711-0123456789abcdef-1.try1.spool     a later process began to recover it
//! heapray-4711-0123456789abcdef-1.kept.spool     only `heapray recover` recovers it
//! ```
//!
//! A process's number is not unique: in a container it is always 1. So each name has 64 random bits, and the file's lock
//! shows whether its owner is alive ([`crate::os::held`]).

use std::cell::Cell;

use crate::os::unique::{life, unique};

/// The prefix and the suffix of an event log's name.
const SPOOL: (&str, &str) = ("heapray-", ".spool");
/// The most attempts to recover a log. The recovery itself may have ended the process that tried it last.
const TRIES: u32 = 3;

/// Returns a generator of names for the event log of this process's session `number`. The first name has the number of the
/// process's life.
pub(crate) fn new_names(number: u32) -> impl Fn() -> String {
    let (pid, middle) = (std::process::id(), Cell::new(life()));
    move || {
        let middle = middle.replace(unique());
        format!("{}{pid}-{middle:016x}-{number}{}", SPOOL.0, SPOOL.1)
    }
}

/// The parts of an event log's name that describe its recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogName {
    /// The number of times that its recovery was begun.
    pub(crate) tries: u32,
    /// Whether only `heapray recover` recovers it.
    pub(crate) kept: bool,
}

/// Parses a file name. Returns `None` if it is not the name of an event log.
pub(crate) fn parse(name: &str) -> Option<LogName> {
    let stem = name.strip_prefix(SPOOL.0)?.strip_suffix(SPOOL.1)?;
    if !numbered(stem) {
        return None;
    }
    let mark = stem.rsplit_once('.').map(|(_, mark)| mark);
    let tries = mark
        .and_then(|mark| mark.strip_prefix("try")?.parse().ok())
        .unwrap_or(0);
    Some(LogName {
        tries,
        kept: mark == Some("kept") || tries >= TRIES,
    })
}

/// Returns the name of an event log whose recovery begins once more.
pub(crate) fn tried(name: &str) -> String {
    let tries = parse(name).map_or(0, |log| log.tries);
    marked(name, &format!(".try{}", tries + 1))
}

/// Returns the original name of an event log.
pub(crate) fn untried(name: &str) -> String {
    marked(name, "")
}

/// Returns the name of an event log that only `heapray recover` recovers.
pub(crate) fn kept(name: &str) -> String {
    marked(name, ".kept")
}

fn marked(name: &str, mark: &str) -> String {
    let stem = name.strip_suffix(SPOOL.1).unwrap_or(name);
    let stem = stem.split_once('.').map_or(stem, |(stem, _)| stem);
    format!("{stem}{mark}{}", SPOOL.1)
}

/// Returns the number of the life of the event log's process (0 if it is unknown), and the number of the session, from 1.
pub(crate) fn session_of(name: &str) -> (u64, u64) {
    let name = untried(name);
    let stem = name.strip_suffix(SPOOL.1).unwrap_or(&name);
    let mut parts = stem.rsplit('-');
    let number = parts.next().and_then(|part| part.parse().ok());
    let life = parts.next().filter(|part| part.len() == 16);
    let life = life.and_then(|part| u64::from_str_radix(part, 16).ok());
    (life.unwrap_or(0), number.unwrap_or(1))
}

/// Returns whether `rest` begins with a process's number and a hyphen. Other programs' temporary files may have our prefix.
pub(crate) fn numbered(rest: &str) -> bool {
    rest.split_once('-').is_some_and(|(pid, _)| is_number(pid))
}

pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_names_are_known_and_those_of_others_are_not() {
        let log = |tries, kept| Some(LogName { tries, kept });
        let next = new_names(7);
        let name = next();
        assert_ne!(name, next());
        assert_eq!(parse(&name), log(0, false));
        assert_eq!(session_of(&name), (life(), 7));
        let old = "heapray-1-1795252380250-2.spool";
        assert_eq!((parse(old), session_of(old)), (log(0, false), (0, 2)));
        let mut marked = name.clone();
        for tries in 1..=TRIES {
            marked = tried(&marked);
            assert_eq!(parse(&marked), log(tries, tries == TRIES), "{marked}");
            assert_eq!(session_of(&marked), (life(), 7));
        }
        assert_eq!(untried(&marked), name);
        assert_eq!(parse(&kept(&marked)), log(0, true));
        for other in ["heapray-reports", "heapray-notes.spool", "x.spool", ".."] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
