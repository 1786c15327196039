//! Tests of the assembly of reports, with invented symbols: which frames and sites are trimmed, merged and kept.

mod apart;
mod later;
mod own_code;
mod properties;
pub(super) mod scratch;
mod tables;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use heapray_report::Report;
use heapray_report::model::{History, StackId, Survivors, Tally};
use heapray_report::sources::Unit;

use super::lookup::{Found, Lookup, Place};
use super::names::FunctionName;
use crate::capture::event::{Kind, NodeId};
use crate::collector::snapshot::{
    Hooks, Module, ModuleId, RawNode, RawSite, RawTotals, Snapshot, StackTable,
};

/// Symbols by offset in the only module. A frame is written as `function @ file : line`.
#[derive(Default)]
struct Fake {
    places: HashMap<u64, Vec<String>>,
    asked: Vec<u64>,
}

impl Lookup for Fake {
    fn lookup(&mut self, _: &Module, offsets: &[u64], found: &mut Found<'_>) {
        assert!(offsets.is_sorted(), "addresses come in ascending order");
        self.asked.extend(offsets);
        // Every order is allowed.
        for (nth, offset) in offsets.iter().enumerate().rev() {
            let frames = self.places.get(offset).map_or(&[][..], |frames| frames);
            let places: Vec<Place<'_>> = frames.iter().map(|frame| parse(frame)).collect();
            found(nth, &places);
        }
    }

    fn units(&self) -> BTreeSet<Unit> {
        BTreeSet::new()
    }

    fn notes(&self) -> Vec<String> {
        vec!["from the lookup".into()]
    }
}

fn parse(frame: &str) -> Place<'_> {
    let (function, place) = frame.split_once(" @ ").unwrap_or((frame, ""));
    let (file, line) = place.split_once(" : ").unwrap_or((place, "0"));
    Place {
        function: Cow::Owned(FunctionName::of(function)),
        file: Cow::Borrowed(file),
        line: line.parse().unwrap(),
    }
}

const BIAS: u64 = 0x5500_0000_0000;

fn module(path: &str, is_main: bool) -> Module {
    Module {
        path: path.into(),
        load_bias: BIAS,
        start: BIAS,
        end: BIAS + 0x1000_0000,
        code: None,
        build_id: Vec::new(),
        is_main,
    }
}

fn snapshot(modules: Vec<Module>) -> Snapshot {
    Snapshot {
        started: UNIX_EPOCH + Duration::from_secs(10),
        taken: UNIX_EPOCH + Duration::from_secs(12),
        still_recording: true,
        stacks: StackTable {
            nodes: vec![RawNode {
                parent: NodeId::ROOT,
                module: ModuleId::NONE,
                address: 0,
            }],
            modules: Arc::new(modules),
            ..StackTable::default()
        },
        survivors: Survivors::default(),
        history: History::default(),
        process_memory: None,
        timeline: Vec::new(),
        marks: Vec::new(),
        totals: RawTotals::default(),
        log: None,
        log_given_up: Some("disk full".into()),
        stacks_bounded: None,
        sampling: None,
        lost_events: 1,
        lost_since_ms: Some(77),
        stacks_cut: 2,
        stacks_incomplete: 3,
        own_bytes: 4,
        collector_cpu_ns: 5,
        hooks: Hooks::Got,
        notes: vec!["from the collector".into()],
    }
}

fn push(snapshot: &mut Snapshot, parent: NodeId, module: ModuleId, address: u64) -> NodeId {
    snapshot.stacks.nodes.push(RawNode {
        parent,
        module,
        address,
    });
    NodeId(snapshot.stacks.nodes.len() as u32 - 1)
}

fn site(thread: u32, node: NodeId, kind: Kind, bytes: u64) -> RawSite {
    let tally = |bytes| Tally { count: 1, bytes };
    RawSite {
        context: 0,
        thread,
        node,
        kind,
        allocated: tally(bytes),
        high_water: tally(bytes / 2),
        live: tally(bytes / 3),
        temporary: tally(bytes / 5),
        oldest_live_ms: Some(bytes),
    }
}

/// Returns the function names of `stack`, root first.
fn functions(report: &Report, stack: StackId) -> Vec<String> {
    let mut functions: Vec<String> = report
        .stacks
        .leaf_to_root(stack)
        .map(|id| {
            let frame = report.frames[id.0 as usize];
            report.strings.get(frame.function).to_owned()
        })
        .collect();
    functions.reverse();
    functions
}

const STD_RT: &str = "std::rt::lang_start @ /rustc/abc/library/std/src/rt.rs : 199";
const USER: &str = "app::main @ src/main.rs : 3";
const PUSH: &str =
    "<alloc::vec::Vec<app::Row>>::push @ /rustc/abc/library/alloc/src/vec/mod.rs : 9";
const GROW: &str = "alloc::raw_vec::grow @ /rustc/abc/library/alloc/src/raw_vec/mod.rs : 7";
const RUST_ALLOC: &str = "__rustc::__rust_alloc @ src/main.rs : 1";
