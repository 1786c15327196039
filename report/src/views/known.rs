//! Memory that is known, by the rules of [`known`](crate::known).

use std::cmp::Reverse;
use std::collections::HashMap;

use super::pattern::matches;
use super::{Sums, plain_name};
use crate::Report;
use crate::known::Known;
use crate::memray::in_one_line;
use crate::model::{Frame, FrameId, StackId};
use crate::units::{counted, size};

/// Which frames and call stacks of a report the rules of [`About::known`](crate::model::About::known) match.
#[derive(Debug)]
pub struct KnownSites<'r> {
    report: &'r Report,
    /// The rule of each frame, by its number; empty without rules.
    rules: Vec<Option<u32>>,
    stacks: HashMap<StackId, Option<usize>>,
}

/// Sums of the memory that a rule makes known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownSums {
    /// Index into [`About::known`](crate::model::About::known).
    pub rule: usize,
    /// Sums of all call sites of the rule.
    pub sums: Sums,
}

impl<'r> KnownSites<'r> {
    /// Matches the frames of `report`.
    #[must_use]
    pub fn of(report: &'r Report) -> KnownSites<'r> {
        let known = &report.about.known;
        let mut of_file = HashMap::new();
        let mut of_frame = |frame: &Frame| {
            let file = report.strings.get(frame.file);
            let in_file: &Vec<u32> = of_file.entry(frame.file).or_insert_with(|| {
                let rules = (0..).zip(known);
                let rules = rules.filter(|(_, rule)| is_file(&rule.file, file));
                rules.map(|(number, _)| number).collect()
            });
            if in_file.is_empty() {
                return None;
            }
            let function = report.strings.get(frame.function);
            let plain = plain_name(function);
            let is_function = |pattern: &str| {
                pattern.is_empty() || matches(pattern, &plain) || matches(pattern, function)
            };
            let mut rules = in_file.iter().copied();
            rules.find(|&rule| is_function(&known[rule as usize].function))
        };
        KnownSites {
            report,
            rules: match known.is_empty() {
                true => Vec::new(),
                false => report.frames.iter().map(&mut of_frame).collect(),
            },
            stacks: HashMap::new(),
        }
    }

    /// Returns the rule that matches `frame`, an index into [`About::known`](crate::model::About::known).
    #[must_use]
    pub fn of_frame(&self, frame: FrameId) -> Option<usize> {
        let rule = self.rules.get(frame.0 as usize).copied().flatten();
        rule.map(|rule| rule as usize)
    }

    /// Returns the rule of the frame nearest the leaf of `stack` that a rule matches.
    #[must_use]
    pub fn of_stack(&mut self, stack: StackId) -> Option<usize> {
        if self.rules.is_empty() {
            return None;
        }
        if let Some(&known) = self.stacks.get(&stack) {
            return known;
        }
        let mut frames = self.report.stacks.leaf_to_root(stack);
        let rule = frames.find_map(|frame| self.of_frame(frame));
        self.stacks.insert(stack, rule);
        rule
    }

    /// Returns the sums of each rule that matches memory, most live bytes first. A call site counts for one rule.
    #[must_use]
    pub fn sums(&mut self) -> Vec<KnownSums> {
        let mut sums = vec![Sums::default(); self.report.about.known.len()];
        for site in &self.report.sites {
            if let Some(rule) = self.of_stack(site.stack) {
                sums[rule].add(site);
            }
        }
        let mut list: Vec<KnownSums> = sums
            .into_iter()
            .enumerate()
            .map(|(rule, sums)| KnownSums { rule, sums })
            .filter(|known| !known.sums.is_zero())
            .collect();
        list.sort_by_key(|known| (Reverse(known.sums.live.bytes), known.rule));
        list
    }
}

fn is_file(pattern: &str, file: &str) -> bool {
    pattern.is_empty()
        || matches(pattern, file)
        || file
            .match_indices('/')
            .any(|(at, _)| matches(pattern, &file[at + 1..]))
}

/// Returns the [`sums`](KnownSites::sums) of what is known of `report`.
#[must_use]
pub fn known(report: &Report) -> Vec<KnownSums> {
    KnownSites::of(report).sums()
}

impl Known {
    /// Returns the rule's title and what it holds, for people: `the price cache: 1.2 GB live in 3 blocks`.
    pub(crate) fn held(&self, sums: &Sums) -> String {
        let live = sums.live;
        format!(
            "{}: {} live in {}",
            in_one_line(&self.title()),
            size(live.bytes),
            counted(live.count, "block"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Allocator, ContextId, Site, Tally, ThreadId};

    fn rule(function: &str, file: &str) -> Known {
        Known {
            function: function.into(),
            file: file.into(),
            ..Known::default()
        }
    }

    fn report(rules: &[Known]) -> Report {
        let mut report = Report::default();
        report.about.known = rules.to_vec();
        for (name, file) in [
            ("shop::main", "/build/shop/src/main.rs"),
            ("shop::prices::Cache<u8>::load", "/build/shop/src/prices.rs"),
            (
                "alloc::vec::Vec<u8>::push",
                "/rustc/1/library/alloc/src/vec.rs",
            ),
        ] {
            report.add_frame(name, file, 7);
        }
        let mut add = |path: &[u32], bytes| {
            let stack = path.iter().fold(StackId::EMPTY, |parent, &frame| {
                report.stacks.child(parent, FrameId(frame))
            });
            report.sites.push(Site {
                context: ContextId::NONE,
                thread: ThreadId(0),
                stack,
                allocator: Allocator::Malloc,
                allocated: Tally { count: 1, bytes },
                high_water: Tally { count: 1, bytes },
                live: Tally { count: 1, bytes },
                temporary: Tally::default(),
                oldest_live_ms: None,
            });
        };
        add(&[0, 2], 100);
        add(&[0, 1, 2], 30);
        add(&[0, 1], 4);
        report
    }

    fn live(rules: &[Known]) -> Vec<(usize, u64)> {
        let known = known(&report(rules));
        known
            .iter()
            .map(|known| (known.rule, known.sums.live.bytes))
            .collect()
    }

    #[test]
    fn memory_is_known_by_any_frame_of_its_call_stack() {
        for pattern in [
            "shop::prices::*",
            "shop::prices::Cache::load",
            "*<u8>::load",
        ] {
            assert_eq!(live(&[rule(pattern, "")]), [(0, 34)], "{pattern}");
        }
        for file in [
            "prices.rs",
            "src/prices.rs",
            "/build/*/src/prices.rs",
            "src/p*.rs",
        ] {
            assert_eq!(live(&[rule("", file)]), [(0, 34)], "{file}");
        }
        assert_eq!(live(&[rule("shop::main", "main.rs")]), [(0, 134)]);
    }

    #[test]
    fn both_patterns_must_match_the_same_frame_and_whole_names() {
        for (function, file) in [
            ("shop::prices::*", "main.rs"),
            ("prices::Cache::load", ""),
            ("", "rices.rs"),
            ("", "src/prices"),
        ] {
            assert_eq!(live(&[rule(function, file)]), [], "{function} {file}");
        }
        assert_eq!(live(&[]), []);
    }

    #[test]
    fn a_call_site_counts_for_the_rule_nearest_its_leaf() {
        let rules = [rule("shop::main", ""), rule("shop::prices::*", "")];
        assert_eq!(live(&rules), [(0, 100), (1, 34)]);
    }
}
