//! Time and memory of looking up functions, inlined calls and lines in a debug file, beside the tools for it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use heapray::capture::event::{Kind, NodeId};
use heapray::collector::snapshot::{Module, ModuleId, RawNode, RawSite, StackTable};
use heapray::symbolize::{ReportOptions, resolve};
use heapray_bench_workloads::{
    Result, children_cpu, largest_child_with_files, process_cpu, resident, watched,
};

use super::{measured, mib};

const ADDRESSES: [usize; 2] = [100, 10_000];

const TOOLS: [(&str, &[&str]); 2] = [
    ("addr2line", &["-f", "-i", "-e"]),
    (
        "llvm-symbolizer",
        &["--functions=linkage", "--inlining", "--obj"],
    ),
];

/// Prints the figures for the program or library at `path`.
pub(crate) fn section(path: &str) -> Result<()> {
    println!(
        "\n## Symbols of {} in {path}\n",
        mib(std::fs::metadata(path)?.len())
    );
    println!("| | addresses | CPU | time | memory, with the file's pages |");
    println!("|---|--:|--:|--:|--:|");
    for count in ADDRESSES {
        for who in ["heapray"].into_iter().chain(TOOLS.map(|(tool, _)| tool)) {
            let values = measured(&["symbols", who, path, &count.to_string()])?;
            println!(
                "| {who} | {count} | {:.2} s | {:.2} s | {} |",
                values.get("cpu"),
                values.get("time"),
                mib(values.whole("memory"))
            );
        }
    }
    Ok(())
}

/// Measures in this process.
pub(crate) fn child(who: &str, path: &str, count: &str) -> Result<()> {
    let addresses = addresses(path, count.parse()?)?;
    match TOOLS.iter().find(|(tool, _)| *tool == who) {
        Some((tool, arguments)) => in_tool(tool, arguments, path, &addresses),
        None => in_heapray(path, &addresses),
    }
}

/// Returns random addresses of the code of a file.
pub(super) fn addresses(path: &str, count: usize) -> Result<Vec<u64>> {
    let output = Command::new("readelf").args(["-SW", path]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find_map(|line| line.split_once(" .text "));
    let mut fields = line.ok_or("there is no code")?.1.split_ascii_whitespace();
    let mut number = |skip: usize| u64::from_str_radix(fields.nth(skip).unwrap_or_default(), 16);
    let (start, size) = (number(1)?, number(1)?);
    let mut state: u64 = 1;
    let random = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        start + (state >> 16) % size
    });
    Ok(random.take(count).collect())
}

fn in_heapray(path: &str, addresses: &[u64]) -> Result<()> {
    let table = table(path, addresses)?;
    let ((resolved, time), memory) = watched(largest_child_with_files, || {
        let start = Instant::now();
        let resolved = resolve(&table, &ReportOptions::default());
        Ok((resolved, start.elapsed()))
    })?;
    // The helper has ended when its names are dropped.
    print(children_cpu() + process_cpu(), time, memory);
    println!("frames={}", resolved.report.frames.len());
    Ok(())
}

/// Returns a call stack of one frame for each address of the file at `path`.
pub(super) fn table(path: &str, addresses: &[u64]) -> Result<StackTable> {
    let node = |address| RawNode {
        parent: NodeId::ROOT,
        module: ModuleId(0),
        address,
    };
    let root = RawNode {
        module: ModuleId::NONE,
        ..node(0)
    };
    // A frame's address is that of its return.
    let nodes = std::iter::once(root).chain(addresses.iter().map(|address| node(address + 1)));
    let nodes: Vec<RawNode> = nodes.collect();
    let sites = (1..nodes.len()).map(|node| RawSite {
        context: 0,
        thread: 1,
        node: NodeId(node as u32),
        kind: Kind::Malloc,
        allocated: Default::default(),
        high_water: Default::default(),
        live: Default::default(),
        temporary: Default::default(),
        oldest_live_ms: None,
    });
    Ok(StackTable {
        sites: sites.collect(),
        nodes,
        threads: Vec::new(),
        contexts: Vec::new(),
        runs: Default::default(),
        modules: Arc::new(vec![Module {
            path: Path::new(path).canonicalize()?,
            build_id: Vec::new(),
            load_bias: 0,
            start: 0,
            end: u64::MAX,
            code: None,
            is_main: false,
        }]),
    })
}

fn in_tool(tool: &str, arguments: &[&str], path: &str, addresses: &[u64]) -> Result<()> {
    let input = input(addresses)?;
    let (cpu, start) = (children_cpu(), Instant::now());
    let mut tool = Command::new(tool)
        .args(arguments)
        .arg(path)
        .stdin(File::open(&input)?)
        .stdout(Stdio::null())
        .spawn()?;
    let mut memory = 0;
    while tool.try_wait()?.is_none() {
        // It may just have ended.
        memory = resident(tool.id()).map_or(memory, |resident| resident.most.max(memory));
        thread::sleep(Duration::from_millis(1));
    }
    print(children_cpu() - cpu, start.elapsed(), memory);
    Ok(std::fs::remove_file(input)?)
}

/// Returns a new file with the addresses, a line each, for a tool.
pub(super) fn input(addresses: &[u64]) -> Result<PathBuf> {
    let input =
        std::env::temp_dir().join(format!("heapray-bench-addresses-{}", std::process::id()));
    let text: String = addresses
        .iter()
        .map(|address| format!("{address:#x}\n"))
        .collect();
    std::fs::write(&input, text)?;
    Ok(input)
}

fn print(cpu: Duration, time: Duration, memory: u64) {
    println!(
        "cpu={}\ntime={}\nmemory={memory}",
        cpu.as_secs_f64(),
        time.as_secs_f64()
    );
}
