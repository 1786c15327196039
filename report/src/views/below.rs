//! Call stacks without their outer frames.

use super::is_plumbing;
use super::rebuild::{placed, restack};
use crate::Report;

/// Returns `report` with call stacks that begin below the last of the functions that are `outer`, by their names, and below
/// the calls after it that only pass on. Stacks without such a function stay as they are.
#[must_use]
pub fn below(report: &Report, outer: impl Fn(&str) -> bool) -> Report {
    let names = report.frames.iter().map(|frame| frame.function);
    let names = names.map(|name| report.strings.get(name));
    let (is_outer, passes_on): (Vec<bool>, Vec<bool>) =
        names.map(|name| (outer(name), is_plumbing(name))).unzip();
    restack(report, |path, _, out| {
        let last = path.iter().rposition(|frame| is_outer[frame.0 as usize]);
        let mut below = path;
        if let Some(last) = last {
            below = &path[last + 1..];
            while let [first, rest @ ..] = below
                && passes_on[first.0 as usize]
            {
                below = rest;
            }
        }
        out.extend(below.iter().map(|&frame| placed(report, frame)));
    })
}

#[cfg(test)]
mod tests {
    use super::below;
    use crate::Report;
    use crate::model::{Allocator, ContextId, FrameId, Site, StackId, Tally, ThreadId};

    #[test]
    fn stacks_begin_below_the_last_outer_function_and_what_passes_on() {
        let mut report = Report::default();
        for names in [
            &[
                "main",
                "scope::run",
                "std::panic::catch_unwind",
                "load",
                "call_once",
            ][..],
            &["scope::run", "work", "scope::run", "rows"],
            &["main", "call_once", "other"],
        ] {
            let mut stack = StackId::EMPTY;
            for name in names {
                report.add_frame(name, "a.rs", 1);
                let frame = FrameId(report.frames.len() as u32 - 1);
                stack = report.stacks.child(stack, frame);
            }
            report.sites.push(Site {
                context: ContextId::NONE,
                thread: ThreadId(0),
                stack,
                allocator: Allocator::Malloc,
                allocated: Tally::default(),
                high_water: Tally::default(),
                live: Tally::default(),
                temporary: Tally::default(),
                oldest_live_ms: None,
            });
        }
        let below = below(&report, |name| name.starts_with("scope::"));
        let shown = below.sites.iter().map(|site| {
            let mut names: Vec<&str> = below
                .stacks
                .leaf_to_root(site.stack)
                .map(|frame| below.strings.get(below.frames[frame.0 as usize].function))
                .collect();
            names.reverse();
            names.join(";")
        });
        let shown: Vec<String> = shown.collect();
        assert_eq!(shown, ["load;call_once", "rows", "main;call_once;other"]);
    }
}
