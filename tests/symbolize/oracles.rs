//! Tests with random addresses of this program, which other symbolizers resolve too.

use std::io::Write as _;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use heapray::symbolize::resolve;

use crate::FULL;
use crate::process::{Shown, has_tool, modules, own_code, stack_frames, stack_table};

/// Number of addresses to compare.
const ADDRESSES: usize = 3000;

/// Returns return addresses anywhere in the program's code, in functions or between them.
pub(crate) fn random_addresses() -> Vec<u64> {
    addresses_in(&own_code(), ADDRESSES)
}

/// Returns so many return addresses anywhere in `code`.
pub(crate) fn addresses_in(code: &Range<u64>, count: usize) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        // Knuth's MMIX generator; its high bits are the good ones.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        code.start + 1 + (state >> 20) % (code.end - code.start - 1)
    };
    (0..count).map(|_| next()).collect()
}

/// Resolves each address with this crate, leaf first.
fn ours(addresses: &[u64]) -> Vec<Vec<Shown>> {
    let stacks: Vec<Vec<u64>> = addresses.iter().map(|&address| vec![address]).collect();
    let table = stack_table(modules(), &stacks);
    let resolved = resolve(&table, &FULL);
    let frames = |node| stack_frames(&resolved.report, resolved.stack_of(node));
    table.sites.iter().map(|site| frames(site.node)).collect()
}

/// Resolves a return address with the `backtrace` crate, leaf first.
fn backtraces(address: u64) -> Vec<Shown> {
    let mut frames = Vec::new();
    // The crate looks up the byte before, as is right for a return address.
    backtrace::resolve(address as *mut _, |symbol| {
        let name = symbol.name().map(|name| format!("{name:#}"));
        let file = symbol.filename().map(|path| path.display().to_string());
        frames.push((
            name.unwrap_or_default(),
            file.unwrap_or_default(),
            symbol.lineno().unwrap_or(0),
        ));
    });
    frames
}

/// Compares each address's frames with another symbolizer's. If the other symbolizer has no line, the address is between
/// functions: it may have any name, but must not have a line here either.
fn compare(addresses: &[u64], theirs: &[Vec<Shown>]) {
    let mut compared = 0;
    let mut inlined = 0;
    assert_eq!(addresses.len(), theirs.len());
    for ((address, ours), theirs) in addresses.iter().zip(ours(addresses)).zip(theirs) {
        if theirs.iter().all(|(_, file, _)| file.is_empty()) {
            assert!(
                matches!(&ours[..], [(_, _, 0)]),
                "{address:#x}: {ours:?}, not {theirs:?}"
            );
        } else {
            assert_eq!(&ours, theirs, "{address:#x}");
            compared += 1;
            inlined += usize::from(ours.len() > 1);
        }
    }
    println!("{compared} addresses have lines, {inlined} of them inlined calls");
    assert!(
        compared > ADDRESSES * 3 / 4,
        "{compared} addresses have lines"
    );
    assert!(
        inlined > ADDRESSES / 10,
        "{inlined} addresses have inlined calls"
    );
}

#[test]
pub(crate) fn random_addresses_resolve_as_the_backtrace_crate_does() {
    let addresses = random_addresses();
    let theirs: Vec<Vec<Shown>> = addresses
        .iter()
        .map(|&address| backtraces(address))
        .collect();
    compare(&addresses, &theirs);
}

/// Runs `addr2line -f -i` on each of `offsets`, leaf first.
fn addr2line(exe: &Path, offsets: &[u64]) -> Vec<Vec<Shown>> {
    let mut child = Command::new("addr2line")
        .args(["-a", "-f", "-i", "-e"])
        .arg(exe)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input: String = offsets
        .iter()
        .map(|offset| format!("{offset:#x}\n"))
        .collect();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut results: Vec<Vec<Shown>> = Vec::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            results.push(Vec::new());
            continue;
        }
        let name = format!("{:#}", rustc_demangle::demangle(line));
        let (file, line) = lines.next().unwrap().rsplit_once(':').unwrap();
        let line = line.split(" (discriminator").next().unwrap();
        // Between functions, `addr2line` takes the nearest symbol, whose object file is not a source file.
        let file = if file.contains('/') { file } else { "" };
        let frame = (name, file.to_owned(), line.parse().unwrap_or(0));
        results.last_mut().unwrap().push(frame);
    }
    results
}

#[test]
pub(crate) fn random_addresses_resolve_as_addr2line_does() {
    if !has_tool("addr2line") {
        return;
    }
    let addresses = random_addresses();
    let modules = modules();
    let program = modules.iter().find(|module| module.is_main).unwrap();
    let offset = |address: &u64| address - 1 - program.load_bias;
    let offsets: Vec<u64> = addresses.iter().map(offset).collect();
    compare(&addresses, &addr2line(&program.path, &offsets));
}
