//! The lines that probably leak, the likeliest first, with the reasons and a call stack of each.

use std::io::{self, Write};

use super::cell::{place, shorten, shorten_name, shorten_path, width};
use super::paint::Paint;
use super::{Options, head};
use crate::formats::spelling;
use crate::model::{FrameId, Report};
use crate::units::{counted, size};
use crate::views::{self, Kind, KnownSums, Leak, Leaks, Measure, Origins, is_plumbing};

/// Largest number of frames of a call stack that are shown.
const MOST_FRAMES: usize = 8;
/// Narrowest function name that shares its line with a place.
const NARROWEST_NAME: usize = 20;
/// Columns before the text of a leak: its labels.
const LABEL: usize = 12;

/// Writes the lines that probably leak. Of the options, the width, the colours and `max_rows` count: the number of leaks that
/// are shown.
///
/// The file and line of a leak are never cut, and may be wider than the text.
///
/// # Errors
/// If `out` fails.
pub fn leaks(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let live = Options {
        measure: Measure::Live,
        ..options.clone()
    };
    head::put(report, &live, out)?;
    let columns = options.columns();
    if let Some(found) = views::fragmentation(report) {
        put_sentence(&found.advice(), 0, columns, out)?;
        writeln!(out)?;
    }
    put_ranking(report, options, out)?;
    put_known(report, options, out)
}

/// Writes what is known, and so not ranked.
fn put_known(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let known = views::known(report);
    if known.is_empty() {
        return Ok(());
    }
    let paint = Paint(options.colours);
    writeln!(out, "\n{}", paint.bold("Known, and not ranked:"))?;
    for KnownSums { rule, sums } in known {
        let held = report.about.known[rule].held(&sums);
        write!(out, "   ")?;
        put_sentence(&held, 3, options.columns(), out)?;
    }
    Ok(())
}

fn put_ranking(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let columns = options.columns();
    let list = match views::leaks(report) {
        Leaks::Ranked(list) => list,
        Leaks::Unknown(reason) => {
            writeln!(out, "Whether anything leaks cannot be told.")?;
            put_sentence(reason, 0, columns, out)?;
            let hint =
                "`heapray diff` of two captures of the same process shows what grew between them.";
            return put_sentence(hint, 0, columns, out);
        }
    };
    if list.is_empty() {
        let nothing = "Nothing grows with the work: no line keeps more the more the program does.";
        return writeln!(out, "{nothing}");
    }
    let paint = Paint(options.colours);
    let title = "Lines that keep more the more the program does, the likeliest leak first:";
    writeln!(out, "{}", paint.bold(title))?;
    let origins = Origins::of(report);
    let shown = options.max_rows.unwrap_or(list.len()).min(list.len());
    let mut has_own = false;
    for (number, leak) in (1..).zip(&list[..shown]) {
        let rows = rows(report, &origins, leak);
        has_own |= rows.iter().any(|row| row.is_own(&origins));
        put_leak(report, number, leak, options, out)?;
        put_stack(report, &origins, &rows, options, out)?;
    }
    let hidden = list.len() - shown;
    if hidden > 0 {
        let more = counted(hidden as u64, "more line");
        writeln!(out, "\n{}", paint.dim(format!("and {more}, less likely")))?;
    }
    if has_own {
        writeln!(out, "\n{}", paint.dim("* the service's own code"))?;
    }
    Ok(())
}

/// Writes a leak without its call stack.
fn put_leak(
    report: &Report,
    number: usize,
    leak: &Leak,
    options: &Options,
    out: &mut impl Write,
) -> io::Result<()> {
    let (columns, paint) = (options.columns(), Paint(options.colours));
    let (name, place) = spelled(report, leak.frame);
    let first = format!("\n{number}. ");
    let used = width(first.trim_start()) + width(&place) + 2;
    if columns >= used + NARROWEST_NAME {
        let name = shorten_name(&name, columns - used);
        writeln!(out, "{first}{}  {}", paint.name(name), paint.place(place))?;
    } else {
        let name = shorten_name(&name, columns - width(first.trim_start()));
        writeln!(
            out,
            "{first}{}\n   {}",
            paint.name(name),
            paint.place(place)
        )?;
    }
    writeln!(
        out,
        "   {} confidence, {} live in {}, {} more an hour",
        paint.confidence(leak.confidence),
        size(leak.live.bytes),
        counted(leak.live.count, "block"),
        size(leak.growth_bytes_per_hour),
    )?;
    for (label, sentences) in [("for", &leak.evidence), ("against", &leak.against)] {
        for (index, sentence) in sentences.iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            write!(out, "   {}", paint.dim(format!("{label:9}")))?;
            put_sentence(sentence, LABEL, columns, out)?;
        }
    }
    Ok(())
}

