//! Collapsed stacks, one line each: `root;…;leaf weight`. Read by Brendan Gregg's flamegraph.pl, inferno, speedscope
//! and many more.
//!
//! The format has no escapes. A `;` in a name (`[u8; 4]`) becomes the similar character U+037E, as in our capture files. A
//! name that ends in a blank and a number, which readers would take for a weight, gets a no-break space there.
//! Options: measure, unit, `by_thread` (the thread is the first frame) and `lines` (`function (file:line)`).

use std::io::{self, Write};

use super::Options;
use super::samples::{root_to_leaf, samples};
use super::spelling::{self, NO_STACK};
use crate::Report;

/// Writes `report`. Needs memory for one name per frame, and 16 bytes per call site.
///
/// # Errors
/// If `out` fails.
pub fn write(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    lines(report, options, |line| {
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")
    })
}

/// Passes each line to `take`.
pub(super) fn lines(
    report: &Report,
    options: &Options,
    mut take: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<()> {
    let names: Vec<String> = report
        .frames
        .iter()
        .map(|&frame| unambiguous(&spelling::label(report, frame, options.lines)))
        .collect();
    let (mut line, mut frames) = (String::new(), Vec::new());
    for sample in samples(report, options.measure, options.unit, options.by_thread) {
        line.clear();
        if options.by_thread {
            line += &unambiguous(&spelling::thread(report, sample.thread));
            line.push(';');
        }
        root_to_leaf(report, sample.stack, &mut frames);
        let stack = frames.iter().filter_map(|id| names.get(id.0 as usize));
        let start = line.len();
        for name in stack {
            if line.len() > start {
                line.push(';');
            }
            line += name;
        }
        if line.len() == start {
            line += NO_STACK;
        }
        line += &format!(" {}", sample.weight);
        take(&line)?;
    }
    Ok(())
}

/// Returns `name` without characters that this format gives a meaning.
fn unambiguous(name: &str) -> String {
    let name = name.trim().replace(';', "\u{37e}");
    match name.rsplit_once(' ') {
        Some((head, tail)) if is_number(tail) => format!("{head}\u{a0}{tail}"),
        _ if name.is_empty() => "???".into(),
        _ => name,
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::unambiguous;

    #[test]
    fn no_name_can_be_taken_for_two_frames_or_for_a_weight() {
        for (name, spelt) in [
            ("f::<[u8; 4]>", "f::<[u8\u{37e} 4]>"),
            ("closure 12", "closure\u{a0}12"),
            ("closure 1.5", "closure\u{a0}1.5"),
            ("closure 12 ", "closure\u{a0}12"),
            (" ", "???"),
            ("f (a.rs:3)", "f (a.rs:3)"),
        ] {
            assert_eq!(unambiguous(name), spelt);
        }
    }
}
