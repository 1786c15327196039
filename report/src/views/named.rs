//! The names of functions in a report: plain ones, or the compiler's.

use std::collections::HashMap;

use super::plain_name::{plain_name, short_name};
use super::rebuild::{placed, reframe};
use crate::Report;
use crate::model::{Frame, StrId, Strings};

/// Form of functions' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Names {
    /// Plain names, no longer than [`LONGEST_SHOWN`](super::LONGEST_SHOWN): call sites that differ only in type parameters
    /// are joined. The default.
    #[default]
    Plain,
    /// The compiler's names, with generic arguments and in full length.
    Full,
}

/// Returns `report` with these names only, or `None` if it has them already. Memory and totals are the same as before.
///
/// With [`Names::Full`] frames, call stacks and sites keep their numbers. With [`Names::Plain`] those that have become equal
/// are joined, so that events of the former report do not fit it.
#[must_use]
pub fn named(report: &Report, names: Names) -> Option<Report> {
    match names {
        Names::Full if report.full_names.is_empty() => None,
        Names::Full => {
            let mut full = report.clone();
            let full_names = std::mem::take(&mut full.full_names);
            for (frame, name) in full.frames.iter_mut().zip(full_names) {
                frame.function = name;
            }
            Some(full)
        }
        Names::Plain if report.full_names.is_empty() && all_plain(report) => None,
        Names::Plain => Some(plain(report)),
    }
}

/// Returns `report` with plain names, and with its own beside them, or `None` if it has both, or if they are the same.
/// Frames, call stacks and sites keep their numbers.
pub(crate) fn with_both_names(report: &Report) -> Option<Report> {
    if !report.full_names.is_empty() || all_plain(report) {
        return None;
    }
    let mut both = report.clone();
    both.full_names = report.frames.iter().map(|frame| frame.function).collect();
    for frame in &mut both.frames {
        let name = report.strings.get(frame.function);
        frame.function = shown(&mut both.strings, name, is_python(report, *frame));
    }
    Some(both)
}

fn plain(report: &Report) -> Report {
    let mut known = HashMap::new();
    reframe(report, |id, strings| {
        let (frame, place) = placed(report, id);
        let function = *known
            .entry((frame.function, is_python(report, frame)))
            .or_insert_with_key(|&(name, python)| shown(strings, report.strings.get(name), python));
        (Frame { function, ..frame }, place)
    })
}

fn shown(strings: &mut Strings, name: &str, is_python: bool) -> StrId {
    if is_python {
        strings.intern(&short_name(name))
    } else {
        strings.intern(&short_name(&plain_name(name)))
    }
}

/// Returns whether no name would change.
fn all_plain(report: &Report) -> bool {
    let mut distinct: Vec<(StrId, bool)> = report
        .frames
        .iter()
        .map(|&frame| (frame.function, is_python(report, frame)))
        .collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct.into_iter().all(|(function, python)| {
        let name = report.strings.get(function);
        (python || plain_name(name) == name) && short_name(name) == name
    })
}

/// Returns whether the name is Python's, which is the same as in the source.
fn is_python(report: &Report, frame: Frame) -> bool {
    let file = report.strings.get(frame.file);
    file.starts_with('<')
        || [".py", ".pyx", ".pyc"]
            .iter()
            .any(|kind| file.ends_with(kind))
}
