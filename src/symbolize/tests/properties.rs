//! Tests of random snapshots against a simple model: nothing is lost or moved, and nothing unneeded is kept.

use std::collections::{BTreeMap, HashSet};

use heapray_report::model::{Allocator, Held, HistoryMoment, Survivor, Tally};
use proptest::prelude::*;

use super::{BIAS, Fake, GROW, PUSH, STD_RT, USER, functions, module, parse, push, site, snapshot};
use crate::capture::event::{Kind, NodeId};
use crate::collector::snapshot::{ModuleId, RawThread, Snapshot};
use crate::symbolize::ReportOptions;
use crate::symbolize::assemble::assemble;
use crate::symbolize::trim::{Role, role};

/// A random snapshot: `nodes[n]` selects the parent and the address of node `n + 1`.
#[derive(Debug, Clone)]
struct Input {
    /// Frames of each address, as indices of [`FRAMES`].
    addresses: Vec<Vec<usize>>,
    nodes: Vec<(prop::sample::Index, prop::sample::Index)>,
    sites: Vec<(u32, prop::sample::Index, bool, u64)>,
}

const FRAMES: [&str; 8] = [
    "main",
    "start_thread",
    STD_RT,
    GROW,
    PUSH,
    USER,
    "app::other @ src/other.rs : 4",
    "strdup",
];

fn inputs() -> impl Strategy<Value = Input> {
    let frames = prop::collection::vec(0..FRAMES.len(), 0..4);
    let node = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let site = (
        0..4u32,
        any::<prop::sample::Index>(),
        any::<bool>(),
        0..10_000u64,
    );
    (
        prop::collection::vec(frames, 1..12),
        prop::collection::vec(node, 0..40),
        prop::collection::vec(site, 0..60),
    )
        .prop_map(|(addresses, nodes, sites)| Input {
            addresses,
            nodes,
            sites,
        })
}

/// Returns the snapshot of `input`, its symbols, and each node's frames, root first.
fn build(input: &Input) -> (Snapshot, Fake, Vec<Vec<String>>) {
    let mut snapshot = snapshot(vec![module("/bin/app", true)]);
    let mut fake = Fake::default();
    for (offset, frames) in (0x10..).zip(&input.addresses) {
        let frames: Vec<String> = frames.iter().map(|&frame| FRAMES[frame].into()).collect();
        fake.places.insert(offset, frames);
    }
    let mut whole: Vec<Vec<String>> = vec![Vec::new()];
    for (parent, address) in &input.nodes {
        let parent = parent.index(snapshot.stacks.nodes.len());
        let offset = 0x10 + address.index(input.addresses.len()) as u64;
        push(
            &mut snapshot,
            NodeId(parent as u32),
            ModuleId(0),
            BIAS + offset + 1,
        );
        let mut frames = whole[parent].clone();
        match &fake.places[&offset][..] {
            [] => frames.push(format!("app+{offset:#x}")),
            own => frames.extend_from_slice(own),
        }
        whole.push(frames);
    }
    for &(thread, node, malloc, bytes) in &input.sites {
        let node = NodeId(node.index(snapshot.stacks.nodes.len()) as u32);
        let kind = if malloc { Kind::Malloc } else { Kind::Calloc };
        snapshot.stacks.sites.push(site(thread, node, kind, bytes));
    }
    snapshot.stacks.threads = (0..4)
        .map(|number| RawThread {
            number,
            tid: 100 + number,
            name: format!("pool-{}", number / 2),
            threads: 1,
        })
        .collect();
    (snapshot, fake, whole)
}

/// Trims by the simple rule: cut after the last frame of code. Entries count as code once another frame came before.
fn trimmed(whole: &[String]) -> &[String] {
    let roles: Vec<Role> = whole
        .iter()
        .map(|frame| {
            let place = parse(frame);
            role(place.function.for_role(), &place.file, place.line)
        })
        .collect();
    let entries = roles
        .iter()
        .take_while(|&&role| role == Role::Entry)
        .count();
    let last = (entries..roles.len())
        .rev()
        .find(|&at| roles[at] != Role::Library);
    &whole[..last.map_or(whole.len(), |last| last + 1)]
}

/// Sums by thread name, allocator and frames.
type Sums = BTreeMap<(String, Allocator, Vec<String>), [Tally; 4]>;

