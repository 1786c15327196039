//! Call stacks in the form of the source code: `async fn` after `async fn`, without the frames that the compiler and the
//! runtime add between them.

use std::collections::HashMap;

use super::names::{is_plumbing, logical_name};
use super::rebuild::{placed, restack};
use super::{Kind, Origins};
use crate::Report;
use crate::model::{Frame, StrId};

/// Returns `report` with readable names, and without plumbing.
///
/// Functions lose their generic arguments, trait casts, hashes and closures ([`logical_name`]). Frames of libraries that
/// only poll, call or catch the code of others are left out, unless they are a stack's leaf. An `async fn` and its body are
/// one frame. The service's own frames all stay, and so does true recursion. Memory and totals are the same as before.
#[must_use]
pub fn readable(report: &Report) -> Report {
    let origins = Origins::of(report);
    let mut names: HashMap<StrId, (StrId, bool)> = HashMap::new();
    let mut raw_of_last: Vec<StrId> = Vec::new();
    restack(report, |path, strings, out| {
        raw_of_last.clear();
        for (at, &id) in path.iter().enumerate() {
            let (frame, place) = placed(report, id);
            let (function, plumbing) = *names.entry(frame.function).or_insert_with(|| {
                let raw = report.strings.get(frame.function);
                (strings.intern(&logical_name(raw)), is_plumbing(raw))
            });
            let is_leaf = at + 1 == path.len();
            if plumbing && !is_leaf && origins.kind(id) != Kind::Own {
                continue;
            }
            let shown = Frame { function, ..frame };
            if let (Some((last, _)), Some(raw)) = (out.last(), raw_of_last.last())
                && (last.function, last.file) == (shown.function, shown.file)
                && *raw != frame.function
            {
                // A function and a closure in it: the inner line is the one where the work went on.
                out.pop();
                raw_of_last.pop();
            }
            out.push((shown, place));
            raw_of_last.push(frame.function);
        }
    })
}
