//! The allocations of a part of the program, and what it has not freed, by call site.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use heapray_report::model::Tally;
use heapray_report::views;

use crate::capture::call_tree::{self, Nodes};
use crate::capture::event::{Kind, NodeId};
use crate::capture::modules;
use crate::capture::scope::{self as capture, Entered, NoExactSession};
use crate::capture::untracked;
use crate::collector::snapshot::{RawNode, RawSite, StackTable};
use crate::profiler::{Blocks, CallSite};
use crate::symbolize::{self, Known, ReportOptions};

/// Part of the program whose allocations are followed: those of the calling thread, from [`scope()`] to [`end`](Scope::end).
/// Scopes nest; the blocks of an inner scope are also those of the outer ones.
///
/// A scope that is dropped without `end` has no result.
#[derive(Debug)]
#[must_use = "call `end` to learn what was left behind"]
pub struct Scope {
    name: Cow<'static, str>,
    followed: Result<(u32, Entered), &'static str>,
}

/// Follows exactly what the calling thread allocates and frees from here on. Works while a session records every allocation.
/// Otherwise [`ScopeUsage::note`] says why nothing is known.
///
/// ```
/// let scope = heapray::scope("load");
/// let kept: Vec<u64> = (0..1000).collect();
/// let held = scope.end();
/// println!("{held}");
/// # assert!(held.note().is_some());
/// # drop(kept);
/// ```
pub fn scope(name: impl Into<Cow<'static, str>>) -> Scope {
    let _untracked = untracked::enter();
    let followed = match capture::session() {
        Ok(session) => match capture::Scope::new() {
            Some(scope) => Ok((session, scope.enter())),
            None => Err(NO_MEMORY),
        },
        Err(NoExactSession::NotRecording) => Err(NOT_RECORDING),
        Err(NoExactSession::Sampling) => Err(SAMPLING),
    };
    Scope {
        name: name.into(),
        followed,
    }
}

const NO_MEMORY: &str = "there was no memory to follow allocations";
const NOT_RECORDING: &str =
    "no session records allocations (MEMRAY_PROFILER=true starts one): nothing is known";
const SAMPLING: &str = "the session records samples only (MEMRAY_PROFILER_SAMPLE=0 records every allocation): nothing is \
                        known";
const INTERRUPTED: &str = "recording ended meanwhile: later frees are missing";

impl Scope {
    /// Leaves the scope. Returns what it allocated, and what of that is still live.
    #[must_use]
    pub fn end(self) -> ScopeUsage {
        let _untracked = untracked::enter();
        match self.followed {
            Ok((session, scope)) => {
                let note = (capture::session() != Ok(session)).then_some(INTERRUPTED);
                ScopeUsage::of(self.name, &scope.leave(), note)
            }
            Err(why) => ScopeUsage {
                name: self.name,
                figures: capture::ScopeSums::default(),
                sites: Vec::new(),
                note: Some(why),
            },
        }
    }
}

/// Allocations of a [`Scope`], and its live blocks.
#[derive(Debug, Clone)]
pub struct ScopeUsage {
    name: Cow<'static, str>,
    figures: capture::ScopeSums,
    sites: Vec<(Nodes, u32, Tally)>,
    note: Option<&'static str>,
}

impl ScopeUsage {
    /// Sums up the blocks of `scope`.
    pub(crate) fn of(
        name: Cow<'static, str>,
        scope: &capture::Scope,
        note: Option<&'static str>,
    ) -> ScopeUsage {
        let mut sites: HashMap<(Nodes, u32), Tally> = HashMap::new();
        for block in scope.blocks() {
            if let Some(nodes) = block.nodes {
                *sites.entry((nodes, block.node)).or_default() += Tally {
                    count: 1,
                    bytes: block.size,
                };
            }
        }
        let sites = sites.into_iter();
        ScopeUsage {
            name,
            figures: scope.figures(),
            sites: sites
                .map(|((nodes, node), tally)| (nodes, node, tally))
                .collect(),
            note,
        }
    }

