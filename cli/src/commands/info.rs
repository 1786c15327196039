//! `heapray info`

use std::path::PathBuf;

use heapray_report::Report;
use heapray_report::memray::{Format, in_one_line};
use heapray_report::model::Tally;
use heapray_report::stats::estimates;
use heapray_report::units::{counted, duration, grouped, lost_since, size};
use heapray_report::views::{self, ModuleCode, code_of_modules};
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
            // As it is: this tells what names it lacks.
            let mut capture = Capture::read_apart(path, Passes::One, context)?;
            if let Some(joined) = views::joined(&capture.report) {
                capture.report = joined.report;
            }
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
    for code in code_of_modules(report) {
        lines.push(("module", module_line(report, code)));
    }
    lines.extend(conditions.notes.iter().map(|note| ("note", note.clone())));
    let line = |(name, value): &(&str, String)| format!("{name:>15}  {}\n", in_one_line(value));
    lines.iter().map(line).collect()
}

/// Returns a line about a module: what it is, and what its code lacks.
fn module_line(report: &Report, code: ModuleCode) -> String {
    let Some(module) = report.modules.get(code.module) else {
        return String::new();
    };
    let frames = counted(code.frames as u64, "frame");
    let lacks = match (code.without_function, code.without_line) {
        (0, 0) => "all with lines".to_owned(),
        (0, lines) if lines == code.frames => "all without lines".to_owned(),
        (0, lines) => format!("{} without a line", grouped(lines as u64)),
        (functions, _) if functions == code.frames => "all without names".to_owned(),
        (functions, lines) => format!(
            "{} without a name, {} without a line",
            grouped(functions as u64),
            grouped(lines as u64)
        ),
    };
    let id = match &*module.build_id {
        "" if module.hash.is_empty() => "no build id".to_owned(),
        "" => format!("no build id, htlhash {}", module.hash),
        build_id => format!("build id {build_id}"),
    };
    format!("{}, {id}: {frames}, {lacks}", module.path)
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
        "modules": modules_json(report),
        "notes": conditions.notes,
    })
}

fn modules_json(report: &Report) -> Vec<Value> {
    let module = |code: ModuleCode| {
        let module = report.modules.get(code.module)?;
        Some(json!({
            "path": module.path,
            "build_id": module.build_id,
            "htlhash": module.hash,
            "frames": code.frames,
            "without_function": code.without_function,
            "without_line": code.without_line,
        }))
    };
    code_of_modules(report)
        .into_iter()
        .filter_map(module)
        .collect()
}

/// Returns the entries of threads, without those that are only for events.
fn threads(report: &Report) -> usize {
    let entries = report.threads.iter();
    entries.filter(|thread| thread.threads > 0).count()
}
