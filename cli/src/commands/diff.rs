//! `heapray diff`

use std::fmt::Write;
use std::path::PathBuf;

use heapray_report::memray::in_one_line;
use heapray_report::model::FrameId;
use heapray_report::page::Page;
use heapray_report::units::{counted, size};
use heapray_report::views::{Change, Diff, Measure, Unit, diff};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::json::tally;
use crate::output::OutputArgs;
use crate::selection::{NamesArgs, PartArgs, SideArgs, UnitArgs};

/// Compare two captures, such as before and after, or two replicas: growth and shrinkage, by the line of the service's own
/// code.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The first capture.
    before: PathBuf,
    /// The second.
    after: PathBuf,
    /// Number of lines that are shown; the rest is summed up.
    #[arg(long, short = 'r', value_name = "N", default_value_t = 30)]
    max_rows: usize,
    /// Write the page of the growth instead, by default to memray-diff-AFTER.html.
    #[arg(long)]
    page: bool,
    #[command(flatten)]
    unit: UnitArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    side: SideArgs,
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    part: PartArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let out = if self.page {
            self.output.or_beside(&self.after, "diff", "html")?
        } else {
            self.output.or_stdout()?
        };
        let mut reports = Vec::new();
        for path in [&self.before, &self.after] {
            let capture = self.part.read(path, &self.side, self.names, context)?;
            reports.push(capture.report);
        }
        self.names.apply_to_all(&mut reports);
        let diff = diff(&reports[0], &reports[1]);
        // The comparison has all data of both.
        drop(reports);
        if self.page {
            let grown = diff.grown();
            let opens_at = self.side.opens_at().unwrap_or_default();
            return out.write(context, |mut out| {
                Page::of(&grown).write_opened_at(opens_at, &mut out)
            });
        }
        let text = if context.json() {
            format!("{:#}\n", as_json(&diff))
        } else {
            self.as_text(&diff)
        };
        out.write(context, |out| out.write_all(text.as_bytes()))
    }

    /// Returns the largest changes first, in the requested measure and unit.
    fn as_text(&self, diff: &Diff) -> String {
        let (measure, unit) = (self.side.measure(), self.unit.unit());
        let mut rows: Vec<(Option<FrameId>, &Change)> = diff
            .by_own_site
            .iter()
            .map(|(frame, change)| (*frame, change))
            .filter(|(_, change)| change.growth(measure, unit) != 0)
            .collect();
        rows.sort_by_key(|(_, change)| {
            std::cmp::Reverse(change.growth(measure, unit).unsigned_abs())
        });
        let mut text = format!(
            "{}, {} to {}: {}\n",
            measure.title(),
            amount(unit, unit.of(measure.of_sums(&diff.total.before))),
            amount(unit, unit.of(measure.of_sums(&diff.total.after))),
            signed(unit, diff.total.growth(measure, unit)),
        );
        for (frame, change) in rows.iter().take(self.max_rows) {
            put_row(&mut text, change, measure, unit, &place(diff, *frame));
        }
        let rest = rows.get(self.max_rows..).unwrap_or_default();
        if !rest.is_empty() {
            let growth: i128 = rest
                .iter()
                .map(|(_, change)| change.growth(measure, unit))
                .sum();
            let place = format!("({} more)", rest.len());
            let _ = writeln!(text, "{:>14}  {:>16}  {place}", signed(unit, growth), "");
        }
        text
    }
}

fn put_row(text: &mut String, change: &Change, measure: Measure, unit: Unit, place: &str) {
    let [first, second] =
        [unit, unit.other()].map(|unit| signed(unit, change.growth(measure, unit)));
    // A `String` takes everything.
    let _ = writeln!(text, "{first:>14}  {second:>16}  {place}");
}

fn amount(unit: Unit, number: u64) -> String {
    match unit {
        Unit::Bytes => size(number),
        Unit::Count => counted(number, "block"),
    }
}

fn signed(unit: Unit, growth: i128) -> String {
    let sign = if growth < 0 { '-' } else { '+' };
    let number = u64::try_from(growth.unsigned_abs()).unwrap_or(u64::MAX);
    format!("{sign}{}", amount(unit, number))
}

fn place(diff: &Diff, frame: Option<FrameId>) -> String {
    let frame = frame.and_then(|FrameId(frame)| diff.tables.frames.get(frame as usize));
    frame.map_or("(no call stack)".into(), |frame| {
        let strings = &diff.tables.strings;
        let function = in_one_line(strings.get(frame.function));
        let file = in_one_line(strings.get(frame.file));
        match frame.line {
            0 => format!("{function} {file}"),
            line => format!("{function} {file}:{line}"),
        }
    })
}

fn as_json(diff: &Diff) -> Value {
    let sides = |change: &Change| {
        let side = |measure: Measure| {
            let of = |sums| tally(measure.of_sums(sums));
            json!({ "before": of(&change.before), "after": of(&change.after) })
        };
        json!({
            "high_water": side(Measure::HighWater),
            "live": side(Measure::Live),
            "allocated": side(Measure::Allocated),
            "temporary": side(Measure::Temporary),
        })
    };
    let sites = diff.by_own_site.iter().map(|(frame, change)| {
        let frame = frame.and_then(|FrameId(frame)| diff.tables.frames.get(frame as usize));
        let name = |id| diff.tables.strings.get(id);
        json!({
            "function": frame.map(|frame| name(frame.function)),
            "file": frame.map(|frame| name(frame.file)),
            "line": frame.map(|frame| frame.line),
            "change": sides(change),
        })
    });
    json!({ "total": sides(&diff.total), "sites": sites.collect::<Vec<_>>() })
}
