//! gprof2dot's JSON, as `memray transform gprof2dot` writes it: functions, and an event for each call stack, whose
//! call chain begins at the leaf.
//!
//! Two things are better than in memray's file: a stack is one event for all allocators that it called, and allocations
//! without a call stack have a name that says so, so that the costs sum up. Options: measure and unit.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::Options;
use super::samples::{Sample, samples};
use super::spelling::{self, NO_STACK};
use crate::Report;
use crate::views::Unit;

/// Writes `report`, one event at a time.
///
/// # Errors
/// If `out` fails.
pub fn write(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let (functions, of_frame) = functions(report);
    let samples = samples(report, options.measure, options.unit, false);
    let cost = match options.unit {
        Unit::Bytes => Cost {
            description: "Memory",
            unit: "bytes",
        },
        Unit::Count => Cost {
            description: "Allocations",
            unit: "allocations",
        },
    };
    let file = File {
        version: 0,
        costs: [cost],
        events: Events {
            report,
            of_frame: &of_frame,
            samples: &samples,
        },
        functions: &functions,
    };
    Ok(serde_json::to_writer(out, &file)?)
}

/// Returns the functions, beginning with the one for "no call stack", and the number of each frame's function.
fn functions(report: &Report) -> (Vec<Function<'_>>, Vec<usize>) {
    let mut functions = vec![Function {
        name: NO_STACK.into(),
        module: "".into(),
    }];
    let mut index = HashMap::new();
    let of_frame = report
        .frames
        .iter()
        .map(|&frame| {
            let key = (frame.function, frame.file);
            *index.entry(key).or_insert_with(|| {
                functions.push(Function {
                    name: spelling::function(report, frame),
                    module: spelling::file(report, frame),
                });
                functions.len() - 1
            })
        })
        .collect();
    (functions, of_frame)
}

#[derive(Serialize)]
struct File<'a> {
    version: u32,
    costs: [Cost; 1],
    events: Events<'a>,
    functions: &'a [Function<'a>],
}

#[derive(Serialize)]
struct Cost {
    description: &'static str,
    unit: &'static str,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    module: Cow<'a, str>,
}

struct Events<'a> {
    report: &'a Report,
    of_frame: &'a [usize],
    samples: &'a [Sample],
}

#[derive(Serialize)]
struct Event {
    callchain: Vec<usize>,
    cost: [u64; 1],
}

impl Serialize for Events<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.samples.iter().map(|sample| {
            let frames = self.report.stacks.leaf_to_root(sample.stack);
            let mut callchain: Vec<usize> = frames
                .filter_map(|frame| self.of_frame.get(frame.0 as usize).copied())
                .collect();
            if callchain.is_empty() {
                callchain.push(0);
            }
            Event {
                callchain,
                cost: [sample.weight],
            }
        }))
    }
}
