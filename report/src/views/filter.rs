//! A part of a report: of some threads, allocators or packages, or with a text in a frame.

use std::collections::HashMap;

use super::Origins;
use super::rebuild::{StackCopier, rebuild, shell, sum_up};
use crate::Report;
use crate::model::{Allocator, Context, ContextId, Frame, FrameId, Runs, StackId, ThreadId};

/// Filter of call sites: those that match every list and the text are kept. An empty list or text matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Threads by their name, or by their number in decimal or hexadecimal (`0x1f`).
    pub threads: Vec<String>,
    /// Functions that allocated.
    pub allocators: Vec<Allocator>,
    /// Packages by their name in [`Origins`]; `-` and `_` are the same. A call stack matches if any of its frames belongs to
    /// one of them.
    pub packages: Vec<String>,
    /// A text in the function or the file of any frame of the call stack, in upper or lower case. It is not a pattern.
    pub text: String,
    /// Pairs of a key and a value that the context must have, all of them. The empty value stands for contexts without the
    /// key.
    pub contexts: Vec<(String, String)>,
}

impl Filter {
    /// Returns whether the filter matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
            && self.allocators.is_empty()
            && self.packages.is_empty()
            && self.text.is_empty()
            && self.contexts.is_empty()
    }

    /// Returns the filter in words: `thread worker-1 or worker-2, package tokio, "cache"`.
    fn words(&self) -> String {
        let of = |what: &str, names: Vec<&str>| {
            (!names.is_empty()).then(|| format!("{what} {}", names.join(" or ")))
        };
        [
            of("thread", self.threads.iter().map(String::as_str).collect()),
            of(
                "allocator",
                self.allocators.iter().map(|a| a.name()).collect(),
            ),
            of(
                "package",
                self.packages.iter().map(String::as_str).collect(),
            ),
            (!self.text.is_empty()).then(|| format!("text {:?}", self.text)),
        ]
        .into_iter()
        .flatten()
        .chain(self.contexts.iter().map(|(key, value)| match &**value {
            "" => format!("no {key}"),
            value => format!("{key} {value}"),
        }))
        .collect::<Vec<_>>()
        .join(", ")
    }
}

/// Returns the part of `report` that matches `filter`.
///
/// Totals are those of the part: its high-water mark is the part's memory at the high-water mark of the process, and sizes
/// of single blocks are not known for a part. Timeline, marks and the process's memory stay those of the process; a note
/// among the conditions says so.
#[must_use]
pub fn filtered(report: &Report, filter: &Filter) -> Report {
    if filter.is_empty() {
        return report.clone();
    }
    let threads: Vec<bool> = report
        .threads
        .iter()
        .map(|thread| is_listed(&filter.threads, report.strings.get(thread.name), thread.tid))
        .collect();
    let is_of = |ThreadId(thread): ThreadId| {
        filter.threads.is_empty() || threads.get(thread as usize).is_some_and(|&listed| listed)
    };
    let contexts: Vec<bool> = report
        .contexts
        .iter()
        .map(|context| has_labels(context, &filter.contexts))
        .collect();
    let without_labels = has_labels(&Context::default(), &filter.contexts);
    let is_for = |ContextId(context): ContextId| {
        let known = contexts.get(context as usize).copied();
        known.unwrap_or(without_labels)
    };
    let mut stacks = StackFilter::new(report, filter);
    let mut copier = StackCopier::new(&report.stacks);
    let mut part = rebuild(report, shell(report), |part, site| {
        let allocator = filter.allocators.is_empty() || filter.allocators.contains(&site.allocator);
        let is_listed = allocator && is_of(site.thread) && is_for(site.context);
        if !is_listed || !stacks.matches(report, site.stack) {
            return None;
        }
        let mut site = *site;
        site.stack = copier.copy(site.stack, &mut part.stacks, |frame| frame);
        Some(site)
    });
    let left_out = part.contexts.iter_mut().zip(&contexts);
    for (context, _) in left_out.filter(|(_, is_listed)| !**is_listed) {
        context.runs = Runs::default();
    }
    part.totals = sum_up(&report.totals, &part.sites);
    part.conditions.notes.push(format!(
        "only a part is shown: {}; memory over time is that of the whole process",
        filter.words()
    ));
    part
}

fn has_labels(context: &Context, labels: &[(String, String)]) -> bool {
    labels
        .iter()
        .all(|(key, value)| context.value(key).unwrap_or_default() == value)
}

fn is_listed(list: &[String], name: &str, number: u64) -> bool {
    list.iter().any(|entry| {
        let hexadecimal = entry
            .strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok());
        entry == name || hexadecimal.or_else(|| entry.parse().ok()) == Some(number)
    })
}

/// Frames that match, and stacks that are known to match.
struct StackFilter {
    /// For each frame: whether it is of a listed package, and whether it has the text.
    frames: Vec<[bool; 2]>,
    known: HashMap<StackId, [bool; 2]>,
}

impl StackFilter {
    fn new(report: &Report, filter: &Filter) -> StackFilter {
        let same_name = |name: &str| name.replace('-', "_");
        let packages: Vec<String> = filter.packages.iter().map(|name| same_name(name)).collect();
        let origins = Origins::of(report);
        let listed: Vec<bool> = origins
            .packages()
            .iter()
            .map(|package| packages.is_empty() || packages.contains(&same_name(&package.name)))
            .collect();
        let text = filter.text.to_lowercase();
        let mut by_string = HashMap::new();
        let mut has_text = |id| {
            *by_string
                .entry(id)
                .or_insert_with(|| report.strings.get(id).to_lowercase().contains(&text))
        };
        let frames = (0..)
            .zip(&report.frames)
            .map(|(number, &Frame { function, file, .. })| {
                let package = origins.index(FrameId(number));
                [
                    package.is_some_and(|package| listed[package as usize]),
                    has_text(function) || has_text(file),
                ]
            })
            .collect();
        // The empty stack matches lists that are empty.
        let empty = [packages.is_empty(), text.is_empty()];
        StackFilter {
            frames,
            known: HashMap::from([(StackId::EMPTY, empty)]),
        }
    }

    fn matches(&mut self, report: &Report, stack: StackId) -> bool {
        let mut path = Vec::new();
        let mut at = stack;
        let mut found = loop {
            if let Some(&known) = self.known.get(&at) {
                break known;
            }
            let Some(node) = report.stacks.node(at) else {
                at = StackId::EMPTY;
                continue;
            };
            path.push((at, node.frame));
            at = node.parent;
        };
        for (stack, FrameId(frame)) in path.into_iter().rev() {
            let has = self.frames.get(frame as usize).copied().unwrap_or_default();
            found = [found[0] || has[0], found[1] || has[1]];
            self.known.insert(stack, found);
        }
        found == [true; 2]
    }
}
