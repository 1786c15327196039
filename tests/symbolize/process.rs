//! Helpers that make call stacks from real addresses of this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heapray::capture::event::{Kind, NodeId};
use heapray::collector::snapshot::{Module, ModuleId, RawNode, RawSite, RawThread, StackTable};
use heapray_report::Report;
use heapray_report::model::{StackId, Tally};

/// A frame as function, file and line.
pub(crate) type Shown = (String, String, u32);

/// Returns the return addresses above the caller's call of this function, leaf first, as libgcc unwinds them.
#[inline(never)]
pub(crate) fn here() -> Vec<u64> {
    let mut addresses = Vec::new();
    backtrace::trace(|frame| {
        addresses.push((frame.ip() as u64, frame.symbol_address() as usize));
        true
    });
    // Frames of the backtrace crate come first, then this function's own.
    let own = here as fn() -> Vec<u64> as usize;
    let first = addresses.iter().position(|&(_, function)| function == own);
    let callers = addresses.split_off(first.expect("this function is on the stack") + 1);
    let callers = callers.into_iter().map(|(address, _)| address);
    // The outermost frame has no caller: libgcc shows its return address as null.
    callers.filter(|&address| address != 0).collect()
}

/// One line of `/proc/self/maps` that names a file.
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    executable: bool,
    path: PathBuf,
}

fn mappings() -> Vec<Mapping> {
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let parse = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let executable = fields.next()?.contains('x');
        let offset = number(fields.next()?);
        let path = fields.nth(2).filter(|path| path.starts_with('/'))?;
        Some(Mapping {
            start: number(start),
            end: number(end),
            offset,
            executable,
            path: path.into(),
        })
    };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter_map(parse).collect()
}

/// Returns the GNU build id of a file: 20 bytes after the head of the note that has it.
pub(crate) fn build_id(path: &Path) -> Vec<u8> {
    const HEAD: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let file = std::fs::read(path).unwrap_or_default();
    let at = file.windows(HEAD.len()).position(|bytes| bytes == HEAD);
    let id = at.and_then(|at| file.get(at + HEAD.len()..at + HEAD.len() + 20));
    id.unwrap_or_default().to_vec()
}

/// Returns the modules that this process has mapped, from the kernel's list.
pub(crate) fn modules() -> Vec<Module> {
    let exe = std::env::current_exe().unwrap();
    let mut modules: Vec<Module> = Vec::new();
    for Mapping {
        start,
        end,
        offset,
        path,
        ..
    } in mappings()
    {
        if let Some(last) = modules.last_mut().filter(|last| last.path == path) {
            last.end = end;
        } else {
            modules.push(Module {
                code: None,
                is_main: path == exe,
                // Position-independent objects are linked at 0.
                load_bias: start - offset,
                build_id: build_id(&path),
                start,
                end,
                path,
            });
        }
    }
    modules
}

/// Returns the addresses of this program's machine code in memory.
pub(crate) fn own_code() -> std::ops::Range<u64> {
    let exe = std::env::current_exe().unwrap();
    let mut mappings = mappings().into_iter();
    let code = mappings.find(|mapping| mapping.executable && mapping.path == exe);
    let code = code.unwrap();
    code.start..code.end
}

/// Makes a stack table with one site on each of `stacks` (leaf first).
pub(crate) fn stack_table(modules: Vec<Module>, stacks: &[Vec<u64>]) -> StackTable {
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
            context: 0,
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
    StackTable {
        contexts: Vec::new(),
        runs: Default::default(),
        nodes,
        sites,
        threads: vec![RawThread {
            number: 1,
            tid: 1,
            name: "main".into(),
            threads: 1,
        }],
        modules: Arc::new(modules),
    }
}

/// Returns the frames of `stack`, leaf first.
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

/// Returns whether the program `name` is installed. In CI it must be.
pub(crate) fn has_tool(name: &str) -> bool {
    let found = std::process::Command::new(name)
        .arg("--version")
        .output()
        .is_ok();
    assert!(
        found || std::env::var_os("CI").is_none(),
        "{name} is not installed"
    );
    if !found {
        println!("skipped: {name} is not installed");
    }
    found
}
