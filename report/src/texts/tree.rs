//! The calls that led to the biggest call sites, as an indented tree: memray's `tree`, without its terminal program.
//!
//! The biggest child comes first. Calls without siblings are one line (`a → b`, or `a → … 7 calls … → b`); the sum of all
//! smaller call sites is one line at the end.

use std::collections::HashMap;
use std::io::{self, Write};

use super::cell::{
    amount, bar, left, percent, place, share, shorten, shorten_path, shorten_two, width,
};
use super::paint::Paint;
use super::{Options, head};
use crate::formats::spelling::{self, NO_STACK};
use crate::model::{Frame, Report, StackId, Tally};
use crate::units::counted;
use crate::views::is_of_context;

/// Columns of a bar.
const BAR: usize = 6;

/// Writes the tree.
///
/// # Errors
/// If `out` fails.
pub fn tree(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let whole = options.unit.of(head::put(report, options, out)?);
    let tree = Tree::of(report, options);
    let paint = Paint(options.colours);
    // Indentation and numbers of the nodes that are still to be written, the next one last.
    let mut open: Vec<(String, bool, u32)> = Vec::new();
    let push = |open: &mut Vec<(String, bool, u32)>, prefix: &str, children: &[u32], more: bool| {
        for (index, &child) in children.iter().enumerate().rev() {
            let last = index + 1 == children.len() && !more;
            open.push((prefix.to_owned(), last, child));
        }
    };
    let has_rest = tree.rest.sites > 0;
    push(&mut open, "", &tree.nodes[0].children, has_rest);
    while let Some((prefix, last, at)) = open.pop() {
        let (end, calls) = tree.run(at, options.fold_runs);
        let node = &tree.nodes[end as usize];
        let branch = if last { "└─ " } else { "├─ " };
        let value = options.unit.of(node.total);
        let part = share(value, whole);
        let figures = format!(
            "{} {} ({})",
            left(&bar(part, BAR), BAR),
            amount(options.unit, value),
            percent(part)
        );
        let indent = Indent::new(&prefix, branch, options.columns());
        let used = indent.columns + width(&figures) + 2;
        let room = options.columns().saturating_sub(used);
        let first = spelled(report, &tree.nodes[at as usize]);
        let (link, leaf) = match calls {
            1 => (String::new(), String::new()),
            2 => (" → ".into(), spelled(report, node)),
            calls => {
                let between = counted(calls as u64 - 2, "call");
                (format!(" → … {between} … → "), spelled(report, node))
            }
        };
        let names = width(&first) + width(&link) + width(&leaf);
        let place = node
            .frame
            .map_or(String::new(), |frame| place(report, frame));
        let for_place = width(&place).min((room / 3).max(room.saturating_sub(names + 2)));
        let names = shorten_two(&first, &link, &leaf, room.saturating_sub(for_place + 2));
        writeln!(
            out,
            "{}{}  {}  {}",
            paint.dim(&indent.text),
            paint.share(part, figures),
            paint.name(names),
            paint.place(shorten_path(&place, for_place))
        )?;
        let below = format!("{prefix}{}", if last { "   " } else { "│  " });
        push(&mut open, &below, &node.children, false);
    }
    if has_rest {
        let value = options.unit.of(tree.rest.tally);
        let text = format!(
            "└─ {} ({}) in {} from {} smaller than the {} shown",
            amount(options.unit, value),
            percent(share(value, whole)),
            counted(tree.rest.tally.count, "allocation"),
            counted(tree.rest.sites, "call site"),
            options.biggest_allocs,
        );
        writeln!(out, "{}", paint.dim(shorten(&text, options.columns())))?;
    }
    Ok(())
}

/// Indentation of a node: at most half of a line, with an ellipsis if the tree is deeper.
struct Indent {
    text: String,
    columns: usize,
}

impl Indent {
    fn new(prefix: &str, branch: &str, columns: usize) -> Indent {
        let most = columns / 2;
        let deep = prefix.chars().count();
        let text = if deep + 3 > most {
            let kept: String = prefix.chars().skip(deep + 4 - most).collect();
            format!("…{kept}{branch}")
        } else {
            format!("{prefix}{branch}")
        };
        let columns = width(&text);
        Indent { text, columns }
    }
}

fn spelled(report: &Report, node: &Node) -> String {
    match node.frame {
        None => NO_STACK.into(),
        Some(frame) => spelling::function(report, frame).into_owned(),
    }
}

