//! Tests with tables of invented stacks and threads.

use heapray_report::model::{Allocator, FrameId, Place, StackId, Tally};

use super::{
    BIAS, Fake, GROW, PUSH, RUST_ALLOC, STD_RT, USER, functions, module, parse, push, site,
    snapshot,
};
use crate::capture::event::{Kind, NodeId};
use crate::capture::modules::MappedCode;
use crate::collector::snapshot::{Module, ModuleId, RawNode, RawThread};
use crate::symbolize::assemble::assemble;
use crate::symbolize::{ReportOptions, Resolved, ThreadMode};

/// Resolves one stack, root first. Frames of one address are joined by ` | `.
fn resolve_stack(stack: &[&str], options: &ReportOptions) -> Vec<String> {
    let mut snapshot = snapshot(vec![module("/bin/app", true)]);
    let mut fake = Fake::default();
    let mut node = NodeId::ROOT;
    for (offset, frames) in (0x1000..).zip(stack) {
        let frames = frames.split(" | ").map(String::from).collect();
        fake.places.insert(offset, frames);
        node = push(&mut snapshot, node, ModuleId(0), BIAS + offset + 1);
    }
    snapshot.stacks.sites.push(site(1, node, Kind::Malloc, 8));
    let resolved = assemble(&snapshot, options, &mut fake);
    assert_eq!(resolved.report.sites[0].stack, resolved.stack_of(node));
    functions(&resolved.report, resolved.report.sites[0].stack)
}

#[test]
fn a_stack_ends_at_the_code_that_asked_for_memory() {
    let inlined_push = format!("{USER} | {PUSH}");
    let inlined_user = format!("{GROW} | app::closure @ src/main.rs : 5 | {PUSH}");
    // (stack, how many of its frames are kept; `None` for all)
    let cases: [(&str, &[&str], Option<usize>); 13] = [
        (
            "library frames",
            &["main", STD_RT, USER, PUSH, GROW, RUST_ALLOC],
            Some(3),
        ),
        ("nothing to trim", &["main", STD_RT, USER], None),
        (
            "inlined at the leaf",
            &["main", STD_RT, &inlined_push],
            Some(3),
        ),
        (
            "inlined, then called",
            &["main", STD_RT, &inlined_push, GROW, RUST_ALLOC],
            Some(3),
        ),
        (
            "the user's code inlined into the library's",
            &["main", USER, &inlined_user, GROW],
            Some(4),
        ),
        (
            "the library in the middle stays",
            &[USER, PUSH, USER, GROW],
            Some(3),
        ),
        ("a C leaf stays", &["main", USER, PUSH, "strdup"], None),
        (
            "C below Rust",
            &["main", "sqlite3_open @ sqlite3.c : 9", GROW, RUST_ALLOC],
            Some(2),
        ),
        (
            "start-up of the runtime",
            &["_start", "__libc_start_main", "main", STD_RT, GROW],
            None,
        ),
        (
            "start-up of a thread",
            &["clone3", "start_thread", STD_RT, GROW, RUST_ALLOC],
            None,
        ),
        ("only the C runtime", &["clone3", "start_thread"], None),
        (
            "a C function that is called like an entry",
            &[USER, "clone", GROW],
            Some(2),
        ),
        ("only the library", &[GROW], None),
    ];
    let full = ReportOptions {
        full: true,
        ..ReportOptions::default()
    };
    for (case, stack, kept) in cases {
        let all: Vec<String> = stack
            .iter()
            .flat_map(|frames| frames.split(" | "))
            .map(|frame| parse(frame).function.plain.clone())
            .collect();
        assert_eq!(resolve_stack(stack, &full), all, "{case}, in full");
        let kept = &all[..kept.unwrap_or(all.len())];
        assert_eq!(
            resolve_stack(stack, &ReportOptions::default()),
            kept,
            "{case}"
        );
    }
}

