//! A whole file in memory.

use std::collections::HashMap;
use std::io::BufRead;

use super::lines::each_line;
use super::{Line, ReadError, Reading};

/// What a `.dat` file tells, in the order of its lines.
#[derive(Debug, Default)]
pub struct MemoryLog {
    /// The command line, if it tells one.
    pub command: Option<String>,
    /// The process's memory.
    pub memory: Vec<Reading>,
    /// Its descendants, in the order of their first lines.
    pub children: Vec<Child>,
    /// Calls of functions.
    pub functions: Vec<Function>,
    /// What is wrong with the last line, if the file ends in the middle of it.
    pub cut: Option<ReadError>,
}

/// A descendant of the process.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// Its process number, usually.
    pub id: String,
    /// Its memory.
    pub readings: Vec<Reading>,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// On entry.
    pub from: Reading,
    /// On return.
    pub to: Reading,
    /// How deep it is nested, where the file tells.
    pub level: Option<u32>,
}

impl MemoryLog {
    /// Reads a file. One that ends in the middle of a line is read up to there.
    ///
    /// # Errors
    /// The first line that mprof would refuse, with the reason; or reading fails.
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
    fn a_cut_last_line_is_told_and_a_bad_one_in_between_is_an_error() {
        for (end, reason) in [
            ("MEM 3.5", "line 3: the time in seconds is missing"),
            ("MEM 3.5 17", "line 3: it ends before its time does"),
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
