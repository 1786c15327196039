//! The parts of the file, each made when it is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::{Serialize, Serializer};

use crate::formats::spelling;
use crate::memray::in_one_line;
use crate::model::{self, Allocator, ContextId, FrameId, Report, ThreadId};
use crate::stats::Estimates;
use crate::views::{self, CallTree, Kind, Origins, by_thread, own_sites};

#[derive(Serialize, Clone, Copy)]
struct Tally {
    count: u64,
    bytes: u64,
}

impl From<model::Tally> for Tally {
    fn from(tally: model::Tally) -> Self {
        Tally {
            count: tally.count,
            bytes: tally.bytes,
        }
    }
}

/// Returns `None` for 0, which is left out.
fn some(tally: model::Tally) -> Option<Tally> {
    (tally != model::Tally::default()).then(|| tally.into())
}

#[derive(Serialize)]
struct Sums {
    #[serde(skip_serializing_if = "Option::is_none")]
    allocated: Option<Tally>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_water: Option<Tally>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<Tally>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temporary: Option<Tally>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_live_ms: Option<u64>,
}

impl From<views::Sums> for Sums {
    fn from(sums: views::Sums) -> Self {
        Sums {
            allocated: some(sums.allocated),
            high_water: some(sums.high_water),
            live: some(sums.live),
            temporary: some(sums.temporary),
            oldest_live_ms: sums.oldest_live_ms,
        }
    }
}

#[derive(Serialize)]
pub(super) struct About<'a> {
    command_line: Cow<'a, str>,
    pid: u32,
    start_ms: i64,
    end_ms: i64,
    events: u64,
    producer: Cow<'a, str>,
}

impl<'a> About<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        let about = &report.about;
        About {
            command_line: in_one_line(&about.command_line),
            pid: about.pid,
            start_ms: about.start_ms,
            end_ms: about.end_ms,
            events: about.events,
            producer: in_one_line(&about.producer),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Conditions<'a> {
    still_recording: bool,
    hooks: Cow<'a, str>,
    lost_events: u64,
    lost_since_ms: Option<u64>,
    stacks_cut: u64,
    stacks_incomplete: u64,
    unknown_frees: u64,
    log_given_up: Option<Cow<'a, str>>,
    sampling: Option<Estimates>,
    notes: Vec<Cow<'a, str>>,
}

impl<'a> Conditions<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        let conditions = &report.conditions;
        Conditions {
            still_recording: conditions.still_recording,
            hooks: in_one_line(&conditions.hooks),
            lost_events: conditions.lost_events,
            lost_since_ms: conditions.lost_since_ms,
            stacks_cut: conditions.stacks_cut,
            stacks_incomplete: conditions.stacks_incomplete,
            unknown_frees: conditions.unknown_frees,
            log_given_up: conditions.log_given_up.as_deref().map(in_one_line),
            sampling: conditions.sampling.as_ref().map(Estimates::of),
            notes: conditions.notes.iter().map(|n| in_one_line(n)).collect(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Totals {
    allocated: Tally,
    freed: Tally,
    high_water: Tally,
    live: Tally,
    high_water_ms: Option<u64>,
}

impl Totals {
    pub(super) fn of(report: &Report) -> Self {
        let totals = &report.totals;
        Totals {
            allocated: totals.allocated.into(),
            freed: totals.freed.into(),
            high_water: totals.high_water.into(),
            live: totals.live.into(),
            high_water_ms: totals.high_water_ms,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Sizes<'a> {
    rounded: bool,
    counts: SizeCounts<'a>,
}

impl<'a> Sizes<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        Sizes {
            rounded: report.totals.sizes_rounded,
            counts: SizeCounts(report),
        }
    }
}

#[derive(Serialize)]
struct AllocatorRow {
    allocator: &'static str,
    allocated: Tally,
}

#[derive(Serialize)]
struct ThreadRow<'a> {
    tid: u64,
    name: Cow<'a, str>,
    threads: u32,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Serialize)]
struct ContextRow<'a> {
    labels: BTreeMap<&'a str, Cow<'a, str>>,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Serialize)]
struct FrameRow<'a> {
    function: Cow<'a, str>,
    file: Cow<'a, str>,
    line: u32,
    package: Cow<'a, str>,
    kind: &'static str,
}

#[derive(Serialize)]
struct OwnLineRow {
    frame: Option<u32>,
    own: bool,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Serialize)]
struct TableRow {
    thread: u32,
    allocator: &'static str,
    frame: Option<u32>,
    #[serde(skip_serializing_if = "is_none")]
    context: u32,
    #[serde(flatten)]
    sums: Sums,
}

fn is_none(context: &u32) -> bool {
    *context == ContextId::NONE.0
}

#[derive(Serialize)]
struct NodeRow {
    depth: u32,
    frame: u32,
    #[serde(flatten)]
    sums: Option<Sums>,
}

#[derive(Serialize)]
struct MomentRow {
    at_ms: u64,
    rss: u64,
    heap: u64,
    own: u64,
}

