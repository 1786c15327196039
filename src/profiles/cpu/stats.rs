//! Samples added up by function.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::{CpuError, CpuTally};

/// Frame of a stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'f> {
    pub(crate) name: &'f str,
    pub(crate) file: &'f str,
    pub(crate) line: u32,
}

/// CPU time of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Function {
    /// Name of the function with its path.
    pub name: String,
    /// Source file; the ELF object if there is no debug information; empty if neither is known.
    pub file: String,
    /// The lowest line of the function that was seen; 0 if none is known.
    pub line: u32,
    /// Samples taken in the function itself, and their CPU time.
    pub own: CpuTally,
    /// Samples taken in the function or in its callees. One sample counts once, however often the function is on its stack.
    pub cumulative: CpuTally,
    /// Callers of the function.
    pub callers: Vec<Caller>,
}

/// Part of a [`Function`]'s time in which one other function called it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller {
    /// Index of the caller in [`Stats::functions`].
    pub function: usize,
    /// The same as [`Function::own`].
    pub own: CpuTally,
    /// The same as [`Function::cumulative`].
    pub cumulative: CpuTally,
}

/// Order of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SortBy {
    /// Time in the function and its callees; the largest first. `pstats` calls it `cumulative`.
    #[default]
    Cumulative,
    /// Time in the function itself, the largest first: `tottime`.
    Own,
    /// Samples with the function on the stack, the most first. `pstats` has `ncalls` there.
    Samples,
    /// Name of the function.
    Name,
    /// File, and line in it.
    File,
}

impl SortBy {
    /// Returns the order of this name, one of those of `pstats`: `cumulative` or `cumtime`, `time`, `tottime` or `own`,
    /// `calls`, `ncalls` or `samples`, `name`, `file`, `filename` or `module`.
    #[must_use]
    pub fn named(name: &str) -> Option<SortBy> {
        Some(match name {
            "cumulative" | "cumtime" => SortBy::Cumulative,
            "time" | "tottime" | "own" => SortBy::Own,
            "calls" | "ncalls" | "samples" => SortBy::Samples,
            "name" => SortBy::Name,
            "file" | "filename" | "module" => SortBy::File,
            _ => return None,
        })
    }
}

/// CPU time by function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    pub(super) functions: Vec<Function>,
    pub(super) order: Vec<usize>,
    pub(super) sorted_by: SortBy,
    pub(super) total: CpuTally,
    pub(super) cpu_ns: u64,
    pub(super) lost: u64,
    pub(super) error: Option<CpuError>,
}

impl Stats {
    /// Returns the statistics of a profile that could not be taken.
    pub(super) fn failed(error: CpuError) -> Stats {
        Stats {
            error: Some(error),
            ..Stats::default()
        }
    }

    /// Returns the reason why there are no samples, if they could not be taken.
    #[must_use]
    pub fn error(&self) -> Option<CpuError> {
        self.error
    }

    /// Returns all functions, in the order of [`sort_by`](Stats::sort_by).
    pub fn functions(&self) -> impl ExactSizeIterator<Item = &Function> {
        self.order.iter().map(|&index| &self.functions[index])
    }

    /// Returns the function with the index [`Caller::function`].
    #[must_use]
    pub fn function(&self, number: usize) -> Option<&Function> {
        self.functions.get(number)
    }

    /// Returns all samples, and the CPU time that they stand for.
    #[must_use]
    pub fn total(&self) -> CpuTally {
        self.total
    }

