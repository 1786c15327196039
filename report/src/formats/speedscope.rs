//! speedscope's JSON (<https://www.speedscope.app/file-format-schema.json>): the frames once, then a profile of
//! bytes and one of blocks; with `by_thread`, these two for each thread.
//!
//! As in memray's file, a profile is "sampled": call stacks from the root with a weight each. Allocations without a call
//! stack have a name that says so. Options: measure, `by_thread` and title.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::Options;
use super::samples::{Sample, root_to_leaf, samples, total};
use super::spelling::{self, NO_STACK};
use crate::Report;
use crate::memray::in_one_line;
use crate::views::Unit;

/// Writes `report`, one stack at a time.
///
/// # Errors
/// If `out` fails.
pub fn write(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let by_unit = [Unit::Bytes, Unit::Count].map(|unit| {
        (
            unit,
            samples(report, options.measure, unit, options.by_thread),
        )
    });
    let mut profiles = Vec::new();
    for (unit, samples) in &by_unit {
        let threads = samples.chunk_by(|a, b| !options.by_thread || a.thread == b.thread);
        profiles.extend(threads.map(|samples| Profile::of(report, options, *unit, samples)));
    }
    // A file without a profile cannot be opened, so an empty capture has one empty profile.
    if profiles.is_empty() {
        let merged = Options {
            by_thread: false,
            ..options.clone()
        };
        profiles.push(Profile::of(report, &merged, Unit::Bytes, &[]));
    }
    let title = options.title.as_deref();
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        shared: Shared {
            frames: Frames(report),
        },
        profiles,
        name: in_one_line(title.unwrap_or(&report.about.command_line)),
        active_profile_index: 0,
        exporter: concat!("heapray@", env!("CARGO_PKG_VERSION")),
    };
    Ok(serde_json::to_writer(out, &file)?)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    shared: Shared<'a>,
    profiles: Vec<Profile<'a>>,
    name: Cow<'a, str>,
    active_profile_index: u32,
    exporter: &'static str,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Frames<'a>,
}

/// Frames of a report, and then the one for "no call stack".
struct Frames<'a>(&'a Report);

#[derive(Serialize)]
struct Frame<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let frames = self.0.frames.iter().map(|&frame| Frame {
            name: spelling::function(self.0, frame),
            file: spelling::file(self.0, frame),
            line: (frame.line > 0).then_some(frame.line),
        });
        let none = Frame {
            name: NO_STACK.into(),
            file: "".into(),
            line: None,
        };
        serializer.collect_seq(frames.chain([none]))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile<'a> {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Stacks<'a>,
    weights: Weights<'a>,
}

impl<'a> Profile<'a> {
    fn of(report: &'a Report, options: &Options, unit: Unit, samples: &'a [Sample]) -> Self {
        let (what, unit) = match unit {
            Unit::Bytes => ("bytes", "bytes"),
            Unit::Count => ("allocations", "none"),
        };
        let measure = options.measure.title();
        let thread = samples.first().filter(|_| options.by_thread);
        let name = match thread {
            Some(sample) => format!(
                "{measure}, {what}: {}",
                spelling::thread(report, sample.thread)
            ),
            None => format!("{measure}, {what}"),
        };
        Profile {
            r#type: "sampled",
            name,
            unit,
            start_value: 0,
            end_value: total(samples),
            samples: Stacks { report, samples },
            weights: Weights(samples),
        }
    }
}

struct Stacks<'a> {
    report: &'a Report,
    samples: &'a [Sample],
}

impl Serialize for Stacks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = self.report.frames.len() as u32;
        serializer.collect_seq(self.samples.iter().map(|sample| {
            let mut frames = Vec::new();
            root_to_leaf(self.report, sample.stack, &mut frames);
            let mut stack: Vec<u32> = frames.iter().map(|id| id.0.min(count)).collect();
            if stack.is_empty() {
                stack.push(count);
            }
            stack
        }))
    }
}

struct Weights<'a>(&'a [Sample]);

impl Serialize for Weights<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|sample| sample.weight))
    }
}