#[test]
fn code_of_a_c_library_without_symbols_is_not_the_leaf_at_start_up() {
    let libc = module("/lib/x86_64-linux-gnu/libc.so.6", false);
    let mut snapshot = snapshot(vec![libc, module("/bin/app", true)]);
    let outer = push(&mut snapshot, NodeId::ROOT, ModuleId(0), BIAS + 0x11);
    let start_up = push(&mut snapshot, outer, ModuleId(1), BIAS + 0x21);
    let code = push(&mut snapshot, outer, ModuleId(1), BIAS + 0x31);
    let callback = push(&mut snapshot, code, ModuleId(0), BIAS + 0x41);
    let leaf = push(&mut snapshot, callback, ModuleId(1), BIAS + 0x21);
    let mut fake = Fake::default();
    fake.places.insert(0x20, vec![GROW.into()]);
    fake.places.insert(0x30, vec![USER.into(), PUSH.into()]);
    let resolved = assemble(&snapshot, &ReportOptions::default(), &mut fake);
    let stack = |node| functions(&resolved.report, resolved.stack_of(node));
    assert_eq!(stack(start_up), ["libc.so.6+0x10", "alloc::raw_vec::grow"]);
    // Called from other code, it counts as code.
    let whole = [
        "libc.so.6+0x10",
        "app::main",
        "alloc::vec::Vec::push",
        "libc.so.6+0x40",
    ];
    assert_eq!(stack(leaf), whole);
    assert_eq!(stack(code), whole[..2]);
}

#[test]
fn a_frame_has_the_place_of_its_call_and_an_inlined_frame_that_of_its_caller() {
    let code = MappedCode {
        start: BIAS + 0x1000,
        end: BIAS + 0x9000,
        offset: 0x400,
    };
    let app = Module {
        code: Some(code),
        build_id: vec![0x0a, 0xbc],
        ..module("/bin/app", true)
    };
    let mut snapshot = snapshot(vec![module("/lib/other.so", false), app]);
    let node = push(&mut snapshot, NodeId::ROOT, ModuleId(1), BIAS + 0x2001);
    let cut = push(&mut snapshot, NodeId::ROOT, ModuleId::NONE, RawNode::CUT);
    let mut fake = Fake::default();
    fake.places.insert(0x2000, vec![USER.into(), PUSH.into()]);
    let full = ReportOptions {
        full: true,
        ..ReportOptions::default()
    };
    let resolved = assemble(&snapshot, &full, &mut fake);
    let report = &resolved.report;
    let place = |frame: FrameId| report.places[frame.0 as usize];
    let places: Vec<_> = report
        .stacks
        .leaf_to_root(resolved.stack_of(node))
        .map(place)
        .collect();
    let at = |inlined| Place {
        module: Some(1),
        address: BIAS + 0x2000,
        inlined,
    };
    assert_eq!(places, [at(true), at(false)]);
    let mark = report.stacks.node(resolved.stack_of(cut)).unwrap();
    assert_eq!(place(mark.frame), Place::default());
    let module = &report.modules[1];
    assert_eq!(module.build_id, "0abc");
    assert_eq!(
        (module.start, module.limit, module.offset),
        (code.start, code.end, code.offset)
    );
}

#[test]
fn an_address_without_symbols_keeps_a_frame() {
    let modules = vec![
        module("/opt/lib/libfoo.so.1", false),
        module("[vdso]", false),
    ];
    let mut snapshot = snapshot(modules);
    let cases = [
        (
            ModuleId(0),
            BIAS + 0x1235,
            "libfoo.so.1+0x1234",
            "/opt/lib/libfoo.so.1",
        ),
        (
            ModuleId(0),
            BIAS + 0x2001,
            "libfoo.so.1+0x2000",
            "/opt/lib/libfoo.so.1",
        ),
        (ModuleId(0), BIAS + 0x3001, "named", "/opt/lib/libfoo.so.1"),
        (ModuleId(1), BIAS + 0x11, "[vdso]+0x10", "[vdso]"),
        (
            ModuleId::NONE,
            0x7f00_0000_1234,
            "[unknown code] 0x7f0000001234",
            "",
        ),
        (
            ModuleId(9),
            0x7f00_0000_1235,
            "[unknown code] 0x7f0000001235",
            "",
        ),
        (ModuleId::NONE, 0, "[unknown code] 0x0", ""),
        (ModuleId(0), 0, "[unknown code] 0x0", ""),
        (ModuleId::NONE, RawNode::CUT, "[stack cut: too deep]", ""),
        (
            ModuleId::NONE,
            RawNode::INCOMPLETE,
            "[outer frames unknown]",
            "",
        ),
        (ModuleId::NONE, RawNode::FOREIGN, "[foreign stack]", ""),
        (ModuleId(0), RawNode::FOREIGN, "[foreign stack]", ""),
    ];
    let mut fake = Fake::default();
    // A known function with an unknown inlined call, and a function without a file.
    fake.places.insert(
        0x2000,
        vec!["outer @ foo.c : 7".into(), " @ foo.c : 8".into()],
    );
    fake.places.insert(0x3000, vec!["named".into()]);
    let nodes: Vec<NodeId> = cases
        .iter()
        .map(|&(module, address, ..)| push(&mut snapshot, NodeId::ROOT, module, address))
        .collect();
    let resolved = assemble(&snapshot, &ReportOptions::default(), &mut fake);
    let report = &resolved.report;
    for (&node, (_, _, function, file)) in nodes.iter().zip(cases) {
        let leaf = report.stacks.node(resolved.stack_of(node)).unwrap().frame;
        let frame = report.frames[leaf.0 as usize];
        assert_eq!(report.strings.get(frame.function), function);
        let file = if function == "libfoo.so.1+0x2000" {
            "foo.c"
        } else {
            file
        };
        assert_eq!(report.strings.get(frame.file), file, "{function}");
    }
    assert_eq!(resolved.stack_of(NodeId::ROOT), StackId::EMPTY);
    assert_eq!(resolved.stack_of(NodeId(1000)), StackId::EMPTY);
}

