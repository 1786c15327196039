//! Reads a file line by line.

use std::io::{BufRead, Read};

use super::{Line, ReadError, Reading};

/// Longest line in bytes. Command lines are long, but a file without a newline must not fill the memory.
const LONGEST: u64 = 1 << 20;

/// Passes each line of `from` to `each`. Returns `Ok(Some(…))` if the last line is cut, as when the process is killed while
/// it writes; all lines before it are whole.
pub(super) fn each_line(
    mut from: impl BufRead,
    mut each: impl FnMut(Line<'_>),
) -> Result<Option<ReadError>, ReadError> {
    let mut bytes = Vec::new();
    let mut first = None;
    for number in 1.. {
        bytes.clear();
        if from.by_ref().take(LONGEST).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let whole = bytes.last() == Some(&b'\n');
        if whole {
            bytes.pop();
        }
        let bad = |reason: String| ReadError::Line { number, reason };
        if !whole && bytes.len() as u64 == LONGEST {
            return Err(bad(format!("it is longer than {LONGEST} bytes")));
        }
        let parsed = std::str::from_utf8(&bytes)
            .map_err(|_| "it is not UTF-8".to_owned())
            .and_then(Line::parse);
        match parsed {
            // Half of a time is a number too, long before the first time.
            Ok(line)
                if !whole
                    && time(&line).is_some_and(|at| first.is_some_and(|first| at < first)) =>
            {
                return Ok(Some(bad("it ends in the middle of its time".into())));
            }
            Ok(line) => {
                first = first.or_else(|| time(&line));
                each(line);
            }
            Err(reason) if !whole && number > 1 => return Ok(Some(bad(reason))),
            Err(reason) => return Err(bad(reason)),
        }
    }
    Ok(None)
}

fn time(line: &Line<'_>) -> Option<f64> {
    match line {
        Line::Memory(Reading { at, .. })
        | Line::Child {
            reading: Reading { at, .. },
            ..
        } => Some(*at),
        Line::Function { to, .. } => Some(to.at),
        _ => None,
    }
}