    /// Returns the scope's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns everything that the scope allocated.
    #[must_use]
    pub fn allocated(&self) -> Blocks {
        Blocks {
            count: self.figures.allocations,
            bytes: self.figures.allocated,
        }
    }

    /// Returns what the scope allocated and had not freed when it ended.
    #[must_use]
    pub fn live(&self) -> Blocks {
        Blocks {
            count: self.figures.live_blocks,
            bytes: self.figures.live,
        }
    }

    /// Returns the largest number of the scope's own bytes that were live at one time.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.figures.peak
    }

    /// Returns what is missing, if anything is: no session records every allocation, or the session ended meanwhile.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note
    }

    /// Returns the lines that allocated the live blocks, most bytes first: the service's own line if a stack has one, as in
    /// reports.
    ///
    /// Looks up symbols, which takes some time the first time that a line is found (reports say how much).
    #[must_use]
    pub fn call_sites(&self) -> Vec<CallSite> {
        static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
        let _untracked = untracked::enter();
        if self.sites.is_empty() {
            return Vec::new();
        }
        let stacks = self.stacks();
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let options = ReportOptions::default();
        let report = symbolize::resolve_again(&stacks, &options, known).report;
        let sites = views::own_sites(&report, &views::Origins::of(&report));
        let line = |site: &views::OwnSite| CallSite::of(&report, site);
        sites.iter().filter_map(line).collect()
    }

    /// Returns the call sites as a table for symbolization.
    fn stacks(&self) -> StackTable {
        let root = RawNode {
            parent: NodeId::ROOT,
            module: modules::ModuleId::NONE,
            address: 0,
        };
        let mut nodes = vec![root];
        let mut numbers = HashMap::new();
        let mut sites = Vec::new();
        for &(tree, node, live) in &self.sites {
            let node = add(tree, node, &mut nodes, &mut numbers);
            sites.push(RawSite {
                thread: 0,
                node,
                context: 0,
                kind: Kind::Malloc,
                allocated: live,
                high_water: live,
                live,
                temporary: Tally::default(),
                oldest_live_ms: None,
            });
        }
        StackTable {
            nodes,
            sites,
            modules: modules::history(),
            ..StackTable::default()
        }
    }
}

/// Returns the new number of a thread's `node`. Its callers are added before it.
fn add(
    tree: Nodes,
    node: u32,
    nodes: &mut Vec<RawNode>,
    numbers: &mut HashMap<(Nodes, u32), NodeId>,
) -> NodeId {
    let (mut path, mut at) = (Vec::new(), call_tree::whole(node));
    let mut parent = loop {
        if at == 0 {
            break NodeId::ROOT;
        }
        if let Some(&known) = numbers.get(&(tree, at)) {
            break known;
        }
        let (caller, address) = tree.node(at);
        path.push((at, address));
        at = caller;
    };
    for (number, address) in path.into_iter().rev() {
        let new = NodeId(u32::try_from(nodes.len()).expect("fewer nodes than a tree has"));
        nodes.push(RawNode {
            parent,
            module: modules::module_of(address),
            address,
        });
        numbers.insert((tree, number), new);
        parent = new;
    }
    parent
}

/// Largest number of lines that are printed.
const MOST: usize = 20;

impl fmt::Display for ScopeUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (allocated, live) = (self.allocated(), self.live());
        writeln!(
            f,
            "{}: {} bytes in {} blocks left of {} bytes in {} blocks; at most {} bytes at a time",
            self.name, live.bytes, live.count, allocated.bytes, allocated.count, self.figures.peak
        )?;
        if let Some(note) = self.note {
            writeln!(f, "# {note}")?;
        }
        let sites = self.call_sites();
        for site in sites.iter().take(MOST) {
            write!(
                f,
                "{:>14} bytes {:>10} blocks  {} {}",
                site.live.bytes, site.live.count, site.function, site.file
            )?;
            match site.line {
                0 => writeln!(f)?,
                line => writeln!(f, ":{line}")?,
            }
        }
        if sites.len() > MOST {
            writeln!(f, "and {} more lines", sites.len() - MOST)?;
        }
        Ok(())
    }
}
