//! Which names of functions a report shows: plain ones, or those that the compiler made.

use std::collections::HashMap;

use super::plain_name::{plain_name, short_name};
use super::rebuild::{placed, restack};
use crate::Report;
use crate::model::{Frame, StrId, Strings};

/// How functions are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Names {
    /// By their plain names, no longer than [`LONGEST_SHOWN`](super::LONGEST_SHOWN): call sites that differ in type
    /// parameters alone are one. The default.
    #[default]
    Plain,
    /// As the compiler calls them, with generic arguments and whatever their length.
    Full,
}

/// `report` with these names and no others; `None` if it has them. Memory and totals are the same as before.
///
/// With [`Names::Full`] frames, call stacks and sites keep their numbers. With [`Names::Plain`] those that have become
/// equal are one, so that events of the former report do not fit it.
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

/// `report` with plain names, and its own beside them; `None` if it has both, or if they are the same. Frames, call stacks
/// and sites keep their numbers.
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
    restack(report, |path, strings, out| {
        out.extend(path.iter().map(|&id| {
            let (frame, place) = placed(report, id);
            let function = *known
                .entry((frame.function, is_python(report, frame)))
                .or_insert_with_key(|&(name, python)| {
                    shown(strings, report.strings.get(name), python)
                });
            (Frame { function, ..frame }, place)
        }));
    })
}

fn shown(strings: &mut Strings, name: &str, is_python: bool) -> StrId {
    if is_python {
        strings.intern(&short_name(name))
    } else {
        strings.intern(&short_name(&plain_name(name)))
    }
}

/// Whether no name would change.
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

/// Python's names are those of the source.
fn is_python(report: &Report, frame: Frame) -> bool {
    let file = report.strings.get(frame.file);
    file.starts_with('<')
        || [".py", ".pyx", ".pyc"]
            .iter()
            .any(|kind| file.ends_with(kind))
}
