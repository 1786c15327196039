//! `heapray info`

use std::path::PathBuf;

use heapray_report::Report;
use heapray_report::memray::{Format, in_one_line};
use heapray_report::model::Tally;
use heapray_report::stats::estimates;
use heapray_report::units::{counted, duration, lost_since, size};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::input::{Capture, Passes};
use crate::json::tally;
use crate::selection::NamesArgs;

/// Show what a capture is: its process, its time, the way it was made, and its content.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The captures.
    #[arg(value_name = "FILE", required = true)]
    captures: Vec<PathBuf>,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut values = Vec::new();
        for (index, path) in self.captures.iter().enumerate() {
            let mut capture = Capture::read(path, Passes::One, context)?;
            NamesArgs::default().apply(&mut capture.report);
            if context.json() {
                values.push(as_json(&capture));
            } else {
                let gap = if index > 0 { "\n" } else { "" };
                context.print(&format!("{gap}{}", as_text(&capture)))?;
            }
        }
        match &values[..] {
            [] => Ok(()),
            // One capture gives one object, as scripts expect.
            [value] => context.print_json(value),
            _ => context.print_json(&Value::Array(values)),
        }
    }
}

fn kind(format: Format) -> &'static str {
    match format {
        Format::AllAllocations => "all allocations",
        Format::Aggregated => "aggregated",
    }
}

fn length_ms(report: &Report) -> u64 {
    let length = report.about.end_ms.saturating_sub(report.about.start_ms);
    u64::try_from(length).unwrap_or(0)
}

fn as_text(capture: &Capture) -> String {
    let report = &capture.report;
    let (about, totals, conditions) = (&report.about, &report.totals, &report.conditions);
    let amount =
        |tally: Tally| format!("{} in {}", size(tally.bytes), counted(tally.count, "block"));
    let mut lines = vec![
        ("capture", capture.name.clone()),
        (
            "format",
            format!(
                "{}, version {}",
                kind(capture.format),
                capture.version.number()
            ),
        ),
        ("written by", about.producer.clone()),
        ("command", about.command_line.clone()),
        ("process", about.pid.to_string()),
        ("length", duration(length_ms(report))),
        ("whole", if capture.complete { "yes" } else { "no" }.into()),
        ("events", about.events.to_string()),
        ("threads", threads(report).to_string()),
        ("call sites", report.sites.len().to_string()),
        ("call stacks", report.stacks.len().to_string()),
        ("high-water mark", amount(totals.high_water)),
        ("still live", amount(totals.live)),
    ];
    if totals.allocated.count > 0 {
        lines.push(("allocated", amount(totals.allocated)));
    }
    for mark in &report.marks {
        let at = duration(mark.at_ms);
        lines.push((
            "mark",
            format!("{} at {at}, {}", mark.name, amount(mark.live)),
        ));
    }
    if !conditions.hooks.is_empty() {
        lines.push(("seen through", conditions.hooks.clone()));
    }
    lines.extend(estimates(report).into_iter().map(|line| ("sampled", line)));
    if conditions.lost_events > 0 {
        let since = lost_since(conditions);
        lines.push(("events lost", format!("{}{since}", conditions.lost_events)));
    }
    lines.extend(
        conditions
            .log_given_up
            .iter()
            .map(|why| ("no event log", why.clone())),
    );
    lines.extend(conditions.notes.iter().map(|note| ("note", note.clone())));
    let line = |(name, value): &(&str, String)| format!("{name:>15}  {}\n", in_one_line(value));
    lines.iter().map(line).collect()
}

fn as_json(capture: &Capture) -> Value {
    let report = &capture.report;
    let (about, totals, conditions) = (&report.about, &report.totals, &report.conditions);
    let marks = report
        .marks
        .iter()
        .map(|mark| json!({ "name": mark.name, "at_ms": mark.at_ms, "live": tally(mark.live) }));
    json!({
        "capture": capture.name,
        "format": kind(capture.format),
        "version": capture.version.number(),
        "complete": capture.complete,
        "producer": about.producer,
        "command_line": about.command_line,
        "pid": about.pid,
        "start_ms": about.start_ms,
        "end_ms": about.end_ms,
        "events": about.events,
        "threads": threads(report),
        "call_sites": report.sites.len(),
        "call_stacks": report.stacks.len(),
        "high_water": tally(totals.high_water),
        "live": tally(totals.live),
        // Null, not 0, if the format does not have it.
        "allocated": (totals.allocated.count > 0).then(|| tally(totals.allocated)),
        "marks": marks.collect::<Vec<_>>(),
        "hooks": conditions.hooks,
        "lost_events": conditions.lost_events,
        "lost_since_ms": conditions.lost_since_ms,
        "log_given_up": conditions.log_given_up,
        "sampled": estimates(report),
        "notes": conditions.notes,
    })
}
/// Returns the entries of threads, without those that are only for events.
fn threads(report: &Report) -> usize {
    let entries = report.threads.iter();
    entries.filter(|thread| thread.threads > 0).count()
}
