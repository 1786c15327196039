//! Names of event logs.
//!
//! ```text
//! heapray-4711-0123456789abcdef-1.spool          the last number counts a process's sessions
//! heapray-4711-0123456789abcdef-1.try1.spool     one that a later process began to recover
//! heapray-4711-0123456789abcdef-1.kept.spool     one that nobody recovers by himself: for the command line
//! ```
//!
//! A process's number says nothing: in a container it is always 1. So each name has 64 random bits, and whether its owner
//! still lives is told by the file's lock ([`crate::os::held`]).

use std::cell::Cell;

use crate::os::unique::{life, unique};

/// How an event log's name begins and ends.
const SPOOL: (&str, &str) = ("heapray-", ".spool");
/// Times that a log's recovery is begun: what ended the process that did it last may have been the recovery.
const TRIES: u32 = 3;

/// Names for the event log of this process's session `number`: the first has the number of the process's life.
pub(crate) fn new_names(number: u32) -> impl Fn() -> String {
    let (pid, middle) = (std::process::id(), Cell::new(life()));
    move || {
        let middle = middle.replace(unique());
        format!("{}{pid}-{middle:016x}-{number}{}", SPOOL.0, SPOOL.1)
    }
}

/// What an event log's name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogName {
    /// How often its recovery was begun.
    pub(crate) tries: u32,
    /// Nobody recovers it by himself.
    pub(crate) kept: bool,
}

/// `None` for what is not the name of an event log.
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

/// The name of an event log whose recovery begins once more.
pub(crate) fn tried(name: &str) -> String {
    let tries = parse(name).map_or(0, |log| log.tries);
    marked(name, &format!(".try{}", tries + 1))
}

/// The name of an event log as it was called at first.
pub(crate) fn untried(name: &str) -> String {
    marked(name, "")
}

/// The name of an event log that nobody is to recover by himself.
pub(crate) fn kept(name: &str) -> String {
    marked(name, ".kept")
}

fn marked(name: &str, mark: &str) -> String {
    let stem = name.strip_suffix(SPOOL.1).unwrap_or(name);
    let stem = stem.split_once('.').map_or(stem, |(stem, _)| stem);
    format!("{stem}{mark}{}", SPOOL.1)
}

/// The life of the process that an event log is of, 0 if it is not known, and the number of its session, 1 for the first.
pub(crate) fn session_of(name: &str) -> (u64, u64) {
    let name = untried(name);
    let stem = name.strip_suffix(SPOOL.1).unwrap_or(&name);
    let mut parts = stem.rsplit('-');
    let number = parts.next().and_then(|part| part.parse().ok());
    let life = parts.next().filter(|part| part.len() == 16);
    let life = life.and_then(|part| u64::from_str_radix(part, 16).ok());
    (life.unwrap_or(0), number.unwrap_or(1))
}

/// Begins with a process's number and a hyphen: other programs' temporary files may begin as ours do.
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
