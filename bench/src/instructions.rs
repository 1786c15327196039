//! Instructions of a pair, counted by callgrind: a figure that other load on the machine does not change. Only the threads
//! that make the pairs are counted, not other threads and processes.

use std::collections::BTreeMap;

use heapray_bench_workloads::Result;

use crate::callgrind::Callgrind;
use crate::contenders::{Contender, Setup};
use crate::plan::Case;
use crate::process::Measured;

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
    let (few, many) = (4_096_u32, 12_288_u32);
    let more = total(contender, &Case::counted_pairs(shape, threads, many.into()))?
        - total(contender, &Case::counted_pairs(shape, threads, few.into()))?;
    Ok(BTreeMap::from([(
        "instructions".to_owned(),
        more / f64::from(many - few) / f64::from(threads),
    )]))
}

fn total(contender: &Contender, case: &Case) -> Result<f64> {
    let callgrind = Callgrind::new("*pairs*measured*");
    Measured::start(contender, &case.arguments(), &[], &callgrind.words())?.finish()?;
    callgrind.sum()
}