fn add(sums: &mut Sums, key: (String, Allocator, Vec<String>), tallies: [Tally; 4]) {
    let sum = sums.entry(key).or_default();
    for (sum, tally) in sum.iter_mut().zip(tallies) {
        *sum += tally;
    }
}

proptest! {
    #[test]
    fn no_block_is_lost_or_moved_by_trimming_and_merging(input in inputs(), full: bool) {
        let (mut snapshot, mut fake, whole) = build(&input);
        snapshot.survivors.starts_ms = vec![0, 7];
        snapshot.survivors.list = (0..).zip(&snapshot.stacks.sites)
            .map(|(site, raw)| Survivor { site, generation: site % 2, live: raw.live })
            .collect();
        snapshot.history.moments = vec![HistoryMoment::default()];
        snapshot.history.list = (0..).zip(&snapshot.stacks.sites)
            .map(|(site, raw)| Held { site, moment: 0, live: raw.live.bytes, allocated: raw.allocated.bytes })
            .collect();
        let options = ReportOptions { full, ..ReportOptions::default() };
        let resolved = assemble(&snapshot, &options, &mut fake);
        let report = &resolved.report;

        let expected_stack = |node: usize| -> Vec<String> {
            let kept = if full { &whole[node][..] } else { trimmed(&whole[node]) };
            kept.iter().map(|frame| parse(frame).function.plain.clone()).collect()
        };
        for node in 0..snapshot.stacks.nodes.len() {
            let stack = resolved.stack_of(NodeId(node as u32));
            prop_assert_eq!(functions(report, stack), expected_stack(node));
        }

        let mut expected = Sums::new();
        for site in &snapshot.stacks.sites {
            let key = (
                format!("pool-{}", site.thread / 2),
                Allocator::from_id(site.kind as u8).unwrap(),
                expected_stack(site.node.0 as usize),
            );
            add(&mut expected, key, [site.allocated, site.high_water, site.live, site.temporary]);
        }
        let mut ours = Sums::new();
        let mut keys = HashSet::new();
        for site in &report.sites {
            prop_assert!(keys.insert((site.thread, site.stack, site.allocator)), "a site occurs twice");
            let name = report.threads[site.thread.0 as usize].name;
            let key = (
                report.strings.get(name).to_owned(),
                site.allocator,
                functions(report, site.stack),
            );
            add(&mut ours, key, [site.allocated, site.high_water, site.live, site.temporary]);
        }
        prop_assert_eq!(ours, expected);

        let mut aged = vec![Tally::default(); report.sites.len()];
        for survivor in &report.survivors.list {
            aged[survivor.site as usize] += survivor.live;
        }
        prop_assert!(report.survivors.list.is_sorted_by(|a, b| (a.site, a.generation) < (b.site, b.generation)));
        let live: Vec<_> = report.sites.iter().map(|site| site.live).collect();
        prop_assert_eq!(aged, live);
        let held: Vec<_> = report.history.list.iter().map(|held| (held.site, held.live, held.allocated)).collect();
        let sites: Vec<_> = (0..).zip(&report.sites).map(|(number, site)| (number, site.live.bytes, site.allocated.bytes)).collect();
        prop_assert_eq!(held, sites);
    }

    #[test]
    fn a_report_contains_only_stacks_and_frames_that_nodes_need(input in inputs(), full: bool) {
        let (snapshot, mut fake, _) = build(&input);
        let options = ReportOptions { full, ..ReportOptions::default() };
        let resolved = assemble(&snapshot, &options, &mut fake);
        let report = &resolved.report;
        let mut stacks = HashSet::new();
        for node in 0..snapshot.stacks.nodes.len() {
            let mut stack = resolved.stack_of(NodeId(node as u32));
            while let Some(at) = report.stacks.node(stack) {
                stacks.insert(stack);
                stack = at.parent;
            }
        }
        prop_assert_eq!(stacks.len(), report.stacks.len());
        let frames: HashSet<_> = report.stacks.iter().map(|(_, node)| node.frame).collect();
        prop_assert_eq!(frames.len(), report.frames.len());
        let distinct: HashSet<_> = report.frames.iter().collect();
        prop_assert_eq!(distinct.len(), report.frames.len(), "frames occur once");
    }
}
