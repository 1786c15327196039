//! Instructions of a pair, counted by callgrind: a figure that other load on the machine does not change. Only the threads
//! that make the pairs are counted, not other threads and processes.

use std::collections::BTreeMap;

use heapray_bench_workloads::Result;

use crate::contenders::{Contender, Setup};
use crate::machine::first_line;
use crate::plan::Case;
use crate::process::Measured;

/// Returns the reason why instructions cannot be counted here, if there is one.
pub(crate) fn missing() -> Option<String> {
    let version = first_line("valgrind", &["--version"]);
    version
        .is_empty()
        .then(|| "instructions: no valgrind (apt-get install valgrind)".to_owned())
}

/// Returns whether callgrind can run the contender: not Python, whose own start takes minutes there.
pub(crate) fn can_count(contender: &Contender) -> bool {
    !matches!(contender.setup, Setup::Python { .. })
}

/// Returns the instructions of a pair, from two runs that differ only in the number of pairs, so that all other instructions
/// cancel out.
pub(crate) fn count(
    contender: &Contender,
    shape: &str,
    threads: u32,
) -> Result<BTreeMap<String, f64>> {
    let (few, many) = (4_096, 12_288);
    let more = total(contender, &Case::counted_pairs(shape, threads, many))?
        - total(contender, &Case::counted_pairs(shape, threads, few))?;
    Ok(BTreeMap::from([(
        "instructions".to_owned(),
        more / (many - few) as f64 / f64::from(threads),
    )]))
}

fn total(contender: &Contender, case: &Case) -> Result<f64> {
    let name = format!("heapray-bench-callgrind-{}", std::process::id());
    let file = std::env::temp_dir().join(name);
    let wrapper = [
        "valgrind",
        "--quiet",
        "--tool=callgrind",
        "--toggle-collect=*pairs*measured*",
        &format!("--callgrind-out-file={}", file.display()),
    ];
    let wrapper = wrapper.map(str::to_owned);
    Measured::start(contender, &case.arguments(), &[], &wrapper)?.finish()?;
    let text = std::fs::read_to_string(&file);
    drop(std::fs::remove_file(&file));
    let total = text?.lines().find_map(|line| {
        line.strip_prefix("totals: ")
            .or(line.strip_prefix("summary: "))?
            .trim()
            .parse()
            .ok()
    });
    total.ok_or_else(|| "callgrind told no sum".into())
}