    /// Returns the CPU time that the thread used while it was profiled, by its clock: that of the samples, and that after
    /// the last sample.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        Duration::from_nanos(self.cpu_ns)
    }

    /// Returns the samples for which there was no memory.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Sorts the functions. Equal ones stay in the order of their names.
    #[must_use]
    pub fn sort_by(mut self, by: SortBy) -> Stats {
        self.sort(by);
        self
    }

    fn sort(&mut self, by: SortBy) {
        let functions = &self.functions;
        self.sorted_by = by;
        self.order = (0..functions.len()).collect();
        self.order.sort_by(|&a, &b| {
            let (a, b) = (&functions[a], &functions[b]);
            let first = match by {
                SortBy::Cumulative => b.cumulative.ns.cmp(&a.cumulative.ns),
                SortBy::Own => b.own.ns.cmp(&a.own.ns),
                SortBy::Samples => b.cumulative.samples.cmp(&a.cumulative.samples),
                SortBy::Name => std::cmp::Ordering::Equal,
                SortBy::File => (&a.file, a.line).cmp(&(&b.file, b.line)),
            };
            let second = || b.own.ns.cmp(&a.own.ns);
            let second = match by {
                SortBy::Cumulative => second(),
                _ => std::cmp::Ordering::Equal,
            };
            let names = || (&a.name, &a.file, a.line).cmp(&(&b.name, &b.file, b.line));
            first.then(second).then_with(names)
        });
    }

    /// Leaves out the directories of files, as `pstats` does. Functions that are the same then are joined.
    #[must_use]
    pub fn strip_dirs(self) -> Stats {
        let mut stripped = StatsBuilder::default();
        let names: Vec<u32> = self
            .functions
            .iter()
            .map(|function| {
                stripped.function(Frame {
                    name: &function.name,
                    file: function.file.rsplit('/').next().unwrap_or_default(),
                    line: function.line,
                })
            })
            .collect();
        for (function, &number) in self.functions.iter().zip(&names) {
            let entry = &mut stripped.functions[number as usize];
            entry.own.add(function.own);
            entry.cumulative.add(function.cumulative);
            for caller in &function.callers {
                let edge = (number, names[caller.function]);
                let (own, cumulative) = stripped.edges.entry(edge).or_default();
                own.add(caller.own);
                cumulative.add(caller.cumulative);
            }
        }
        stripped.total = self.total;
        let mut stats = stripped.finish();
        (stats.cpu_ns, stats.lost, stats.error) = (self.cpu_ns, self.lost, self.error);
        stats.sort_by(self.sorted_by)
    }
}

impl CpuTally {
    fn add(&mut self, other: CpuTally) {
        self.samples += other.samples;
        self.ns += other.ns;
    }
}

/// Builder that adds up stacks.
#[derive(Debug, Default)]
pub(crate) struct StatsBuilder {
    functions: Vec<Function>,
    index: HashMap<(String, String), u32>,
    /// Samples by called function and caller: own and cumulative.
    edges: BTreeMap<(u32, u32), (CpuTally, CpuTally)>,
    total: CpuTally,
    // Functions of one stack.
    seen: Vec<u32>,
    seen_edges: Vec<(u32, u32)>,
}

impl StatsBuilder {
    /// Returns the number of the function that `frame` belongs to.
    pub(crate) fn function(&mut self, frame: Frame<'_>) -> u32 {
        let key = (frame.file.to_owned(), frame.name.to_owned());
        let next = u32::try_from(self.functions.len()).unwrap_or(u32::MAX);
        let number = *self.index.entry(key).or_insert(next);
        if number == next {
            self.functions.push(Function {
                name: frame.name.to_owned(),
                file: frame.file.to_owned(),
                line: frame.line,
                own: CpuTally::default(),
                cumulative: CpuTally::default(),
                callers: Vec::new(),
            });
        }
        let line = &mut self.functions[number as usize].line;
        if *line == 0 || (frame.line != 0 && frame.line < *line) {
            *line = frame.line;
        }
        number
    }

    /// Adds the samples with one stack, outermost function first.
    pub(crate) fn add(&mut self, stack: &[u32], tally: CpuTally) {
        self.total.add(tally);
        self.seen.clear();
        self.seen.extend_from_slice(stack);
        self.seen.sort_unstable();
        self.seen.dedup();
        for &number in &self.seen {
            self.functions[number as usize].cumulative.add(tally);
        }
        if let Some(&leaf) = stack.last() {
            self.functions[leaf as usize].own.add(tally);
        }
        self.seen_edges.clear();
        self.seen_edges
            .extend(stack.windows(2).map(|pair| (pair[1], pair[0])));
        if let Some(&edge) = self.seen_edges.last() {
            self.edges.entry(edge).or_default().0.add(tally);
        }
        self.seen_edges.sort_unstable();
        self.seen_edges.dedup();
        for &edge in &self.seen_edges {
            self.edges.entry(edge).or_default().1.add(tally);
        }
    }

