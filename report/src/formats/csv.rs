//! CSV, a row for each call site (thread, call stack, allocator).
//!
//! The first six columns are those of `memray transform csv`, with the same names: `stack_trace` is `function;file;line`
//! from the leaf, joined by `|`. As in our capture files, `;` and `|` in names become the similar characters U+037E and
//! U+2223. Two columns are additional: `location`, the leaf as `function:file:line`, and `context`, its labels as `key=value`,
//! sorted and joined by `|`. Lines end in CR LF, and cells are quoted if necessary (RFC 4180).
//!
//! A cell that a spreadsheet would take for a formula (its first character that is not blank is one of `=+-@` or their
//! full-width forms) gets a `'` in front, as OWASP advises: it is shown as text, and the `'` is easy to remove.
//! Options: measure.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::Options;
use super::spelling::{self, NO_STACK};
use crate::Report;
use crate::memray::to_capture;
use crate::model::{Context, Site, ThreadId};

const COLUMNS: &str =
    "allocator,num_allocations,size,tid,thread_name,stack_trace,location,context\r\n";

/// Writes `report`, one row at a time. Call sites without any of the measure have no row.
///
/// # Errors
/// If `out` fails.
pub fn write(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    out.write_all(COLUMNS.as_bytes())?;
    let frames: Vec<String> = report
        .frames
        .iter()
        .map(|&frame| {
            let function = spelling::function(report, frame);
            let file = spelling::file(report, frame);
            let (function, file) = (to_capture(&function), to_capture(&file));
            format!("{function};{file};{}", frame.line)
        })
        .collect();
    let threads: Vec<String> = (0..)
        .take(report.threads.len())
        .map(|id| thread_name(report, ThreadId(id)))
        .collect();
    let contexts: Vec<String> = report.contexts.iter().map(labels).collect();
    let mut row = Row::default();
    for site in &report.sites {
        let tally = options.measure.of(site);
        if tally.count == 0 && tally.bytes == 0 {
            continue;
        }
        row.text.clear();
        let thread = site.thread.0 as usize;
        let tid = report.threads.get(thread).map_or(0, |thread| thread.tid);
        let allocator = site.allocator.name();
        // Writing to a string cannot fail.
        let _ = write!(
            row.text,
            "{allocator},{},{},{tid},",
            tally.count, tally.bytes
        );
        row.cell(threads.get(thread).map_or("", String::as_str));
        row.text.push(',');
        row.stack(report, site, &frames);
        row.text.push(',');
        row.location(report, site);
        row.text.push(',');
        row.cell(
            contexts
                .get(site.context.0 as usize)
                .map_or("", String::as_str),
        );
        row.text.push_str("\r\n");
        out.write_all(row.text.as_bytes())?;
    }
    Ok(())
}

/// Returns a thread's name as in memray: its number in hexadecimal, and its name, if it has one.
fn thread_name(report: &Report, id: ThreadId) -> String {
    let Some(thread) = report.threads.get(id.0 as usize) else {
        return String::new();
    };
    match report.strings.get(thread.name) {
        "" => format!("{:#x}", thread.tid),
        name => format!("{:#x} ({})", thread.tid, to_capture(name)),
    }
}

/// Returns the labels of a context in one cell.
fn labels(context: &Context) -> String {
    let labels = context.labels.iter();
    let labels = labels.map(|(key, value)| format!("{}={}", to_capture(key), to_capture(value)));
    labels.collect::<Vec<_>>().join("|")
}

/// Row that is being written, with a buffer for the cell.
#[derive(Default)]
struct Row {
    text: String,
    scratch: String,
}

impl Row {
    fn stack(&mut self, report: &Report, site: &Site, frames: &[String]) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        for frame in report.stacks.leaf_to_root(site.stack) {
            if !scratch.is_empty() {
                scratch.push('|');
            }
            scratch.push_str(frames.get(frame.0 as usize).map_or("", String::as_str));
        }
        self.cell(&scratch);
        self.scratch = scratch;
    }

    fn location(&mut self, report: &Report, site: &Site) {
        let leaf = report.stacks.node(site.stack);
        match leaf.and_then(|node| spelling::frame(report, node.frame)) {
            None => self.cell(NO_STACK),
            frame => self.cell(&spelling::location(report, frame)),
        }
    }

    /// Appends `text` as one cell, quoted if necessary, and never a formula.
    fn cell(&mut self, text: &str) {
        let formula = is_formula(text);
        let quoted = text.contains([',', '"', '\r', '\n']);
        if quoted {
            self.text.push('"');
        }
        if formula {
            self.text.push('\'');
        }
        if quoted {
            self.text.push_str(&text.replace('"', "\"\""));
            self.text.push('"');
        } else {
            self.text.push_str(text);
        }
    }
}

fn is_formula(text: &str) -> bool {
    text.trim_start()
        .starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
}

#[cfg(test)]
mod tests {
    use super::{Row, write};
    use crate::formats::Options;

    #[test]
    fn a_row_has_the_labels_of_its_context() {
        let mut out = Vec::new();
        write(
            &crate::views::report_with_contexts(),
            &Options::default(),
            &mut out,
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        let last = text.lines().map(|line| line.rsplit(',').next().unwrap());
        let last: Vec<&str> = last.collect();
        assert_eq!(
            last,
            ["context", "", "route=GET /a", "route=GET /b|tenant=acme"]
        );
    }

    #[test]
    fn no_cell_is_taken_for_a_formula_or_breaks_its_row() {
        for (text, cell) in [
            ("plain;x.rs;3", "plain;x.rs;3"),
            ("=1+2", "'=1+2"),
            (" @SUM(A1)", "' @SUM(A1)"),
            ("＝1", "'＝1"),
            ("-a,\"b\"", "\"'-a,\"\"b\"\"\""),
            ("a-b", "a-b"),
        ] {
            let mut row = Row::default();
            row.cell(text);
            assert_eq!(row.text, cell);
        }
    }
}
