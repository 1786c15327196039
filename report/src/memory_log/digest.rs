//! A file of any length in bounded memory, for those who answer requests.

use std::io::BufRead;

use super::lines::each_line;
use super::{Curve, Function, Line, ReadError, Reading};

/// How much of a file a [`Digest`] holds at most.
#[derive(Debug, Clone, Copy)]
pub struct DigestLimits {
    /// Readings of a curve.
    pub readings: usize,
    /// Descendants: those that were seen last.
    pub children: usize,
    /// Calls of functions: those that took longest.
    pub functions: usize,
}

/// What a file tells, thinned: curves keep their peaks.
#[derive(Debug, Default)]
pub struct Digest {
    /// The process's memory.
    pub memory: Vec<Reading>,
    /// Its descendants, by their first readings.
    pub children: Vec<(String, Vec<Reading>)>,
    /// Descendants that are left out.
    pub more_children: u64,
    /// Calls of functions, by their beginnings.
    pub functions: Vec<Function>,
    /// Calls that are left out.
    pub more_functions: u64,
}

impl Digest {
    /// Reads a file.
    ///
    /// # Errors
    /// Those of [`MemoryLog::read`](super::MemoryLog::read).
    pub fn read(from: impl BufRead, limits: &DigestLimits) -> Result<Digest, ReadError> {
        let mut digest = Digest::default();
        let mut memory = Curve::new(limits.readings);
        let mut children: Vec<(String, Curve)> = Vec::new();
        each_line(from, |line| match line {
            Line::Memory(reading) => memory.push(reading),
            Line::Child { id, reading } => {
                match children.iter_mut().rev().find(|child| child.0 == id) {
                    Some((_, curve)) => curve.push(reading),
                    None => {
                        if children.len() >= limits.children.max(1) {
                            forget_one(&mut children);
                            digest.more_children += 1;
                        }
                        let mut curve = Curve::new(limits.readings);
                        curve.push(reading);
                        children.push((id.to_owned(), curve));
                    }
                }
            }
            Line::Function {
                name,
                from,
                to,
                level,
            } => {
                digest.functions.push(Function {
                    name: name.to_owned(),
                    from,
                    to,
                    level,
                });
                if digest.functions.len() >= 2 * limits.functions.max(1) {
                    digest.keep_longest(limits.functions);
                }
            }
            Line::Command(_) | Line::Other => {}
        })?;
        digest.keep_longest(limits.functions);
        digest
            .functions
            .sort_by(|a, b| a.from.at.total_cmp(&b.from.at).then(a.level.cmp(&b.level)));
        digest.memory = memory.into_rows();
        digest.children = children
            .into_iter()
            .map(|(id, curve)| (id, curve.into_rows()))
            .collect();
        Ok(digest)
    }

    fn keep_longest(&mut self, most: usize) {
        let took = |call: &Function| call.to.at - call.from.at;
        self.functions.sort_by(|a, b| took(b).total_cmp(&took(a)));
        let more = self.functions.len().saturating_sub(most);
        self.functions.truncate(most);
        self.more_functions += more as u64;
    }
}

/// Drops the one that was seen longest ago.
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
    }
}
