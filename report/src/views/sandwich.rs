//! Callers and callees of one function.

use super::rebuild::{placed, rebuild, restack, shell, sum_up};
use crate::Report;
use crate::model::{Frame, FrameId};

/// Sums of a function and its callees, seen from both sides. Both reports have the same memory: every call site with the
/// function on its stack, once, even if the function is on it several times.
#[derive(Debug, Clone, PartialEq)]
pub struct Sandwich {
    /// Stacks from the function down to their leaves. They begin at its outermost call.
    pub callees: Report,
    /// Stacks from the function's outermost call up to their roots, root last: the function's callers are its branches.
    pub callers: Report,
}

/// Returns the callers and callees of the function whose frames `is_it` recognizes. Its lines are separate, as in every call
/// tree; a function of several lines has several roots in both.
///
/// Totals are those of the stacks with the function; timeline and the process's memory stay those of the process.
#[must_use]
pub fn sandwich(report: &Report, is_it: impl Fn(FrameId, &Frame) -> bool) -> Sandwich {
    let it: Vec<bool> = (0..)
        .zip(&report.frames)
        .map(|(number, frame)| is_it(FrameId(number), frame))
        .collect();
    let is_it = |frame: FrameId| it.get(frame.0 as usize).copied().unwrap_or(false);
    // Sites without the function are removed first, so that every other site has an outermost call.
    let mut part = shell(report);
    part.stacks.clone_from(&report.stacks);
    let mut with_it = rebuild(report, part, |_, site| {
        report
            .stacks
            .leaf_to_root(site.stack)
            .any(is_it)
            .then_some(*site)
    });
    with_it.totals = sum_up(&report.totals, &with_it.sites);
    let outermost = |path: &[FrameId]| path.iter().position(|&frame| is_it(frame)).unwrap_or(0);
    Sandwich {
        callees: restack(&with_it, |path, _, out| {
            let below = &path[outermost(path)..];
            out.extend(below.iter().map(|&frame| placed(report, frame)));
        }),
        callers: restack(&with_it, |path, _, out| {
            let above = &path[..path.len().min(outermost(path) + 1)];
            out.extend(above.iter().rev().map(|&frame| placed(report, frame)));
        }),
    }
}
