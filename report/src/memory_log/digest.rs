//! Reads a file of any length in bounded memory, for requests.

use std::io::BufRead;

use super::lines::each_line;
use super::{Curve, Function, Line, ReadError, Reading};

/// Limits of a [`Digest`].
#[derive(Debug, Clone, Copy)]
pub struct DigestLimits {
    /// Readings of each curve.
    pub readings: usize,
    /// Descendants. The ones that were seen last are kept.
    pub children: usize,
    /// Calls of functions. The longest ones are kept.
    pub functions: usize,
}

/// Content of a file, thinned out: curves keep their peaks.
#[derive(Debug, Default, PartialEq)]
pub struct Digest {
    /// Memory of the process.
    pub memory: Vec<Reading>,
    /// Descendants, in the order of their first readings.
    pub children: Vec<(String, Vec<Reading>)>,
    /// Number of descendants that are left out.
    pub more_children: u64,
    /// Calls of functions, in the order of their beginnings.
    pub functions: Vec<Function>,
    /// Number of calls that are left out.
    pub more_functions: u64,
}

/// [`Digest`] of a file that is still being written: only the new part of the file is read.
#[derive(Debug, Clone)]
pub struct Digesting {
    limits: DigestLimits,
    memory: Curve,
    children: Vec<(String, Curve)>,
    more_children: u64,
    functions: Vec<Function>,
    more_functions: u64,
}

impl Digest {
    /// Reads a file.
    ///
    /// # Errors
    /// The same as of [`MemoryLog::read`](super::MemoryLog::read).
    pub fn read(from: impl BufRead, limits: &DigestLimits) -> Result<Digest, ReadError> {
        let mut digesting = Digesting::new(*limits);
        digesting.read(from)?;
        Ok(digesting.digest())
    }
}

impl Digesting {
    /// Makes the digest of an empty file.
    #[must_use]
    pub fn new(limits: DigestLimits) -> Digesting {
        Digesting {
            limits,
            memory: Curve::new(limits.readings),
            children: Vec::new(),
            more_children: 0,
            functions: Vec::new(),
            more_functions: 0,
        }
    }

    /// Adds further lines, whole ones.
    ///
    /// # Errors
    /// The same as of [`MemoryLog::read`](super::MemoryLog::read); lines are counted from the first of `from`.
    pub fn read(&mut self, from: impl BufRead) -> Result<(), ReadError> {
        each_line(from, |line| self.add(line))?;
        Ok(())
    }

    /// Returns the digest so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut all = self.clone();
        all.keep_longest();
        all.functions
            .sort_by(|a, b| a.from.at.total_cmp(&b.from.at).then(a.level.cmp(&b.level)));
        let children = all.children.into_iter();
        Digest {
            memory: all.memory.into_rows(),
            children: children
                .map(|(id, curve)| (id, curve.into_rows()))
                .collect(),
            more_children: all.more_children,
            functions: all.functions,
            more_functions: all.more_functions,
        }
    }

    fn add(&mut self, line: Line<'_>) {
        match line {
            Line::Memory(reading) => self.memory.push(reading),
            Line::Child { id, reading } => {
                let mut children = self.children.iter_mut().rev();
                match children.find(|child| child.0 == id) {
                    Some((_, curve)) => curve.push(reading),
                    None => {
                        if self.children.len() >= self.limits.children.max(1) {
                            forget_one(&mut self.children);
                            self.more_children += 1;
                        }
                        let mut curve = Curve::new(self.limits.readings);
                        curve.push(reading);
                        self.children.push((id.to_owned(), curve));
                    }
                }
            }
            Line::Function {
                name,
                from,
                to,
                level,
            } => {
                self.functions.push(Function {
                    name: name.to_owned(),
                    from,
                    to,
                    level,
                });
                if self.functions.len() >= 2 * self.limits.functions.max(1) {
                    self.keep_longest();
                }
            }
            Line::Command(_) | Line::Other => {}
        }
    }

    fn keep_longest(&mut self) {
        let took = |call: &Function| call.to.at - call.from.at;
        self.functions.sort_by(|a, b| took(b).total_cmp(&took(a)));
        let more = self.functions.len().saturating_sub(self.limits.functions);
        self.functions.truncate(self.limits.functions);
        self.more_functions += more as u64;
    }
}

/// Drops the child that was seen longest ago.
fn forget_one(children: &mut Vec<(String, Curve)>) {
    let seen = |child: &(String, Curve)| child.1.latest().map_or(f64::MIN, |reading| reading.at);
    let oldest =
        (0..children.len()).min_by(|&a, &b| seen(&children[a]).total_cmp(&seen(&children[b])));
    if let Some(oldest) = oldest {
        children.remove(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_children_and_the_longest_calls_are_kept() {
        let mut text = String::new();
        for n in 0..100 {
            text += &format!(
                "MEM {n} {n}\nCHLD c{} 1 {n}\nFUNC f{n} 1 0 1 {n} 0\n",
                n / 10
            );
        }
        let limits = DigestLimits {
            readings: 10,
            children: 3,
            functions: 5,
        };
        let digest = Digest::read(text.as_bytes(), &limits).unwrap();
        assert!(digest.memory.len() <= 11);
        assert_eq!(
            digest.memory.last(),
            Some(&Reading {
                mib: 99.0,
                at: 99.0
            })
        );
        let ids: Vec<_> = digest
            .children
            .iter()
            .map(|child| child.0.as_str())
            .collect();
        assert_eq!((ids, digest.more_children), (vec!["c7", "c8", "c9"], 7));
        let mut names: Vec<_> = digest
            .functions
            .iter()
            .map(|call| call.name.as_str())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["f95", "f96", "f97", "f98", "f99"]);
        assert_eq!(digest.more_functions, 95);

        // The same file, read as it grew, with digests in between.
        let mut digesting = Digesting::new(limits);
        for line in text.split_inclusive('\n') {
            digesting.read(line.as_bytes()).unwrap();
            let _ = digesting.digest();
        }
        assert_eq!(digesting.digest(), digest);
    }
}
