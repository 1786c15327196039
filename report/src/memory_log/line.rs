//! A line of the file.
//!
//! ```text
//! CMDLINE text
//! MEM MiB seconds
//! CHLD id MiB seconds
//! FUNC name MiB seconds MiB seconds level     on entry, and on return; files of old versions have no level
//! anything else with a blank in it            is skipped
//! ```
//!
//! Seconds are since the Unix epoch. mprof treats a line without a blank, or an empty line, as an error.

use std::fmt;

/// Bytes in mprof's unit.
pub const MIB: f64 = (1 << 20) as f64;

/// Memory at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reading {
    /// Mebibytes.
    pub mib: f64,
    /// Seconds since the Unix epoch.
    pub at: f64,
}

impl Reading {
    /// Returns `bytes` at a moment as a reading.
    #[must_use]
    pub fn of_bytes(bytes: u64, at: f64) -> Reading {
        Reading {
            mib: bytes as f64 / MIB,
            at,
        }
    }

    /// Returns the memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        // The cast saturates: a negative value in a hostile file becomes 0.
        (self.mib * MIB).round() as u64
    }
}

/// Line of the file; see the module. Written with [`Display`](fmt::Display), without the newline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Line<'a> {
    /// The command line. If a file has several, the last one counts.
    Command(&'a str),
    /// Memory of the process, or of the process and its descendants.
    Memory(Reading),
    /// Memory of a descendant.
    Child {
        /// Any word: usually a process number.
        id: &'a str,
        /// Memory of the descendant.
        reading: Reading,
    },
    /// A call of a function.
    Function {
        /// Name without blanks; see [`function_name`](super::function_name).
        name: &'a str,
        /// Memory on entry.
        from: Reading,
        /// Memory on return.
        to: Reading,
        /// Depth at which the call is nested; 0 is the outermost.
        level: Option<u32>,
    },
    /// A line that mprof skips.
    Other,
}

impl<'a> Line<'a> {
    /// Parses a line without its newline, as mprof does.
    ///
    /// # Errors
    /// The reason why mprof would refuse the line. Numbers that are not finite are refused too: no plot can show them.
    pub fn parse(line: &'a str) -> Result<Line<'a>, String> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            return Err("it is empty, which mprof takes for a run that was too short".into());
        }
        let (field, rest) = line
            .split_once(' ')
            .ok_or_else(|| format!("there is no blank in {:?}", shortened(line)))?;
        let mut values = rest.split(' ');
        Ok(match field {
            "CMDLINE" => Line::Command(rest),
            "MEM" => Line::Memory(reading(&mut values)?),
            "CHLD" => Line::Child {
                id: values.next().unwrap_or_default(),
                reading: reading(&mut values)?,
            },
            "FUNC" => Line::Function {
                name: values.next().unwrap_or_default(),
                from: reading(&mut values)?,
                to: reading(&mut values)?,
                level: values.next().map(level).transpose()?,
            },
            _ => Line::Other,
        })
    }
}

fn reading<'a>(values: &mut impl Iterator<Item = &'a str>) -> Result<Reading, String> {
    let mut number = |what: &str| {
        let text = values.next().ok_or_else(|| format!("{what} is missing"))?;
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| format!("{what} is {:?}, which is not a number", shortened(text)))
    };
    Ok(Reading {
        mib: number("the memory in MiB")?,
        at: number("the time in seconds")?,
    })
}

fn level(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("the level is {:?}, which is not a number", shortened(text)))
}

/// Returns the beginning of `text`, for a message.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Line::Command(text) => write!(f, "CMDLINE {text}"),
            Line::Memory(Reading { mib, at }) => write!(f, "MEM {mib:.6} {at:.4}"),
            Line::Child { id, reading } => {
                write!(f, "CHLD {id} {:.6} {:.4}", reading.mib, reading.at)
            }
            Line::Function {
                name,
                from,
                to,
                level,
            } => {
                write!(f, "FUNC {name} {:.4} {:.4}", from.mib, from.at)?;
                write!(f, " {:.4} {:.4}", to.mib, to.at)?;
                level.map_or(Ok(()), |level| write!(f, " {level}"))
            }
            Line::Other => f.write_str("# "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_of_mprof_itself_are_read() {
        let mem = |mib, at| Reading { mib, at };
        for (text, line) in [
            ("CMDLINE sleep 1\r", Line::Command("sleep 1")),
            ("CMDLINE ", Line::Command("")),
            ("MEM 1.5 2 further columns", Line::Memory(mem(1.5, 2.0))),
            ("MEM 1e3 -2.5E-1", Line::Memory(mem(1000.0, -0.25))),
            (
                "CHLD worker-1 0.000000 7.25",
                Line::Child {
                    id: "worker-1",
                    reading: mem(0.0, 7.25),
                },
            ),
            (
                "FUNC __main__.f 1 2 3 4 0",
                Line::Function {
                    name: "__main__.f",
                    from: mem(1.0, 2.0),
                    to: mem(3.0, 4.0),
                    level: Some(0),
                },
            ),
            (
                "FUNC f 1 2 3 4",
                Line::Function {
                    name: "f",
                    from: mem(1.0, 2.0),
                    to: mem(3.0, 4.0),
                    level: None,
                },
            ),
            ("# a comment", Line::Other),
        ] {
            assert_eq!(Line::parse(text).unwrap(), line, "{text:?}");
        }
    }

    #[test]
    fn lines_that_mprof_refuses_are_refused_with_a_reason() {
        for (text, reason) in [
            ("", "empty"),
            ("MEM", "no blank in \"MEM\""),
            ("MEM\t1\t2", "no blank"),
            ("MEM 1", "the time in seconds is missing"),
            ("MEM  1 2", "the memory in MiB is \"\""),
            ("MEM nan 2", "is \"nan\", which is not a number"),
            ("MEM 1 inf", "not a number"),
            ("CHLD 7 x 2", "the memory in MiB is \"x\""),
            ("FUNC my function 1 2 3 4 0", "is \"function\""),
            ("FUNC f 1 2 3 4 -1", "the level is \"-1\""),
        ] {
            let refused = Line::parse(text).unwrap_err();
            assert!(refused.contains(reason), "{text:?}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(
            quarters in prop::array::uniform4(0u32..1 << 30), level in any::<u32>(), name in "[^ \\s\\pC]{1,9}"
        ) {
            // Quarters are exact in four digits.
            let [a, b, c, d] = quarters.map(|n| f64::from(n) / 4.0);
            let (from, to) = (Reading { mib: a, at: b }, Reading { mib: c, at: d });
            let name = name.as_str();
            for line in [
                Line::Memory(from),
                Line::Child { id: name, reading: to },
                Line::Function { name, from, to, level: Some(level) },
                Line::Function { name, from, to, level: None },
                Line::Command(name),
            ] {
                let text = line.to_string();
                prop_assert_eq!(Line::parse(&text), Ok(line));
            }
        }

        #[test]
        fn no_line_makes_it_panic(text in "(MEM|CHLD|FUNC|CMDLINE)?[ 0-9a-z.\\r-]{0,30}|\\PC{0,20}") {
            let _ = Line::parse(&text);
        }
    }
}
