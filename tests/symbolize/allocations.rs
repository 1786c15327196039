//! Tests with real allocations of this process: the leaf of each must be the line that allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::sync::{Arc, Mutex};

use heapray::symbolize::{ReportOptions, resolve};

use crate::process::{modules, stack_frames, stack_table};

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static SEEN: Cell<[u64; 64]> = const { Cell::new([0; 64]) };
}

/// Stores the call stack of a thread's next allocation, once armed.
struct Recorder;

#[global_allocator]
static RECORDER: Recorder = Recorder;

// It must have a frame of its own, like `malloc`.
#[inline(never)]
fn record() {
    if ARMED.replace(false) {
        let mut seen = [0; 64];
        let mut slots = seen.iter_mut();
        backtrace::trace(|frame| {
            let slot = slots.next();
            let room = slot.is_some();
            if let Some(slot) = slot {
                *slot = frame.ip() as u64;
            }
            room
        });
        SEEN.set(seen);
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Recorder {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Returns the call stack of the first allocation of `work`, leaf first, without the recorder's own frames.
fn stack_of_first_allocation<T>(work: impl FnOnce() -> T) -> Vec<u64> {
    ARMED.set(true);
    black_box(work());
    assert!(!ARMED.get(), "something was allocated");
    let seen = SEEN.get();
    let stack: Vec<u64> = seen.into_iter().filter(|&address| address != 0).collect();
    // A capture begins with the return address into the caller of `malloc`, which here is the caller of `record`.
    let own = stack.iter().position(|&address| {
        let mut found = false;
        backtrace::resolve(address as *mut _, |symbol| {
            found |= format!("{:#}", symbol.name().unwrap()).ends_with("allocations::record");
        });
        found
    });
    stack[own.unwrap() + 1..].to_vec()
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Row(u64, String);

/// One way to allocate: its name, the line, and the stack.
type Case = (&'static str, u32, Vec<u64>);

macro_rules! case {
    ($name:literal, $work:expr) => {
        ($name, line!(), stack_of_first_allocation(|| $work))
    };
}

fn cases() -> Vec<Case> {
    let mut map: HashMap<u64, Row> = HashMap::new();
    let mut tree: BTreeMap<u64, Row> = BTreeMap::new();
    let mut list: Vec<Row> = Vec::new();
    let text = black_box("text").to_owned();
    let rows = [const { Row(2, String::new()) }; 5];
    vec![
        case!("push", list.push(Row(1, String::new()))),
        case!("vec!", vec![1u64; black_box(1000)]),
        case!("vec! of zeros", vec![0u64; black_box(1000)]),
        case!("with_capacity", Vec::<Row>::with_capacity(10)),
        case!("collect", (0..black_box(100u64)).collect::<Vec<_>>()),
        case!("Box", Box::new(Row(1, String::new()))),
        case!("Arc", Arc::new(Mutex::new(1u8))),
        case!("Arc<str>", Arc::<str>::from(text.as_str())),
        case!("HashMap", map.insert(1, Row(1, String::new()))),
        case!("BTreeMap", tree.insert(1, Row(1, String::new()))),
        case!("to_string", black_box(17).to_string()),
        case!("format!", format!("{text} and {text}")),
        case!("clone", text.clone()),
        case!("extend", list.extend(rows)),
        case!("join", ["a", "b"].join(&text)),
        case!("spawn", std::thread::spawn(|| ()).join()),
        case!("read", std::fs::read_to_string("/proc/self/stat")),
    ]
}

#[test]
fn the_leaf_of_each_allocation_is_the_line_that_allocated() {
    let cases = cases();
    let stacks: Vec<Vec<u64>> = cases.iter().map(|(.., stack)| stack.clone()).collect();
    let table = stack_table(modules(), &stacks);
    let resolved = resolve(&table, &ReportOptions::default());
    for ((name, line, _), site) in cases.iter().zip(&table.sites) {
        let frames = stack_frames(&resolved.report, resolved.stack_of(site.node));
        let (function, file, leaf_line) = &frames[0];
        let shown = format!("{name}: {frames:#?}");
        assert!(
            function.starts_with("symbolize::allocations::cases"),
            "{shown}"
        );
        assert!(file.ends_with("tests/symbolize/allocations.rs"), "{shown}");
        assert_eq!(leaf_line, line, "{shown}");
    }
    // All stacks are distinct lines of one function, so different stacks were not merged.
    assert_eq!(resolved.report.sites.len(), cases.len());
}

#[test]
fn a_derived_clone_is_the_users_own_code() {
    let row = Row(1, "text".to_owned());
    let stack = stack_of_first_allocation(|| row.clone());
    let resolved = resolve(&stack_table(modules(), &[stack]), &ReportOptions::default());
    let frames = stack_frames(&resolved.report, resolved.report.sites[0].stack);
    let expected = "symbolize::allocations::Row::clone";
    assert_eq!(frames[0].0, expected, "{frames:#?}");
}
