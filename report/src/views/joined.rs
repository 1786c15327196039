//! Frames of the same names as one frame.

use std::collections::HashMap;

use super::rebuild::{FrameTable, StackCopier, placed, rebuild, shell};
use crate::Report;
use crate::model::{Event, FrameId, Site, StackId, StrId};

/// Report in which frames of the same names are one frame.
#[derive(Debug)]
pub struct Joined {
    /// The report.
    pub report: Report,
    /// Its call stack for each of the former report's.
    stacks: Vec<StackId>,
}

impl Joined {
    /// Returns `event` of the former report as one of this.
    #[must_use]
    pub fn event(&self, mut event: Event) -> Event {
        if let Event::Allocation { stack, .. } = &mut event {
            let joined = self.stacks.get(stack.0 as usize);
            *stack = joined.copied().unwrap_or_default();
        }
        event
    }
}

/// Joins the frames of code without lines that a capture keeps apart by their addresses
/// ([`SameNames::Apart`](crate::memray::SameNames)). Returns `None` if there are none.
#[must_use]
pub fn joined(report: &Report) -> Option<Joined> {
    let full_name = |frame: usize| report.full_names.get(frame).copied();
    let mut known = HashMap::new();
    let key = |frame: usize| (report.frames[frame], full_name(frame));
    let has_same = (0..report.frames.len())
        .filter(|&frame| report.own_address(frame).is_some())
        .any(|frame| known.insert(key(frame), frame).is_some());
    if !has_same {
        return None;
    }
    let mut into = shell(report);
    let mut frames = FrameTable::emptied(&mut into);
    let has_full_names = !report.full_names.is_empty();
    let mut intern = |id: FrameId, into: &mut Report| {
        let (frame, place) = placed(report, id);
        let full_name = full_name(id.0 as usize).unwrap_or(StrId::EMPTY);
        if has_full_names {
            frames.intern_in_full(into, frame, full_name, place)
        } else {
            frames.intern(into, frame, place)
        }
    };
    let mut copier = StackCopier::new(&report.stacks);
    let mut stacks = vec![StackId::EMPTY];
    let mut to = std::mem::take(&mut into.stacks);
    for (stack, _) in report.stacks.iter() {
        stacks.push(copier.copy(stack, &mut to, |frame| intern(frame, &mut into)));
    }
    into.stacks = to;
    let report = rebuild(report, into, |_, site| {
        Some(Site {
            stack: stacks.get(site.stack.0 as usize).copied()?,
            ..*site
        })
    });
    Some(Joined { report, stacks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Allocator, ContextId, Module, Place, Tally, ThreadId};

    /// `main` calls `work` from two places, which the second report has no lines for.
    fn report(lines: [u32; 2]) -> Report {
        let mut report = Report::default();
        report.add_frame("main", "/app", 0);
        for line in lines {
            report.add_frame("work", "/app", line);
        }
        report.modules.push(Module::default());
        report.places = (0..3)
            .map(|number| Place {
                module: Some(0),
                address: 100 + number,
                inlined: false,
            })
            .collect();
        let main = report.stacks.child(StackId::EMPTY, FrameId(0));
        for frame in [1, 2] {
            let live = Tally {
                count: 1,
                bytes: u64::from(frame) * 10,
            };
            report.sites.push(Site {
                thread: ThreadId(0),
                stack: report.stacks.child(main, FrameId(frame)),
                context: ContextId::NONE,
                allocator: Allocator::Malloc,
                allocated: live,
                high_water: live,
                live,
                temporary: Tally::default(),
                oldest_live_ms: None,
            });
        }
        report
    }

    #[test]
    fn frames_of_one_name_without_lines_become_one() {
        let apart = report([0, 0]);
        let joined = joined(&apart).unwrap();
        assert_eq!(joined.report.frames.len(), 2);
        let [site] = &joined.report.sites[..] else {
            panic!("one site");
        };
        assert_eq!((site.live.count, site.live.bytes), (2, 30));
        for of in &apart.sites {
            let event = Event::Allocation {
                thread: ThreadId(0),
                context: ContextId::NONE,
                allocator: Allocator::Malloc,
                address: 1,
                size: 1,
                stack: of.stack,
            };
            let Event::Allocation { stack, .. } = joined.event(event) else {
                panic!("an allocation");
            };
            assert_eq!(stack, site.stack);
        }
        assert!(super::joined(&joined.report).is_none());
        assert!(super::joined(&report([1, 2])).is_none());
    }
}
