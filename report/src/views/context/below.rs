//! Call stacks below root frames of their contexts.

use std::collections::HashMap;

use crate::Report;
use crate::model::{Frame, FrameId, Place, StackId, StrId};
use crate::views::rebuild::{StackCopier, rebuild, shell};

/// Returns `report` with each call stack below a root frame that names its context's value of `key`: `[GET /users/{id}]`, or
/// `[no route]` for contexts without the key. So every view, and every tool that reads call stacks, shows memory by context.
///
/// Sums stay. A call stack of several contexts becomes several.
#[must_use]
pub fn by_context(report: &Report, key: &str) -> Report {
    let mut into = shell(report);
    let none = root(&mut into, &format!("no {key}"));
    let values: Vec<StackId> = report
        .contexts
        .iter()
        .map(|context| match context.value(key) {
            Some(value) => root(&mut into, value),
            None => none,
        })
        .collect();
    let mut copiers: HashMap<StackId, StackCopier<'_>> = HashMap::new();
    rebuild(report, into, |into, site| {
        let root = values.get(site.context.0 as usize).copied();
        let root = root.unwrap_or(none);
        let copier = copiers
            .entry(root)
            .or_insert_with(|| StackCopier::below(root, &report.stacks));
        let mut site = *site;
        site.stack = copier.copy(site.stack, &mut into.stacks, |frame| frame);
        Some(site)
    })
}

/// Returns whether [`by_context`] has made the frame.
pub(crate) fn is_of_context(report: &Report, frame: Frame) -> bool {
    let name = report.strings.get(frame.function);
    frame.file == StrId::EMPTY && frame.line == 0 && name.starts_with('[') && name.ends_with(']')
}

/// Returns the call stack of one new frame, `[name]`.
fn root(report: &mut Report, name: &str) -> StackId {
    let function = report.strings.intern(&format!("[{name}]"));
    let known = report
        .frames
        .iter()
        .position(|frame| frame.function == function);
    let frame = known.unwrap_or_else(|| {
        report.frames.push(Frame {
            function,
            file: StrId::EMPTY,
            line: 0,
        });
        if !report.full_names.is_empty() {
            report.full_names.push(function);
        }
        if !report.places.is_empty() {
            report.places.push(Place::default());
        }
        report.frames.len() - 1
    });
    let frame = FrameId(u32::try_from(frame).expect("fewer frames than 2^32"));
    report.stacks.child(StackId::EMPTY, frame)
}

#[cfg(test)]
mod tests {
    use super::super::testing::report;
    use super::*;

    #[test]
    fn each_call_stack_is_below_the_value_of_its_context() {
        let before = report();
        let after = by_context(&before, "tenant");
        let stacks: Vec<Vec<&str>> = after
            .sites
            .iter()
            .map(|site| {
                let frames = after.stacks.leaf_to_root(site.stack);
                let names = frames
                    .map(|FrameId(frame)| after.strings.get(after.frames[frame as usize].function));
                names.collect()
            })
            .collect();
        let none = ["leaf", "main", "[no tenant]"];
        assert_eq!(stacks, [none, none, ["leaf", "main", "[acme]"]]);
        assert_eq!(after.totals, before.totals);
        let bytes: Vec<u64> = after.sites.iter().map(|site| site.live.bytes).collect();
        assert_eq!(bytes, [10, 20, 40]);
        assert_eq!(after.survivors.list[0].site, 2);
    }
}
