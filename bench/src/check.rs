//! Checks that a profiler does the work: how many of a known number of allocations it recorded, and how deep its stacks are.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use heapray_bench_workloads::{Folded, Result};

use crate::after;
use crate::contenders::{Contender, Setup};
use crate::plan::Case;
use crate::process::Measured;

/// Pairs that are made, besides one from each stack before.
const PAIRS: u64 = 10_240;

/// Returns the case of the check.
pub(crate) fn case() -> Case {
    Case::counted_pairs("warm", 1, PAIRS)
}

/// Runs the check and adds `stacks`, `deepest` and `recorded`.
pub(crate) fn check(contender: &Contender) -> Result<BTreeMap<String, f64>> {
    let case = case();
    let done =
        Measured::start(contender, &case.arguments(), &["finish", "check=1"], &[])?.finish()?;
    let mut values = done.values;
    if let Some(recording) = after::recording(contender, done.folder.path()) {
        let folded = match (&contender.setup, contender.id) {
            (Setup::Heaptrack(_), _) => Some(heaptrack(&output(
                "zstd".as_ref(),
                &["-q", "-d", "-c"],
                &recording,
            )?)),
            (Setup::Python { python, .. }, _) => Some(memray(python, &recording)?),
            (_, "gperftools" | "gperftools-fp") => {
                Some(gperftools(&std::fs::read_to_string(&recording)?))
            }
            _ => None,
        };
        if let Some(folded) = folded {
            let (stacks, deepest, allocations) = folded.sums();
            values.insert("stacks".into(), stacks as f64);
            values.insert("deepest".into(), deepest as f64);
            values.insert("recorded".into(), allocations as f64);
        }
    }
    if !values.contains_key("recorded")
        && let Some(&allocations) = values.get("stack_allocations")
    {
        values.insert("recorded".into(), allocations);
    }
    let pairs = values.get("pairs").copied().unwrap_or(0.0);
    let warm_up = values.get("warm_up_pairs").copied().unwrap_or(0.0);
    values.insert("expected".into(), pairs + warm_up);
    Ok(values)
}

fn output(program: &Path, arguments: &[&str], file: &Path) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .arg(file)
        .stdin(Stdio::null())
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads heaptrack's lines: `t` ip parent is a frame of the tree of calls, numbered from 1; `a` size trace is a kind of
/// allocation; `+` kind is an allocation. In a raw file, before its interpreter, `+` size trace address is an allocation.
fn heaptrack(text: &str) -> Folded {
    let mut depths = vec![0_usize];
    let mut kinds: Vec<(usize, u64)> = Vec::new();
    let mut folded = Folded::default();
    let number = |text: &str| usize::from_str_radix(text, 16).unwrap_or(0);
    for line in text.lines() {
        let mut words = line.split(' ');
        match words.next() {
            Some("t") => {
                let parent = words.nth(1).map_or(0, number);
                depths.push(depths.get(parent).map_or(0, |depth| depth + 1));
            }
            Some("a") => kinds.push((words.nth(1).map_or(0, number), 0)),
            Some("+") if line.split(' ').count() == 4 => {
                let trace = words.nth(1).map_or(0, number);
                let depth = depths.get(trace).copied().unwrap_or(0);
                folded.add(trace as u64, depth, 1);
            }
            Some("+") => {
                if let Some(kind) = words.next().map(number)
                    && let Some((_, allocations)) = kinds.get_mut(kind)
                {
                    *allocations += 1;
                }
            }
            _ => {}
        }
    }
    for (trace, allocations) in kinds {
        folded.add(
            trace as u64,
            depths.get(trace).copied().unwrap_or(0),
            allocations,
        );
    }
    folded
}

/// Reads gperftools' lines: `live: bytes [allocated: bytes] @ address …`.
fn gperftools(text: &str) -> Folded {
    let mut folded = Folded::default();
    for (number, line) in text.lines().enumerate().skip(1) {
        let Some((counts, addresses)) = line.split_once(" @") else {
            continue;
        };
        let allocated = counts
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(':'));
        let allocations = allocated.and_then(|(count, _)| count.trim().parse().ok());
        let depth = addresses.split_whitespace().count();
        folded.add(number as u64, depth, allocations.unwrap_or(0));
    }
    folded
}

/// Reads a file with memray's own reader.
fn memray(python: &Path, file: &Path) -> Result<Folded> {
    const SCRIPT: &str = "\
import sys
from memray import AllocatorType, FileReader
returned = (AllocatorType.FREE, AllocatorType.MUNMAP, AllocatorType.PYMALLOC_FREE)
with FileReader(sys.argv[1]) as reader:
    for record in reader.get_allocation_records():
        if record.allocator not in returned:
            print(';'.join(str(frame[0]) for frame in record.hybrid_stack_trace()), 1)
";
    Ok(Folded::read(&output(python, &["-c", SCRIPT], file)?))
}

#[cfg(test)]
mod tests {
    use super::{gperftools, heaptrack};

    #[test]
    fn frames_and_allocations_of_heaptrack_are_counted() {
        // Traces 1 ← 2 ← 3; the first kind was allocated twice, below three frames.
        let text = "v 10650 3\nt 1 0\nt 2 1\nt 3 2\na 40 3\na 10 1\n+ 0\n- 0\n+ 0\n+ 1\n";
        assert_eq!(heaptrack(text).sums(), (2, 3, 3));
        let raw = "v 10400 2\nt 1 0\nt 2 1\n+ 40 2 7f00\n- 7f00\n+ 10 2 7f00\n";
        assert_eq!(heaptrack(raw).sums(), (1, 2, 2));
    }

    #[test]
    fn frames_and_allocations_of_gperftools_are_counted() {
        let text = "heap profile: 1: 8 [ 5: 40] @ heapprofile\n  1: 8 [ 4: 32] @ 0x1 0x2\n  0: 0 [ 1: 8] @\n\nMAPPED_LIBRARIES:\n";
        assert_eq!(gperftools(text).sums(), (2, 2, 5));
    }
}
