//! Common parts of the transformations of reports: copying call stacks with other frames, joining call sites, and sums that
//! agree with the sites.

use std::collections::HashMap;

use crate::hash::FastMap;
use crate::model::{
    Frame, FrameId, History, Place, Report, Site, Sites, StackId, Stacks, StrId, Strings,
    Survivors, Tally, Totals,
};

/// Copier of call stacks from one tree into another, each node once.
#[derive(Debug)]
pub(super) struct StackCopier<'a> {
    from: &'a Stacks,
    /// The stack that all copies are below.
    root: StackId,
    known: FastMap<u64, StackId>,
    path: Vec<(StackId, FrameId)>,
}

impl<'a> StackCopier<'a> {
    pub(super) fn new(from: &'a Stacks) -> Self {
        StackCopier::below(StackId::EMPTY, from)
    }

    /// Makes a copier whose copies are below the stack `root`.
    pub(super) fn below(root: StackId, from: &'a Stacks) -> Self {
        StackCopier {
            from,
            root,
            known: FastMap::default(),
            path: Vec::new(),
        }
    }

    /// Returns the stack in `to` with the frames of `stack`, each replaced by `frame`.
    pub(super) fn copy(
        &mut self,
        stack: StackId,
        to: &mut Stacks,
        mut frame: impl FnMut(FrameId) -> FrameId,
    ) -> StackId {
        let mut at = stack;
        let mut copy = loop {
            if let Some(&known) = self.known.get(&u64::from(at.0)) {
                break known;
            }
            let Some(node) = self.from.node(at) else {
                break self.root;
            };
            self.path.push((at, node.frame));
            at = node.parent;
        };
        for (original, of) in self.path.drain(..).rev() {
            copy = to.child(copy, frame(of));
            self.known.insert(u64::from(original.0), copy);
        }
        copy
    }
}

/// Returns a report with the tables and figures of `report`, but without call stacks, sites, survivors and history.
pub(super) fn shell(report: &Report) -> Report {
    Report {
        about: report.about.clone(),
        strings: report.strings.clone(),
        frames: report.frames.clone(),
        full_names: report.full_names.clone(),
        places: report.places.clone(),
        modules: report.modules.clone(),
        stacks: Stacks::default(),
        threads: report.threads.clone(),
        contexts: report.contexts.clone(),
        sites: Vec::new(),
        timeline: report.timeline.clone(),
        marks: report.marks.clone(),
        survivors: Survivors::default(),
        history: History::default(),
        process_memory: report.process_memory.clone(),
        totals: report.totals.clone(),
        conditions: report.conditions.clone(),
    }
}

/// Passes every site of `report` to `change`, and adds the results to `into`, survivors and history
/// too.
pub(super) fn rebuild(
    report: &Report,
    mut into: Report,
    mut change: impl FnMut(&mut Report, &Site) -> Option<Site>,
) -> Report {
    let mut sites = Sites::default();
    let moved: Vec<Option<u32>> = report
        .sites
        .iter()
        .map(|site| change(&mut into, site).map(|site| sites.add(site)))
        .collect();
    into.sites = sites.into_list();
    into.stacks.shrink_to_fit();
    let number = |site: u32| moved.get(site as usize).copied().flatten();
    into.survivors = report.survivors.renumbered(number);
    into.history = report.history.renumbered(number);
    into
}

/// Returns the totals of `sites`, which are a part of those in `whole`. Sizes of single blocks are not known for a part.
pub(super) fn sum_up(whole: &Totals, sites: &[Site]) -> Totals {
    let mut totals = Totals {
        high_water_ms: whole.high_water_ms,
        ..Totals::default()
    };
    for site in sites {
        totals.allocated += site.allocated;
        totals.high_water += site.high_water;
        totals.live += site.live;
        if site.allocated == Tally::default() {
            continue;
        }
        match totals
            .by_allocator
            .iter_mut()
            .find(|(allocator, _)| *allocator == site.allocator)
        {
            Some((_, tally)) => *tally += site.allocated,
            None => totals.by_allocator.push((site.allocator, site.allocated)),
        }
    }
    totals.freed = Tally {
        count: totals.allocated.count.saturating_sub(totals.live.count),
        bytes: totals.allocated.bytes.saturating_sub(totals.live.bytes),
    };
    totals
}