    /// Returns the sums, sorted by cumulative time.
    pub(crate) fn finish(mut self) -> Stats {
        for ((called, caller), (own, cumulative)) in self.edges {
            self.functions[called as usize].callers.push(Caller {
                function: caller as usize,
                own,
                cumulative,
            });
        }
        let mut stats = Stats {
            functions: self.functions,
            total: self.total,
            ..Stats::default()
        };
        stats.sort(SortBy::default());
        stats
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Stacks `a;b;c`, samples, milliseconds.
    pub(in crate::profiles::cpu) fn scripted(stacks: &[(&str, u64, u64)]) -> Stats {
        let mut builder = StatsBuilder::default();
        for &(stack, samples, ms) in stacks {
            let stack: Vec<u32> = stack
                .split(';')
                .map(|frame| {
                    let (name, line) = frame.split_once(':').unwrap_or((frame, "7"));
                    builder.function(Frame {
                        name,
                        file: &format!("/src/{}.rs", &name[..1]),
                        line: line.parse().unwrap(),
                    })
                })
                .collect();
            let ns = ms * 1_000_000;
            builder.add(&stack, CpuTally { samples, ns });
        }
        builder.finish()
    }

    fn of(stats: &Stats, name: &str) -> (u64, u64, u64, u64) {
        let function = stats.functions().find(|function| function.name == name);
        let Function {
            own, cumulative, ..
        } = function.unwrap();
        let ms = |ns| ns / 1_000_000;
        (
            own.samples,
            ms(own.ns),
            cumulative.samples,
            ms(cumulative.ns),
        )
    }

    fn names(stats: &Stats) -> Vec<&str> {
        stats
            .functions()
            .map(|function| function.name.as_str())
            .collect()
    }

    #[test]
    fn own_time_is_the_leafs_and_cumulative_time_every_callers() {
        let stats = scripted(&[("main;a;b", 3, 12), ("main;a", 1, 4), ("main;b", 2, 9)]);
        assert_eq!(of(&stats, "main"), (0, 0, 6, 25));
        assert_eq!(of(&stats, "a"), (1, 4, 4, 16));
        assert_eq!(of(&stats, "b"), (5, 21, 5, 21));
        assert_eq!(
            stats.total(),
            CpuTally {
                samples: 6,
                ns: 25_000_000
            }
        );
    }

    #[test]
    fn a_recursive_function_counts_once_in_each_sample() {
        let stats = scripted(&[("main;f;f;f", 2, 10), ("main;f;g;f;g", 1, 5)]);
        assert_eq!(of(&stats, "f"), (2, 10, 3, 15));
        assert_eq!(of(&stats, "g"), (1, 5, 1, 5));
        let f = stats.functions().find(|f| f.name == "f").unwrap();
        let callers: Vec<_> = f
            .callers
            .iter()
            .map(|caller| {
                let name = stats.function(caller.function).unwrap().name.as_str();
                (name, caller.own.ns, caller.cumulative.ns)
            })
            .collect();
        assert_eq!(
            callers,
            [
                ("main", 0, 15_000_000),
                ("f", 10_000_000, 10_000_000),
                ("g", 0, 5_000_000)
            ]
        );
    }

    #[test]
    fn functions_are_sorted_by_each_key() {
        let stats = scripted(&[("z;a", 9, 1), ("z;m", 1, 5), ("z", 1, 2)]);
        assert_eq!(names(&stats), ["z", "m", "a"]);
        let orders = [
            (SortBy::Own, ["m", "z", "a"]),
            (SortBy::Samples, ["z", "a", "m"]),
            (SortBy::Name, ["a", "m", "z"]),
            (SortBy::File, ["a", "m", "z"]),
        ];
        for (by, order) in orders {
            assert_eq!(names(&stats.clone().sort_by(by)), order, "{by:?}");
        }
        assert_eq!(SortBy::named("tottime"), Some(SortBy::Own));
        assert_eq!(SortBy::named("weight"), None);
    }

    #[test]
    fn the_lowest_line_names_a_function_that_was_seen_at_several() {
        let stats = scripted(&[("f:12", 1, 1), ("f:9", 1, 1), ("f:0", 1, 1), ("f:30", 1, 1)]);
        assert_eq!(stats.functions().map(|f| f.line).collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn without_directories_what_looks_the_same_is_added_up() {
        let mut builder = StatsBuilder::default();
        let mut function = |file, name| {
            builder.function(Frame {
                name,
                file,
                line: 3,
            })
        };
        let (a, b, main) = (
            function("/x/lib.rs", "new"),
            function("/y/lib.rs", "new"),
            function("/x/main.rs", "main"),
        );
        let tally = CpuTally { samples: 1, ns: 7 };
        builder.add(&[main, a], tally);
        builder.add(&[main, b], tally);
        let stats = builder.finish().strip_dirs();
        let new = stats.functions().find(|f| f.name == "new").unwrap();
        assert_eq!((new.file.as_str(), new.own.ns), ("lib.rs", 14));
        assert_eq!(new.callers.len(), 1);
        assert_eq!(new.callers[0].cumulative.ns, 14);
    }
}