#[derive(Serialize)]
struct MarkRow<'a> {
    name: Cow<'a, str>,
    at_ms: u64,
    live: Tally,
}

/// Defines a part of the file that is a list: a wrapper of a report with its own serialization.
macro_rules! list {
    ($name:ident, |$report:ident| $rows:block) => {
        pub(super) struct $name<'a>(pub(super) &'a Report);

        impl Serialize for $name<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $report = self.0;
                serializer.collect_seq($rows)
            }
        }
    };
}

list!(SizeCounts, |report| {
    let sizes = report.totals.sizes.iter();
    sizes.map(|entry| (entry.size, entry.count))
});

list!(Allocators, |report| {
    let allocators = report.totals.by_allocator.iter();
    allocators.map(|&(allocator, allocated)| AllocatorRow {
        allocator: allocator.name(),
        allocated: allocated.into(),
    })
});

list!(Threads, |report| {
    let threads = report.threads.iter().zip(by_thread(report));
    let threads = threads.filter(|(thread, _)| thread.threads > 0);
    threads.map(|(thread, sums)| ThreadRow {
        tid: thread.tid,
        name: in_one_line(report.strings.get(thread.name)),
        threads: thread.threads,
        sums: sums.into(),
    })
});

list!(Contexts, |report| {
    let sums = views::sums_by(report, report.contexts.len(), |site| site.context.0);
    let contexts = report.contexts.iter().zip(sums);
    contexts.map(|(context, sums)| {
        let labels = context.labels.iter();
        ContextRow {
            labels: labels
                .map(|(key, value)| (&**key, in_one_line(value)))
                .collect(),
            sums: sums.into(),
        }
    })
});

/// Frames, with the owner of their code.
pub(super) struct Frames<'a>(pub(super) &'a Report);

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = self.0;
        let origins = Origins::of(report);
        serializer.collect_seq((0..).zip(&report.frames).map(|(id, &frame)| {
            let package = origins
                .index(FrameId(id))
                .and_then(|index| origins.packages().get(index as usize));
            FrameRow {
                function: spelling::function(report, frame),
                file: spelling::file(report, frame),
                line: frame.line,
                package: package.map_or("".into(), |package| {
                    in_one_line(&package.name).into_owned().into()
                }),
                kind: match origins.kind(FrameId(id)) {
                    Kind::Own => "own",
                    Kind::Package => "package",
                    Kind::Language => "language",
                    Kind::Native => "native",
                },
            }
        }))
    }
}

list!(OwnLines, |report| {
    let sites = own_sites(report, &Origins::of(report)).into_iter();
    sites.map(|site| OwnLineRow {
        frame: site.frame.map(|frame| frame.0),
        own: site.is_own,
        sums: site.sums.into(),
    })
});

/// Key by which rows of the table are summed up.
type Key = (ThreadId, Allocator, Option<FrameId>, ContextId);

list!(Table, |report| {
    let mut index: HashMap<Key, usize> = HashMap::new();
    let mut rows: Vec<(Key, views::Sums)> = Vec::new();
    for site in &report.sites {
        let leaf = report.stacks.node(site.stack).map(|node| node.frame);
        let key = (site.thread, site.allocator, leaf, site.context);
        let row = *index.entry(key).or_insert_with(|| {
            rows.push((key, views::Sums::default()));
            rows.len() - 1
        });
        rows[row].1.add(site);
    }
    rows.into_iter()
        .map(|((thread, allocator, frame, context), sums)| TableRow {
            thread: thread.0,
            allocator: allocator.name(),
            frame: frame.map(|frame| frame.0),
            context: context.0,
            sums: sums.into(),
        })
});

list!(Timeline, |report| {
    report.timeline.iter().map(|moment| MomentRow {
        at_ms: moment.at_ms,
        rss: moment.rss,
        heap: moment.heap,
        own: moment.own,
    })
});

list!(Marks, |report| {
    report.marks.iter().map(|mark| MarkRow {
        name: in_one_line(&mark.name),
        at_ms: mark.at_ms,
        live: mark.live.into(),
    })
});

/// Call tree.
pub(super) struct Tree<'a>(pub(super) &'a Report);

impl Serialize for Tree<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;

        let tree = CallTree::of(self.0);
        let root = tree.own.first().filter(|(node, _)| *node == 0);
        let mut parts = serializer.serialize_struct("Tree", 2)?;
        parts.serialize_field(
            "own",
            &Sums::from(root.map(|own| own.1).unwrap_or_default()),
        )?;
        parts.serialize_field("nodes", &Nodes(&tree))?;
        parts.end()
    }
}

struct Nodes<'a>(&'a CallTree);

impl Serialize for Nodes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut own = self
            .0
            .own
            .iter()
            .skip_while(|(node, _)| *node == 0)
            .peekable();
        serializer.collect_seq((1..).zip(&self.0.nodes).map(|(number, node)| {
            NodeRow {
                depth: node.depth,
                frame: node.frame.0,
                sums: own
                    .next_if(|(of, _)| *of == number)
                    .map(|&(_, sums)| sums.into()),
            }
        }))
    }
}