/// Returns the report with each call stack's frames replaced by the result of `change`, root first. Sites whose stacks
/// become the same are joined; nothing is lost, so totals stay.
pub(super) fn restack(
    report: &Report,
    mut change: impl FnMut(&[FrameId], &mut Strings, &mut Vec<(Frame, Place)>),
) -> Report {
    let mut into = shell(report);
    let mut frames = FrameTable::emptied(&mut into);
    let mut known: FastMap<u64, StackId> = FastMap::default();
    let (mut path, mut changed) = (Vec::new(), Vec::new());
    rebuild(report, into, |into, site| {
        let stack = known.entry(u64::from(site.stack.0)).or_insert_with(|| {
            path.clear();
            path.extend(report.stacks.leaf_to_root(site.stack));
            path.reverse();
            changed.clear();
            change(&path, &mut into.strings, &mut changed);
            changed.iter().fold(StackId::EMPTY, |at, &(frame, place)| {
                let frame = frames.intern(into, frame, place);
                into.stacks.child(at, frame)
            })
        });
        Some(Site {
            stack: *stack,
            ..*site
        })
    })
}

/// Returns the report with each frame replaced by the result of `change`. Sites whose stacks become the same are joined, as by
/// [`restack`]. This looks at each node of the call tree once, and not at each frame of each call stack.
pub(super) fn reframe(
    report: &Report,
    mut change: impl FnMut(FrameId, &mut Strings) -> (Frame, Place),
) -> Report {
    let mut into = shell(report);
    let mut frames = FrameTable::emptied(&mut into);
    let mut known: FastMap<u64, FrameId> = FastMap::default();
    let mut stacks = Stacks::default();
    let mut copier = StackCopier::new(&report.stacks);
    let mut changed = rebuild(report, into, |into, site| {
        let stack = copier.copy(site.stack, &mut stacks, |id| {
            *known.entry(u64::from(id.0)).or_insert_with(|| {
                let (frame, place) = change(id, &mut into.strings);
                frames.intern(into, frame, place)
            })
        });
        Some(Site { stack, ..*site })
    });
    changed.stacks = stacks;
    changed.stacks.shrink_to_fit();
    changed
}

/// Frames of a report that is being made, each once.
#[derive(Debug, Default)]
pub(super) struct FrameTable {
    index: HashMap<(Frame, StrId), FrameId>,
    with_places: bool,
}

impl FrameTable {
    /// Makes a table for `report`, whose frames are removed.
    pub(super) fn emptied(report: &mut Report) -> FrameTable {
        let with_places = !report.places.is_empty();
        report.frames.clear();
        report.full_names.clear();
        report.places.clear();
        FrameTable {
            index: HashMap::new(),
            with_places,
        }
    }

    /// Returns the handle of `frame` in `report`. Of equal frames, the `place` of the first one is kept.
    pub(super) fn intern(&mut self, report: &mut Report, frame: Frame, place: Place) -> FrameId {
        self.put(report, frame, StrId::EMPTY, place)
    }

    /// Does the same for a frame whose function also has a full name. Frames with different full names are different.
    pub(super) fn intern_in_full(
        &mut self,
        report: &mut Report,
        frame: Frame,
        full_name: StrId,
        place: Place,
    ) -> FrameId {
        let known = report.frames.len();
        let id = self.put(report, frame, full_name, place);
        if report.frames.len() > known {
            report.full_names.push(full_name);
        }
        id
    }

    fn put(&mut self, report: &mut Report, frame: Frame, full: StrId, place: Place) -> FrameId {
        *self.index.entry((frame, full)).or_insert_with(|| {
            if self.with_places {
                report.places.push(place);
            }
            report.frames.push(frame);
            FrameId(u32::try_from(report.frames.len() - 1).expect("fewer frames than 2^32"))
        })
    }
}

/// Returns a frame of `report` and the place of its code.
pub(super) fn placed(report: &Report, FrameId(frame): FrameId) -> (Frame, Place) {
    let frame = frame as usize;
    let place = report.places.get(frame).copied();
    let frame = report.frames.get(frame).copied();
    (frame.unwrap_or_default(), place.unwrap_or_default())
}
