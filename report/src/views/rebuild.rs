//! What the transformations of reports share: call stacks copied with other frames, call sites that became one, and
//! sums that agree with the sites.

use std::collections::HashMap;

use crate::hash::FastMap;
use crate::model::{
    Allocator, Frame, FrameId, Place, Report, Site, StackId, Stacks, StrId, Strings, Survivor,
    Survivors, Tally, ThreadId, Totals,
};

/// Call sites, each (thread, stack, allocator) once, in the order in which they first came.
#[derive(Debug, Default)]
pub(super) struct Sites {
    list: Vec<Site>,
    index: HashMap<(ThreadId, StackId, Allocator), u32>,
}

impl Sites {
    /// Adds `site` to the one that it is the same as, or as a new one; its number.
    pub(super) fn add(&mut self, site: Site) -> u32 {
        let list = &mut self.list;
        let mut new = false;
        let number = *self
            .index
            .entry((site.thread, site.stack, site.allocator))
            .or_insert_with(|| {
                new = true;
                list.push(site);
                u32::try_from(list.len() - 1).expect("fewer sites than 2^32")
            });
        if !new {
            list[number as usize].add(&site);
        }
        number
    }

    pub(super) fn into_list(self) -> Vec<Site> {
        self.list
    }
}

/// Copies call stacks of one tree into another, each node once.
#[derive(Debug)]
pub(super) struct StackCopier<'a> {
    from: &'a Stacks,
    known: FastMap<u64, StackId>,
    path: Vec<(StackId, FrameId)>,
}

impl<'a> StackCopier<'a> {
    pub(super) fn new(from: &'a Stacks) -> Self {
        StackCopier {
            from,
            known: FastMap::default(),
            path: Vec::new(),
        }
    }

    /// The stack in `to` with the frames of `stack`, each as `frame` says.
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
                break StackId::EMPTY;
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

/// A report with the tables and figures of `report`, and no call stacks, sites and survivors of its own yet. What each
/// generation of survivors begins with stays.
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
        sites: Vec::new(),
        timeline: report.timeline.clone(),
        marks: report.marks.clone(),
        survivors: Survivors {
            starts_ms: report.survivors.starts_ms.clone(),
            list: Vec::new(),
        },
        process_memory: report.process_memory.clone(),
        totals: report.totals.clone(),
        conditions: report.conditions.clone(),
    }
}

/// The survivors of `old` after site `n` became `moved[n]` or went.
pub(super) fn moved_survivors(old: &[Survivor], moved: &[Option<u32>]) -> Vec<Survivor> {
    let mut sums: HashMap<(u32, u32), Tally> = HashMap::new();
    for survivor in old {
        if let Some(&Some(site)) = moved.get(survivor.site as usize) {
            *sums.entry((site, survivor.generation)).or_default() += survivor.live;
        }
    }
    sorted(sums)
}

/// Survivors by site and generation, as a list in its order.
pub(super) fn sorted(sums: HashMap<(u32, u32), Tally>) -> Vec<Survivor> {
    let mut list: Vec<Survivor> = sums
        .into_iter()
        .map(|((site, generation), live)| Survivor {
            site,
            generation,
            live,
        })
        .collect();
    list.sort_unstable_by_key(|survivor| (survivor.site, survivor.generation));
    list
}

/// Gives every site of `report` to `change`, and puts what it makes of them into `into`, survivors too.
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
    into.survivors.list = moved_survivors(&report.survivors.list, &moved);
    into
}

/// Sums over `sites`, which are a part of those that `whole` sums up: sizes of single blocks are not known of a part.
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

/// The report with each call stack's frames replaced by what `change` makes of them, root first. Sites whose stacks
/// become the same become one; nothing is lost, so totals stay.
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

/// The frames of a report that is being made, each once.
#[derive(Debug, Default)]
pub(super) struct FrameTable {
    index: HashMap<(Frame, StrId), FrameId>,
    with_places: bool,
}

impl FrameTable {
    /// For `report`, whose frames are forgotten.
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

    /// The handle of `frame` in `report`; `place` is kept of the first one that is the same.
    pub(super) fn intern(&mut self, report: &mut Report, frame: Frame, place: Place) -> FrameId {
        self.put(report, frame, StrId::EMPTY, place)
    }

    /// The same for a frame whose function has a full name, too: one of another full name is another frame.
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

/// A frame of `report` and where its code is.
pub(super) fn placed(report: &Report, FrameId(frame): FrameId) -> (Frame, Place) {
    let frame = frame as usize;
    let place = report.places.get(frame).copied();
    let frame = report.frames.get(frame).copied();
    (frame.unwrap_or_default(), place.unwrap_or_default())
}
