//! A `malloc` and a `free`, on a stack that stands still and on one that moves.

use crate::child::{Values, measured};
use crate::deep;
use crate::measure::{Result, median, thread_cpu};
use crate::mode::Mode;

/// Frames below `main`, as design and budget have it.
const DEPTH: usize = 60;
/// Frames that a moving stack leaves and enters again.
const MOVED: usize = 6;
/// Pairs before a moving stack moves.
const RUN: usize = 8;

const PROCESSES: usize = 5;
const ROUNDS: usize = 9;
const PAIRS: usize = 100_000;

/// Prints the table.
pub(crate) fn section() -> Result<()> {
    println!("\n## A malloc+free pair, stack {DEPTH} frames deep\n");
    println!(
        "CPU time of the thread: medians of {PROCESSES} processes in turns, {ROUNDS} rounds of {PAIRS} pairs each, 64 bytes.\n"
    );
    let modes = Mode::available();
    let mut still: Vec<Vec<Values>> = modes.iter().map(|_| Vec::new()).collect();
    let mut moving: Vec<Vec<Values>> = modes.iter().map(|_| Vec::new()).collect();
    for _ in 0..PROCESSES {
        for (index, &mode) in modes.iter().enumerate() {
            still[index].push(measured("pairs", mode, &["still".to_owned()])?);
            moving[index].push(measured("pairs", mode, &["moving".to_owned()])?);
        }
    }
    println!(
        "| | same stack | {MOVED} frames change every {RUN} pairs | collector, ns an event | lost events |"
    );
    println!("|---|---|---|---|---|");
    for ((mode, still), moving) in modes.iter().zip(&still).zip(&moving) {
        let (still, moving) = (Values::medians(still), Values::medians(moving));
        let recording = *mode == Mode::Recording;
        let or_none = |text: String| if recording { text } else { String::new() };
        println!(
            "| {} | {:.1} ns | {:.1} ns | {} | {} |",
            mode.name(),
            still.get("ns"),
            moving.get("ns"),
            or_none(format!(
                "{:.1}, {:.1}",
                still.get("collector_ns"),
                moving.get("collector_ns")
            )),
            or_none(format!("{}, {}", still.whole("lost"), moving.whole("lost"))),
        );
    }
    Ok(())
}

/// Measures in this process.
pub(crate) fn child(mode: Mode, rest: &[String]) -> Result<()> {
    let profiler = mode.enter()?;
    let shape = rest.first().map_or("still", String::as_str);
    let mut rounds = Vec::new();
    // The first round warms everything up.
    for _ in 0..=ROUNDS {
        let before = thread_cpu();
        match shape {
            "still" => still(PAIRS),
            "moving" => moving(PAIRS),
            _ => return Err(format!("{shape} is no shape of stack").into()),
        }
        rounds.push((thread_cpu() - before).as_nanos() as f64 / PAIRS as f64);
    }
    println!("ns={}", median(rounds.split_off(1)));
    if mode == Mode::Recording {
        let status = profiler.stop()?;
        println!(
            "collector_ns={}",
            status.overhead.collector_cpu_ns as f64 / status.events as f64
        );
        println!("lost={}", status.lost_events);
    }
    Ok(())
}

/// `pairs` pairs at the end of one call stack. Its own function, by whose name callgrind finds it.
#[inline(never)]
pub(crate) fn still(pairs: usize) {
    deep::at_depth(DEPTH, &mut || {
        for _ in 0..pairs {
            deep::pair(64);
        }
    });
}

/// `pairs` pairs on a stack whose last frames are left and entered again after every few of them.
fn moving(pairs: usize) {
    deep::at_depth(DEPTH - MOVED, &mut || {
        for _ in 0..pairs / RUN {
            deep::at_depth(MOVED, &mut || {
                for _ in 0..RUN {
                    deep::pair(64);
                }
            });
        }
    });
}
