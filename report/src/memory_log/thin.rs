//! Shortens a file, for a recorder whose file has grown too large. So a week of readings takes no more disk space than a
//! day.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use super::lines::each_line;
use super::{Line, ReadError, Reading};

/// Largest number of children in one step. The largest ones are kept.
const MOST_CHILDREN: usize = 50;

/// Copies a file so that each curve has one reading in `step` seconds, the largest. Calls of functions that took less time
/// are left out: no picture of that file would show them. Of more than 50 children in a step the largest are kept.
///
/// # Errors
/// An error of reading or writing, or a bad line.
pub fn thin(from: impl BufRead, to: &mut impl Write, step: f64) -> Result<(), ReadError> {
    let mut out = Thinner {
        to,
        step,
        memory: None,
        children: BTreeMap::new(),
    };
    let mut written = Ok(());
    each_line(from, |line| {
        if written.is_ok() {
            written = out.take(line);
        }
    })?;
    written?;
    Ok(out.close()?)
}

struct Thinner<'w, W> {
    to: &'w mut W,
    step: f64,
    memory: Option<Reading>,
    children: BTreeMap<String, Reading>,
}

impl<W: Write> Thinner<'_, W> {
    fn take(&mut self, line: Line<'_>) -> io::Result<()> {
        match line {
            Line::Memory(reading) => match &mut self.memory {
                Some(kept) if same(*kept, reading, self.step) => larger(kept, reading),
                _ => {
                    self.close()?;
                    self.memory = Some(reading);
                }
            },
            Line::Child { id, reading } => match self.children.get_mut(id) {
                Some(kept) if same(*kept, reading, self.step) => larger(kept, reading),
                _ => {
                    if let Some(reading) = self.children.insert(id.to_owned(), reading) {
                        writeln!(self.to, "{}", Line::Child { id, reading })?;
                    }
                }
            },
            Line::Function { from, to, .. } => {
                if to.at - from.at >= self.step {
                    writeln!(self.to, "{line}")?;
                }
            }
            Line::Command(_) => writeln!(self.to, "{line}")?,
            Line::Other => {}
        }
        Ok(())
    }

    /// Writes the readings of a step. Each step of the process's own curve ends the steps of its children.
    fn close(&mut self) -> io::Result<()> {
        if let Some(reading) = self.memory.take() {
            writeln!(self.to, "{}", Line::Memory(reading))?;
        }
        // There may be any number of short-lived children.
        let mut children: Vec<_> = std::mem::take(&mut self.children).into_iter().collect();
        if children.len() > MOST_CHILDREN {
            children.sort_by(|(_, one), (_, two)| two.mib.total_cmp(&one.mib));
            children.truncate(MOST_CHILDREN);
        }
        for (id, reading) in children {
            writeln!(self.to, "{}", Line::Child { id: &id, reading })?;
        }
        Ok(())
    }
}

fn same(one: Reading, two: Reading, step: f64) -> bool {
    (one.at / step).floor() == (two.at / step).floor()
}

fn larger(kept: &mut Reading, reading: Reading) {
    if reading.mib > kept.mib {
        *kept = reading;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_keeps_its_largest_reading_and_short_calls_go() {
        let text = "CMDLINE x\nMEM 1 10\nCHLD 7 5 10\nMEM 9 10.5\nCHLD 7 4 10.5\nMEM 2 11\n\
                    FUNC short 1 10 1 10.5 0\nFUNC long 1 10 1 11 0\nMEM 3 11.5\nCHLD 8 1 11.5\n";
        let mut thinner = Vec::new();
        thin(text.as_bytes(), &mut thinner, 1.0).unwrap();
        assert_eq!(
            String::from_utf8(thinner).unwrap(),
            "CMDLINE x\nMEM 9.000000 10.5000\nCHLD 7 5.000000 10.0000\n\
             FUNC long 1.0000 10.0000 1.0000 11.0000 0\nMEM 3.000000 11.5000\nCHLD 8 1.000000 11.5000\n"
        );
    }

    #[test]
    fn of_many_children_the_largest_stay() {
        let mut text = String::from("MEM 1 10\n");
        for child in 0..1000 {
            text += &format!("CHLD {child} {child} 10.5\n");
        }
        let mut thinner = Vec::new();
        thin(text.as_bytes(), &mut thinner, 1.0).unwrap();
        let thinner = String::from_utf8(thinner).unwrap();
        assert_eq!(thinner.lines().count(), 1 + MOST_CHILDREN);
        assert!(thinner.contains("CHLD 999 ") && thinner.contains("CHLD 950 "));
    }
}
