//! Snapshots made by hand from real addresses of this process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use heapray::capture::event::{Kind, NodeId};
use heapray::collector::snapshot::{
    Module, ModuleId, RawNode, RawSite, RawThread, RawTotals, Snapshot,
};
use heapray_report::Report;
use heapray_report::model::{StackId, Tally};

/// A frame as function, file and line.
pub(crate) type Shown = (String, String, u32);

/// The return addresses above the caller, leaf first, as libgcc unwinds them.
#[inline(never)]
pub(crate) fn here() -> Vec<u64> {
    let mut addresses = Vec::new();
    backtrace::trace(|frame| {
        addresses.push(frame.ip() as u64);
        !frame.ip().is_null()
    });
    let own = here as fn() -> Vec<u64> as usize as u64;
    // The outermost frame has no caller: libgcc shows its return address as null.
    addresses.retain(|&address| address != 0);
    // Frames of the backtrace crate and this function's own come first.
    let first = addresses
        .iter()
        .position(|&address| address > own && address - own < 2000);
    addresses.split_off(first.map_or(0, |first| first + 1))
}

/// The ELF objects that this process has mapped, by the kernel's account.
pub(crate) fn modules() -> Vec<Module> {
    let exe = std::env::current_exe().unwrap();
    let mut modules: Vec<Module> = Vec::new();
    for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
        let mut fields = line.split_ascii_whitespace();
        let range = fields.next().unwrap();
        let offset = fields.nth(1).unwrap();
        let Some(path) = fields.nth(2).filter(|path| path.starts_with('/')) else {
            continue;
        };
        let (start, end) = range.split_once('-').unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let (start, end, offset) = (number(start), number(end), number(offset));
        let path = PathBuf::from(path);
        if let Some(last) = modules.last_mut().filter(|last| last.path == path) {
            last.end = end;
        } else {
            let build_id = blazesym::helper::read_elf_build_id(&path);
            modules.push(Module {
                is_main: path == exe,
                // Position-independent objects are linked at 0.
                load_bias: start - offset,
                build_id: build_id.ok().flatten().unwrap_or_default().to_vec(),
                start,
                end,
                path,
            });
        }
    }
    modules
}

/// A snapshot with one call stack (leaf first) and one site on it.
pub(crate) fn snapshot_of(stack: &[u64]) -> Snapshot {
    snapshot(modules(), &[stack.to_vec()])
}

/// A snapshot with one site on each of `stacks` (leaf first).
pub(crate) fn snapshot(modules: Vec<Module>, stacks: &[Vec<u64>]) -> Snapshot {
    let mut nodes = vec![RawNode {
        parent: NodeId::ROOT,
        module: ModuleId::NONE,
        address: 0,
    }];
    let mut sites = Vec::new();
    for stack in stacks {
        let mut parent = NodeId::ROOT;
        for &address in stack.iter().rev() {
            let module = modules
                .iter()
                .position(|module| (module.start..module.end).contains(&address));
            nodes.push(RawNode {
                parent,
                module: module.map_or(ModuleId::NONE, |module| ModuleId(module as u16)),
                address,
            });
            parent = NodeId(nodes.len() as u32 - 1);
        }
        let one = Tally {
            count: 1,
            bytes: 100,
        };
        sites.push(RawSite {
            thread: 1,
            node: parent,
            kind: Kind::Malloc,
            allocated: one,
            high_water: one,
            live: one,
            temporary: Tally::default(),
            oldest_live_ms: Some(5),
        });
    }
    Snapshot {
        started: SystemTime::now(),
        taken: SystemTime::now(),
        still_recording: false,
        nodes,
        sites,
        threads: vec![RawThread {
            number: 1,
            tid: 1,
            name: "main".into(),
        }],
        modules: Arc::new(modules),
        timeline: Vec::new(),
        totals: RawTotals::default(),
        log: None,
        log_given_up: None,
        lost_events: 0,
        stacks_cut: 0,
        stacks_incomplete: 0,
        own_bytes: 0,
        collector_cpu_ns: 0,
        hooks: "got",
        notes: Vec::new(),
    }
}

/// The frames of `stack`, leaf first.
pub(crate) fn stack_frames(report: &Report, stack: StackId) -> Vec<Shown> {
    report
        .stacks
        .leaf_to_root(stack)
        .map(|id| {
            let frame = report.frames[id.0 as usize];
            (
                report.strings.get(frame.function).to_owned(),
                report.strings.get(frame.file).to_owned(),
                frame.line,
            )
        })
        .collect()
}

/// What the `backtrace` crate makes of return addresses, leaf first.
pub(crate) fn backtrace_frames(stack: &[u64]) -> Vec<Shown> {
    let mut frames = Vec::new();
    for &address in stack {
        backtrace::resolve((address - 1) as *mut _, |symbol| {
            frames.push((
                symbol
                    .name()
                    .map_or(String::new(), |name| format!("{name:#}")),
                symbol
                    .filename()
                    .map_or(String::new(), |path| path.display().to_string()),
                symbol.lineno().unwrap_or(0),
            ));
        });
    }
    frames
}