#[test]
fn marks_lead_a_stack_and_are_not_trimmed() {
    let mut snapshot = snapshot(vec![module("/bin/app", true)]);
    let cut = push(&mut snapshot, NodeId::ROOT, ModuleId::NONE, RawNode::CUT);
    let code = push(&mut snapshot, cut, ModuleId(0), BIAS + 0x11);
    let leaf = push(&mut snapshot, code, ModuleId(0), BIAS + 0x21);
    let lost = push(&mut snapshot, cut, ModuleId(0), BIAS + 0x21);
    let mut fake = Fake::default();
    fake.places.insert(0x10, vec![USER.into()]);
    fake.places.insert(0x20, vec![GROW.into()]);
    let resolved = assemble(&snapshot, &ReportOptions::default(), &mut fake);
    let stack = |node| functions(&resolved.report, resolved.stack_of(node));
    assert_eq!(stack(leaf), ["[stack cut: too deep]", "app::main"]);
    assert_eq!(
        stack(lost),
        ["[stack cut: too deep]", "alloc::raw_vec::grow"]
    );
}

#[test]
fn each_address_is_looked_up_once() {
    let mut snapshot = snapshot(vec![module("/bin/app", true)]);
    let mut parent = NodeId::ROOT;
    for address in [5u64, 3, 5, 9, 3, 3] {
        parent = push(&mut snapshot, parent, ModuleId(0), BIAS + 0x100 + address);
    }
    let mut fake = Fake::default();
    let _ = assemble(&snapshot, &ReportOptions::default(), &mut fake);
    assert_eq!(fake.asked, [0x102, 0x104, 0x108]);
}

#[test]
fn sites_that_coincide_are_added_up() {
    let mut snapshot = snapshot(vec![module("/bin/app", true)]);
    let user = push(&mut snapshot, NodeId::ROOT, ModuleId(0), BIAS + 0x11);
    let grow = push(&mut snapshot, user, ModuleId(0), BIAS + 0x21);
    let mut fake = Fake::default();
    fake.places.insert(0x10, vec![USER.into()]);
    fake.places.insert(0x20, vec![GROW.into()]);
    snapshot.stacks.sites = vec![
        site(1, user, Kind::Malloc, 300),
        site(1, grow, Kind::Malloc, 30),
        site(1, grow, Kind::Realloc, 60),
        site(2, user, Kind::Malloc, 90),
    ];
    snapshot.stacks.sites[0].oldest_live_ms = None;
    let resolved = assemble(&snapshot, &ReportOptions::default(), &mut fake);
    let [malloc, realloc] = &resolved.report.sites[..] else {
        panic!("{:?}", resolved.report.sites);
    };
    assert_eq!(malloc.allocator, Allocator::Malloc);
    let sum = |count, bytes| Tally { count, bytes };
    assert_eq!(malloc.allocated, sum(3, 420));
    assert_eq!(malloc.high_water, sum(3, 210));
    assert_eq!(malloc.live, sum(3, 140));
    assert_eq!(malloc.temporary, sum(3, 84));
    assert_eq!(malloc.oldest_live_ms, Some(30));
    assert_eq!(realloc.allocated, sum(1, 60));
    assert_eq!(
        resolved.report.totals.by_allocator,
        [
            (Allocator::Malloc, sum(3, 420)),
            (Allocator::Realloc, sum(1, 60))
        ]
    );
    // Two threads that are not in the table of threads are one entry without a name.
    assert_eq!(resolved.report.threads.len(), 1);
}

