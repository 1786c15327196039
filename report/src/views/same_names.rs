//! Makes the names of a function equal in builds with different manglings, where a plain name alone differs.

use std::collections::HashSet;

use super::plain_name::{is_of_any_type, trait_name};
use crate::Report;
use crate::model::StrId;

/// Gives functions of `reports` that are the same one name in all of them.
///
/// `impl<T: Job> Run for T` has one name in a build with legacy mangling, `<T as Run>::run`, and one for each type in a
/// build with v0 mangling, `<app::Mail as Run>::run`. If one report has the former name, the latter name at the same line of
/// the same file gets its plain name in all reports. Call this before [`named`](super::named()), which removes full names.
pub fn agree_on_names(reports: &mut [Report]) {
    let mut of_any_type: HashSet<(String, String, u32)> = HashSet::new();
    for report in &*reports {
        for number in 0..report.frames.len() {
            let full = report.strings.get(full_name(report, number));
            if is_of_any_type(full)
                && let Some(function) = trait_name(full)
            {
                let frame = report.frames[number];
                let file = report.strings.get(frame.file).to_owned();
                of_any_type.insert((function, file, frame.line));
            }
        }
    }
    if of_any_type.is_empty() {
        return;
    }
    for report in reports {
        for number in 0..report.frames.len() {
            let full = full_name(report, number);
            let Some(function) = trait_name(report.strings.get(full)) else {
                continue;
            };
            let frame = report.frames[number];
            let file = report.strings.get(frame.file).to_owned();
            let key = (function, file, frame.line);
            if of_any_type.contains(&key) {
                if report.full_names.is_empty() {
                    report.full_names = report.frames.iter().map(|f| f.function).collect();
                }
                report.frames[number].function = report.strings.intern(&key.0);
            }
        }
    }
}

fn full_name(report: &Report, number: usize) -> StrId {
    let own = report.frames[number].function;
    report.full_names.get(number).copied().unwrap_or(own)
}