/// Call stack that leads to a shown call site.
#[derive(Debug, Default)]
struct Node {
    frame: Option<Frame>,
    /// Set for the root frame that names a context, which has a line of its own.
    is_context: bool,
    /// Allocations of this very stack.
    own: Tally,
    /// Allocations of this stack and all stacks below it.
    total: Tally,
    /// Children, the biggest first.
    children: Vec<u32>,
}

/// Sum of what is not shown.
#[derive(Debug, Default)]
struct Rest {
    sites: u64,
    tally: Tally,
}

#[derive(Debug)]
struct Tree {
    /// The nodes. The first is the root, which is not a call; parents come before children.
    nodes: Vec<Node>,
    rest: Rest,
}

impl Tree {
    /// Makes the tree of the biggest call sites: call stacks, as in memray, with all threads and allocators joined.
    fn of(report: &Report, options: &Options) -> Tree {
        let mut sites: Vec<(StackId, Tally)> = report
            .sites
            .iter()
            .map(|site| (site.stack, options.measure.of(site)))
            .filter(|(_, tally)| options.unit.of(*tally) > 0)
            .collect();
        sites.sort_by_key(|&(stack, _)| stack);
        sites.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.1 += next.1;
            }
            same
        });
        sites.sort_by_key(|&(_, tally)| std::cmp::Reverse(options.unit.of(tally)));
        let shown = options.biggest_allocs.min(sites.len());
        let mut rest = Rest::default();
        for (_, tally) in &sites[shown..] {
            rest.sites += 1;
            rest.tally += *tally;
        }
        let mut tree = Tree {
            nodes: vec![Node::default()],
            rest,
        };
        let mut index: HashMap<StackId, u32> = HashMap::new();
        for &(stack, tally) in &sites[..shown] {
            let at = tree.add(report, stack, &mut index);
            tree.nodes[at as usize].own += tally;
        }
        tree.sum_up(options);
        tree
    }

    /// Returns the node of `stack`, and adds it with all its callers if it is new.
    fn add(&mut self, report: &Report, stack: StackId, index: &mut HashMap<StackId, u32>) -> u32 {
        let mut missing = Vec::new();
        let mut at = stack;
        let mut parent = loop {
            let Some(node) = report.stacks.node(at) else {
                break 0;
            };
            if let Some(&known) = index.get(&at) {
                break known;
            }
            missing.push((at, node.frame));
            at = node.parent;
        };
        if missing.is_empty() && parent == 0 {
            // Allocations without a call stack have a node of their own.
            return *index
                .entry(StackId::EMPTY)
                .or_insert_with(|| push(&mut self.nodes, 0, None));
        }
        for (stack, frame) in missing.into_iter().rev() {
            let frame = spelling::frame(report, frame);
            let is_context = parent == 0 && frame.is_some_and(|frame| is_of_context(report, frame));
            parent = push(&mut self.nodes, parent, frame);
            self.nodes[parent as usize].is_context = is_context;
            index.insert(stack, parent);
        }
        parent
    }

    /// Computes totals, and sorts children.
    fn sum_up(&mut self, options: &Options) {
        for at in (0..self.nodes.len()).rev() {
            let mut total = self.nodes[at].own;
            let mut children = std::mem::take(&mut self.nodes[at].children);
            for &child in &children {
                total += self.nodes[child as usize].total;
            }
            children.sort_by_key(|&child| {
                std::cmp::Reverse(options.unit.of(self.nodes[child as usize].total))
            });
            self.nodes[at].children = children;
            self.nodes[at].total = total;
        }
    }

    /// Returns the last node of the run of single children that begins at `at`, and the number of calls in the run.
    fn run(&self, at: u32, fold: bool) -> (u32, usize) {
        let (mut end, mut calls) = (at, 1);
        while fold
            && let node = &self.nodes[end as usize]
            && !node.is_context
            && node.own == Tally::default()
            && let [child] = node.children[..]
        {
            end = child;
            calls += 1;
        }
        (end, calls)
    }
}

fn push(nodes: &mut Vec<Node>, parent: u32, frame: Option<Frame>) -> u32 {
    let at = nodes.len() as u32;
    nodes.push(Node {
        frame,
        ..Node::default()
    });
    nodes[parent as usize].children.push(at);
    at
}