/// Row of a call stack.
enum Row {
    Call(FrameId),
    /// Number of calls that are not shown.
    Omitted(usize),
}

impl Row {
    fn is_own(&self, origins: &Origins) -> bool {
        matches!(self, Row::Call(frame) if origins.kind(*frame) == Kind::Own)
    }
}

/// Returns the call stack of `leak`, leaf first: the leaf, the leaking line, the service's own frames, and of the frames
/// between them the one that tells most. That is the function that own code has called, or, below all own code, the one that
/// has called it.
fn rows(report: &Report, origins: &Origins, leak: &Leak) -> Vec<Row> {
    let path: Vec<FrameId> = report.stacks.leaf_to_root(leak.stack).collect();
    let matters = |&frame: &FrameId| frame == leak.frame || origins.kind(frame) == Kind::Own;
    let tells = |&frame: &FrameId| !is_plumbing(&spelled(report, frame).0);
    let mut keep = vec![false; path.len()];
    let mut end = 0;
    for run in path.chunk_by(|a, b| matters(a) == matters(b)) {
        let keep = &mut keep[end..end + run.len()];
        end += run.len();
        if matters(&run[0]) {
            keep.fill(true);
            continue;
        }
        let most_telling = if end == path.len() {
            run.iter().position(tells)
        } else {
            run.iter().rposition(tells)
        };
        if let Some(at) = most_telling {
            keep[at] = true;
        }
    }
    if let Some(leaf) = keep.first_mut() {
        *leaf = true;
    }
    let kept = keep.iter_mut().filter(|keep| **keep);
    for keep in kept.skip(MOST_FRAMES) {
        *keep = false;
    }
    let mut rows = Vec::new();
    let mut frames = path.into_iter();
    for run in keep.chunk_by(|a, b| a == b) {
        let calls = frames.by_ref().take(run.len());
        // A single call takes no more room than its omission.
        if run[0] || run.len() == 1 {
            rows.extend(calls.map(Row::Call));
        } else {
            rows.push(Row::Omitted(calls.count()));
        }
    }
    rows
}

fn put_stack(
    report: &Report,
    origins: &Origins,
    rows: &[Row],
    options: &Options,
    out: &mut impl Write,
) -> io::Result<()> {
    let (columns, paint) = (options.columns(), Paint(options.colours));
    let room = columns - LABEL;
    for (index, row) in rows.iter().enumerate() {
        let label = if index == 0 { "stack" } else { "" };
        let own = if row.is_own(origins) { '*' } else { ' ' };
        write!(out, "   {}{own} ", paint.dim(format!("{label:7}")))?;
        match *row {
            Row::Omitted(calls) => {
                let calls = format!("… {} …", counted(calls as u64, "call"));
                writeln!(out, "{}", paint.dim(calls))?;
            }
            Row::Call(frame) => {
                let (name, place) = spelled(report, frame);
                let for_place =
                    width(&place).min((room / 2).max(room.saturating_sub(width(&name) + 2)));
                let name = shorten_name(&name, room.saturating_sub(for_place + 2));
                let name = if own == '*' { paint.name(name) } else { name };
                let place = shorten_path(&place, for_place);
                let line = format!("{name}  {}", paint.place(place));
                writeln!(out, "{}", line.trim_end())?;
            }
        }
    }
    Ok(())
}

/// Returns a frame's function, and its file and line.
fn spelled(report: &Report, frame: FrameId) -> (String, String) {
    spelling::frame(report, frame).map_or_else(
        || (spelling::NO_STACK.to_owned(), String::new()),
        |frame| {
            let name = spelling::function(report, frame).into_owned();
            (name, place(report, frame))
        },
    )
}

/// Writes `sentence`, whose first line begins at column `indent`, as the following ones do.
fn put_sentence(
    sentence: &str,
    indent: usize,
    columns: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let room = columns.saturating_sub(indent);
    let mut used = 0;
    for word in sentence.split(' ') {
        let word = shorten(word, room);
        if used > 0 && used + 1 + width(&word) > room {
            write!(out, "\n{:indent$}", "")?;
            used = 0;
        }
        let gap = if used > 0 { " " } else { "" };
        write!(out, "{gap}{word}")?;
        used += width(gap) + width(&word);
    }
    writeln!(out)
}
