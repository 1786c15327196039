//! A whole file in memory.

use std::collections::HashMap;
use std::io::BufRead;

use super::lines::each_line;
use super::{Line, ReadError, Reading};

/// Content of a `.dat` file, in the order of its lines.
#[derive(Debug, Default)]
pub struct MemoryLog {
    /// Command line, if the file has one.
    pub command: Option<String>,
    /// Memory of the process.
    pub memory: Vec<Reading>,
    /// Descendants, in the order of their first lines.
    pub children: Vec<Child>,
    /// Calls of functions.
    pub functions: Vec<Function>,
    /// Error of the last line, if the file ends in the middle of it.
    pub cut: Option<ReadError>,
}

/// Descendant of the process.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// Usually a process number.
    pub id: String,
    /// Memory of the descendant.
    pub readings: Vec<Reading>,
}

/// Call of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Name of the function.
    pub name: String,
    /// Memory on entry.
    pub from: Reading,
    /// Memory on return.
    pub to: Reading,
    /// Depth at which the call is nested, if the file has it.
    pub level: Option<u32>,
}

impl MemoryLog {
    /// Reads a file. If it ends in the middle of a line, reads up to there.
    ///
    /// # Errors
    /// The first line that mprof would refuse, with the reason, or an error of `from`.
    pub fn read(from: impl BufRead) -> Result<MemoryLog, ReadError> {
        let mut log = MemoryLog::default();
        let mut places = HashMap::new();
        let cut = each_line(from, |line| match line {
            Line::Command(text) => log.command = Some(text.to_owned()),
            Line::Memory(reading) => log.memory.push(reading),
            Line::Child { id, reading } => {
                let place = places.get(id).copied().unwrap_or_else(|| {
                    places.insert(id.to_owned(), log.children.len());
                    log.children.push(Child {
                        id: id.to_owned(),
                        readings: Vec::new(),
                    });
                    log.children.len() - 1
                });
                log.children[place].readings.push(reading);
            }
            Line::Function {
                name,
                from,
                to,
                level,
            } => log.functions.push(Function {
                name: name.to_owned(),
                from,
                to,
                level,
            }),
            Line::Other => {}
        })?;
        log.cut = cut;
        Ok(log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole() {
        let text = "FUNC f 1 2 3 4 0\nCMDLINE a\nMEM 1 2\nCHLD 7 1 2\nCHLD 8 1 2\nCHLD 7 5 6\n# x\nCMDLINE b\nMEM 3 4";
        let log = MemoryLog::read(text.as_bytes()).unwrap();
        assert_eq!(log.command.as_deref(), Some("b"));
        assert_eq!((log.memory.len(), log.functions.len()), (2, 1));
        let children: Vec<_> = log
            .children
            .iter()
            .map(|child| (child.id.as_str(), child.readings.len()))
            .collect();
        assert_eq!(children, [("7", 2), ("8", 1)]);
        assert!(log.cut.is_none());
    }

    #[test]
    fn a_cut_last_line_is_reported_and_a_bad_one_in_between_is_an_error() {
        for (end, reason) in [
            ("MEM 3.5", "line 3: the time in seconds is missing"),
            ("MEM 3.5 17", "line 3: it ends in the middle of its time"),
            ("ME", "line 3: there is no blank in \"ME\""),
        ] {
            let text = format!("MEM 1 1795278525.7620\nMEM 2 1795278525.8620\n{end}");
            let log = MemoryLog::read(text.as_bytes()).unwrap();
            assert_eq!(log.memory.len(), 2);
            assert_eq!(log.cut.unwrap().to_string(), reason);
        }
        for (text, reason) in [
            ("MEM 1 2\n\nMEM 1 2\n", "line 2: it is empty"),
            (
                "MEM 1 2\nMEM x 2\nMEM 1 2\n",
                "line 2: the memory in MiB is \"x\"",
            ),
            ("\u{7f}ELF", "line 1: there is no blank"),
        ] {
            let error = MemoryLog::read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{error}");
        }
        let long = vec![b'x'; 2 << 20];
        let error = MemoryLog::read(&long[..]).unwrap_err().to_string();
        assert_eq!(error, "line 1: it is longer than 1048576 bytes");
        assert!(
            MemoryLog::read(&b"MEM 1 2\nMEM \xff 2\n"[..])
                .unwrap_err()
                .to_string()
                .contains("UTF-8")
        );
    }
}