#[test]
fn threads_of_one_name_are_one_entry_unless_each_is_requested() {
    let mut snapshot = snapshot(Vec::new());
    let threads = [
        (1, 100, "app", 1),
        (2, 103, "worker", 1),
        (3, 0, "worker", 1),
        (4, 102, "worker", 1),
        (5, 105, "", 1),
        (6, 106, "", 1),
        (7, 107, "worker-2", 1),
        // An entry of the collector for several threads.
        (u32::MAX, 108, "worker", 40),
    ];
    snapshot.stacks.threads = threads
        .map(|(number, tid, name, threads)| RawThread {
            number,
            tid,
            name: name.into(),
            threads,
        })
        .into();
    snapshot.stacks.threads.reverse();
    let shown = |resolved: &Resolved| -> Vec<(u64, String, u32)> {
        let report = &resolved.report;
        report
            .threads
            .iter()
            .map(|thread| {
                (
                    thread.tid,
                    report.strings.get(thread.name).into(),
                    thread.threads,
                )
            })
            .collect()
    };
    let by_name = assemble(&snapshot, &ReportOptions::default(), &mut Fake::default());
    assert_eq!(
        shown(&by_name),
        [
            (100, "app".into(), 1),
            (102, "worker".into(), 43),
            (105, String::new(), 2),
            (107, "worker-2".into(), 1)
        ]
    );
    assert_eq!(by_name.thread_of(2), by_name.thread_of(4));
    assert_ne!(by_name.thread_of(2), by_name.thread_of(7));

    let options = ReportOptions {
        threads: ThreadMode::Each,
        ..ReportOptions::default()
    };
    let each = assemble(&snapshot, &options, &mut Fake::default());
    let expected = threads.map(|(_, tid, name, count)| (u64::from(tid), name.to_owned(), count));
    assert_eq!(shown(&each), expected);
    for (at, (number, ..)) in (0..).zip(threads) {
        assert_eq!(each.thread_of(number).0, at);
    }
}

#[test]
fn notes_say_which_symbols_the_program_lacks() {
    let note_of = |frames: &[&str], is_main| {
        let mut snapshot = snapshot(vec![module("/bin/app", is_main)]);
        let mut fake = Fake::default();
        for (offset, frame) in (0x10..).zip(frames) {
            fake.places.insert(offset, vec![(*frame).to_owned()]);
            push(&mut snapshot, NodeId::ROOT, ModuleId(0), BIAS + offset + 1);
        }
        assemble(&snapshot, &ReportOptions::default(), &mut fake)
            .report
            .conditions
            .notes
    };
    let collectors_and_lookups = ["from the collector", "from the lookup"];
    let middle = |notes: Vec<String>| {
        assert_eq!(notes.len(), 3, "{notes:?}");
        notes[1].clone()
    };
    // The library has lines even if the program has none.
    let no_lines = middle(note_of(&["app::main", GROW], true));
    assert!(
        no_lines.contains("no debug information: build with `debug = 1`"),
        "{no_lines}"
    );
    let stripped = middle(note_of(&["", ""], true));
    assert!(stripped.contains("stripped"), "{stripped}");
    assert_eq!(note_of(&[USER, ""], true), collectors_and_lookups);
    assert_eq!(note_of(&["", ""], false), collectors_and_lookups);
    assert_eq!(note_of(&[], true), collectors_and_lookups);
}

#[test]
fn conditions_and_times_come_from_the_snapshot() {
    let report = assemble(
        &snapshot(Vec::new()),
        &ReportOptions::default(),
        &mut Fake::default(),
    )
    .report;
    assert_eq!(
        (report.about.start_ms, report.about.end_ms),
        (10_000, 12_000)
    );
    assert_eq!(
        report.about.producer,
        concat!("heapray ", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(report.about.pid, std::process::id());
    let conditions = report.conditions;
    assert!(conditions.still_recording);
    assert_eq!(conditions.hooks, "got");
    assert_eq!(conditions.log_given_up.as_deref(), Some("disk full"));
    assert_eq!(
        [
            conditions.lost_events,
            conditions.stacks_cut,
            conditions.stacks_incomplete
        ],
        [1, 2, 3]
    );
    assert_eq!(conditions.lost_since_ms, Some(77));
    assert_eq!(
        [
            conditions.overhead.memory_bytes,
            conditions.overhead.collector_cpu_ns
        ],
        [4, 5]
    );
}
