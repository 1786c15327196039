//! Runs the plan. All contenders take turns in each round, so that other load on the machine affects all alike.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use heapray_bench_workloads::Result;

use crate::contenders::{Contender, Setup};
use crate::machine;
use crate::plan::{ALWAYS_ON, Case, Plan, is_measured};
use crate::process::Measured;
use crate::programs::Programs;
use crate::runs::{Run, Runs};
use crate::{after, always_on, callgrind, check, instructions, server};

type Values = Result<BTreeMap<String, f64>>;

/// Measures everything, and reports progress. The results so far are in `file` after each case.
pub(crate) fn drive(
    plan: &Plan,
    contenders: &[Contender],
    programs: &Programs,
    runs: &mut Runs,
    file: &Path,
) -> Result<()> {
    let start = Instant::now();
    for missing in &runs.missing {
        println!("missing: {missing}");
    }
    let mut contenders = contenders.to_vec();
    leave_out_sampling(&mut contenders, runs);
    let mut fixed = BTreeMap::new();
    for contender in &contenders {
        fixed.insert(contender.id, helper_at_least(contender).unwrap_or(0.0));
    }
    if plan.check {
        println!("{:6.0?} check", start.elapsed());
        for contender in with_part_in(&contenders, "check") {
            runs.add("check", contender, 0, check::check(contender));
        }
    }
    if !plan.instructions.is_empty() {
        match callgrind::missing() {
            Some(missing) => {
                println!("missing: {missing}");
                runs.missing.push(missing);
            }
            None => {
                for &(shape, threads) in plan.instructions {
                    let case = format!("instructions {shape} threads={threads}");
                    println!("{:6.0?} {case}", start.elapsed());
                    for contender in with_part_in(&contenders, "instructions")
                        .filter(|one| instructions::can_count(one))
                    {
                        let counted = instructions::count(contender, shape, threads);
                        runs.add(&case, contender, 0, counted);
                    }
                }
            }
        }
    }
    for case in &plan.cases {
        let key = case.key();
        println!("{:6.0?} {key}", start.elapsed());
        let mut spent: BTreeMap<&str, f64> = BTreeMap::new();
        let mut failed = BTreeSet::new();
        for round in 0..plan.rounds {
            for contender in contenders.iter().filter(|one| case.has(one.id)) {
                let spent = spent.entry(contender.id).or_default();
                if *spent > case.enough_seconds || failed.contains(contender.id) {
                    continue;
                }
                let before = Instant::now();
                let mut values = measure(contender, case, programs, round);
                if let Ok(values) = &mut values
                    && let Some(helper) = values.get_mut("helper_cpu_ns")
                {
                    *helper = (*helper - fixed.get(contender.id).unwrap_or(&0.0)).max(0.0);
                }
                *spent += before.elapsed().as_secs_f64();
                if values.is_err() {
                    failed.insert(contender.id);
                }
                runs.add(&key, contender, round, values);
            }
        }
        runs.write(file)?;
    }
    runs.machine.load[1] = machine::load();
    println!("{:6.0?} done", start.elapsed());
    runs.write(file)
}

impl Runs {
    fn add(&mut self, case: &str, contender: &Contender, round: u32, values: Values) {
        let failed = values.as_ref().err().map(ToString::to_string);
        if let Some(failed) = &failed {
            println!("       {}: {failed}", contender.id);
        }
        self.runs.push(Run {
            case: case.to_owned(),
            contender: contender.id.to_owned(),
            round,
            values: values.unwrap_or_default(),
            failed,
        });
    }
}

fn with_part_in<'a>(
    contenders: &'a [Contender],
    workload: &'a str,
) -> impl Iterator<Item = &'a Contender> {
    contenders
        .iter()
        .filter(move |one| is_measured(workload, one.id))
}

fn measure(contender: &Contender, case: &Case, programs: &Programs, round: u32) -> Values {
    match case.workload {
        "server" => return Ok(server::measure(contender, case)?.values),
        ALWAYS_ON => return Ok(always_on::measure(contender, case)?.values),
        _ => {}
    }
    let mut contender = contender.clone();
    if case.only.is_some() {
        // Far from its default, 2 GiB: the curve is to show what bends it besides.
        contender = contender.also("MEMRAY_PROFILER_OVERHEAD_LIMIT", "16 GiB");
    }
    let mut done = Measured::start(&contender, &case.arguments(), case.finish, &[])?.finish()?;
    // Once is enough: it takes a peer's tools a minute.
    if !case.finish.is_empty() && round == 0 {
        after::finish(&contender, programs, &mut done)?;
    }
    Ok(done.values)
}

/// Returns the CPU time that a contender's helper process takes for almost no work, because it reads the program's debug
/// information. That is not a cost of allocations, and is left out of the figures.
fn helper_at_least(contender: &Contender) -> Result<f64> {
    if !matches!(contender.setup, Setup::Heaptrack(_)) {
        return Ok(0.0);
    }
    let case = Case::counted_pairs("warm", 1, 1);
    let done = Measured::start(contender, &case.arguments(), &[], &[])?.finish()?;
    Ok(done.values.get("helper_cpu_ns").copied().unwrap_or(0.0))
}

/// Leaves out a column for sampling if this heapray does not support `MEMRAY_PROFILER_SAMPLE`, and so records every
/// allocation.
fn leave_out_sampling(contenders: &mut Vec<Contender>, runs: &mut Runs) {
    let samples = |contender: &Contender| -> Result<bool> {
        let values = check::check(contender)?;
        // A sample of 6 MB, one per 512 KiB, cannot have found most of the stacks.
        let stacks = values.get("stacks").copied().unwrap_or(0.0);
        Ok(stacks < heapray_bench_workloads::stacks::STACKS as f64 / 2.0)
    };
    contenders.retain(|contender| {
        let is_sampling = matches!(contender.id, "got-sampling" | "global-sampling");
        if !is_sampling || samples(contender).unwrap_or(true) {
            return true;
        }
        println!("missing: {}: this heapray does not sample", contender.id);
        runs.contenders.retain(|about| about.id != contender.id);
        runs.missing
            .push(format!("{}: this heapray does not sample", contender.title));
        false
    });
}
