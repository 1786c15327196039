//! The report of a call that has ended, or of all calls of a function.

use super::calls::{Ended, State};
use super::function::{Format, Function, Metric, Options};
use super::lines::Row;
use super::table::{self, Style, signed};
use super::{metric, output, pycompss, sums};
use crate::capture::scope::Scope;
use crate::profiles::scope::ScopeUsage;

/// Reports a call, or adds it to the sum.
pub(super) fn call_ended(state: &State, scope: Option<&Scope>, ended: Ended) {
    let function = state.function;
    let options = &function.options;
    let note = metric::note(state.metric);
    let rows = state.lines.rows();
    if options.sum {
        return sums::add(function, &state.lines, scope.is_some(), note, ended);
    }
    let missed = scope.map_or(0, |scope| scope.figures().missed);
    let job = state.job.as_ref().map(pycompss::JobFigures::of);
    let mut text = if options.full_report {
        let mut notes: Vec<String> = note.map(str::to_owned).into_iter().collect();
        if missed > 0 {
            notes.push(format!(
                "{missed} blocks could not be followed for lack of memory"
            ));
        }
        let line = state.lines.current();
        match ended {
            Ended::Returned => {}
            Ended::Panicked => notes.push(format!("panicked on line {line}")),
            Ended::Dropped => notes.push(format!("dropped on line {line}, before it had ended")),
        }
        full(function, rows, scope.is_some(), &notes)
    } else {
        let peak = match scope {
            Some(scope) => scope.figures().peak,
            None => state.lines.highest(),
        };
        short(function, peak, job.as_ref())
    };
    if let (true, Some(job)) = (options.full_report, &job) {
        text.push_str(&job.lines());
    }
    if let (true, Some(scope)) = (options.held, scope) {
        let held = ScopeUsage::of(function.source.name.into(), scope, note);
        text.push_str(&held.to_string());
        text.push('\n');
    }
    if options.format == Format::Pycompss {
        // memory_profiler prints its tables with `print`.
        text.push('\n');
    }
    output::print(&text);
}

/// Returns the table, with notes.
pub(super) fn full(
    function: &Function,
    rows: &[Row],
    allocations: bool,
    notes: &[String],
) -> String {
    let style = style(&function.options, allocations);
    let mut text = table::table(&function.source, rows, style);
    for note in notes {
        text.push_str("# ");
        text.push_str(note);
        text.push('\n');
    }
    text.push_str("\n\n");
    text
}

/// Returns `file function peak MiB`, or the line of PyCOMPSs.
fn short(function: &Function, peak: u64, job: Option<&pycompss::JobFigures>) -> String {
    let style = style(&function.options, false);
    let peak = table::bytes(signed(peak), style);
    let (source, peak) = (&function.source, peak.trim_start());
    match job {
        Some(job) => job.line(source, peak),
        None => format!("{} {} {peak}\n", source.file, source.name),
    }
}

fn style(options: &Options, allocations: bool) -> Style {
    Style {
        unit: options.unit,
        precision: options.precision,
        allocations: allocations && options.metric == Metric::Heap,
    }
}
