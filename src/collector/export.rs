//! The tables' part of a [`Snapshot`](super::snapshot::Snapshot).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::capture::event::NodeId;
use crate::capture::modules;
use crate::contexts;
use heapray_report::checkpoints::generations;
use heapray_report::model::{History, Mark, Moment, Survivors};

use super::birth::Birth;
use super::hash::Map;
use super::live::Block;
use super::log::PendingLog;
use super::sites::{Key, SiteId, Tallies};
use super::snapshot::{ContextSums, RawNode, RawSite, RawTotals, Snapshot, StackTable};
use super::survivors;
use super::tables::Tables;

/// Tables' part of a snapshot, with the names of its fields. Contexts have the process's numbers, and a snapshot has others.
#[derive(Debug)]
#[allow(missing_docs)] // each is the field of that name
pub struct Export {
    pub stacks: StackTable,
    pub survivors: Survivors,
    pub history: History,
    pub timeline: Vec<Moment>,
    pub marks: Vec<Mark>,
    pub totals: RawTotals,
    pub log: Option<PendingLog>,
    pub log_given_up: Option<String>,
    pub notes: Vec<String>,
}

impl Export {
    /// Copies the stacks of its sites out of `tree`, which has their nodes.
    pub(super) fn take_stacks_of(&mut self, tree: &[RawNode]) {
        let mut stacks = Stacks::new(tree);
        for site in &mut self.stacks.sites {
            site.node = stacks.add(site.node);
        }
        self.stacks.nodes = stacks.nodes;
    }

    /// Replaces the process's numbers of contexts, which have gaps, by positions in a list of those that are used, and makes that
    /// list. Without any, it is empty.
    pub(super) fn name_contexts(&mut self) {
        let stacks = &mut self.stacks;
        let of_sites = stacks.sites.iter().map(|site| site.context);
        let of_runs = stacks.runs.keys().copied();
        let pairs = self.log.iter().flat_map(|log| &*log.pairs);
        let of_pairs = pairs.map(|&(_, context)| context);
        let mut used: BTreeSet<u32> = of_sites.chain(of_runs).chain(of_pairs).collect();
        if used.iter().all(|&context| context == 0) {
            return;
        }
        used.insert(0);
        stacks.contexts = used
            .iter()
            .map(|&context| contexts::labels_of(context))
            .collect();
        let at: Map<u32, u32> = used.into_iter().zip(0..).collect();
        for site in &mut stacks.sites {
            site.context = at[&site.context];
        }
        let runs = std::mem::take(&mut stacks.runs).into_iter();
        stacks.runs = runs.map(|(context, runs)| (at[&context], runs)).collect();
        if let Some(log) = &mut self.log {
            let pairs = log.pairs.iter();
            let pairs = pairs.map(|&(thread, context)| (thread, at[&context]));
            log.pairs = Arc::new(pairs.collect());
        }
    }
}

impl Tables {
    /// Returns a consistent copy of everything up to the last event. Ends the log's block, so that the log is of the same
    /// moment.
    ///
    /// A `realloc` whose outcome is not known yet counts as not begun.
    pub fn export(&mut self) -> Export {
        let log = self.pending_log();
        let timeline = self.timeline.rows();
        let (survivors, oldest) = survivors::count(
            self.all_blocks(),
            self.sites.end(),
            self.generations(&timeline),
        );
        let sites = self.sites.iter(self.peak.epoch());
        let numbers = self.site_numbers(sites.map(|(site, ..)| site));
        let number = |site: u32| numbers.get(site as usize).copied().flatten();
        let runs = self.runs.by_context();
        Export {
            stacks: StackTable {
                nodes: self.call_tree.nodes().to_vec(),
                contexts: Vec::new(),
                runs: runs
                    .map(|(context, runs)| (context, runs.clone()))
                    .collect(),
                sites: self.raw_sites(&oldest),
                threads: self.threads.list().to_vec(),
                modules: modules::history(),
            },
            survivors: survivors.renumbered(number),
            history: self.checkpoints.history().renumbered(number),
            timeline,
            marks: self.marks.clone(),
            totals: self.raw_totals(),
            log,
            log_given_up: self.log_given_up(),
            notes: self.notes(),
        }
    }

    /// Returns the number in an export of each site, by the number here. `sites` are those that the export has, in its order.
    fn site_numbers(&self, sites: impl Iterator<Item = SiteId>) -> Vec<Option<u32>> {
        let mut numbers = vec![None; self.sites.end()];
        for (new, old) in (0..).zip(sites) {
            numbers[old.0 as usize] = Some(new);
        }
        numbers
    }

    /// Returns the sums, and the `number` call sites with the most live bytes, with only their stacks. This is cheap for any
    /// number of sites. There are no log and no runs. With `ages`, there are survivors and history, which takes a look at each live block.
    pub fn export_top(&mut self, number: usize, ages: bool) -> Export {
        let mut top = BTreeMap::new();
        for (site, key, tallies) in self.sites.iter(self.peak.epoch()) {
            top.insert((tallies.live.bytes, site), (key, tallies));
            if top.len() > number {
                top.pop_first();
            }
        }
        let mut olds = Vec::new();
        let mut stacks = Stacks::new(self.call_tree.nodes());
        let mut sites = Vec::new();
        for ((_, old), (key, tallies)) in top.into_iter().rev() {
            olds.push(old);
            sites.push(self.raw_site(key, stacks.add(key.node), tallies, None));
        }
        let timeline = self.timeline.rows();
        let (mut survivors, mut history) = (Survivors::default(), History::default());
        if ages {
            let numbers = self.site_numbers(olds.into_iter());
            let number = |site: u32| numbers.get(site as usize).copied().flatten();
            let blocks = self.all_blocks().filter_map(|(block, times)| {
                let site = SiteId(number(block.site.0)?);
                Some((Block { site, ..block }, times))
            });
            survivors = survivors::count(blocks, sites.len(), self.generations(&timeline)).0;
            history = self.checkpoints.history().renumbered(number);
        }
        Export {
            stacks: StackTable {
                nodes: stacks.nodes,
                sites,
                contexts: Vec::new(),
                runs: BTreeMap::new(),
                threads: self.threads.list().to_vec(),
                modules: modules::history(),
            },
            survivors,
            history,
            timeline,
            marks: self.marks.clone(),
            totals: self.raw_totals(),
            log: None,
            log_given_up: self.log_given_up(),
            notes: Vec::new(),
        }
    }

    /// Returns what each context has allocated and holds, by its number; 0 is no context. Looks at each call site.
    pub fn sums_by_context(&self) -> BTreeMap<u32, ContextSums> {
        let mut contexts: BTreeMap<u32, ContextSums> = BTreeMap::new();
        for (_, key, tallies) in self.sites.iter(self.peak.epoch()) {
            let (_, context) = self.threads.thread_and_context(key.entry);
            let sums = contexts.entry(context).or_default();
            sums.allocated += tallies.allocated;
            sums.live += tallies.live;
        }
        for (context, runs) in self.runs.by_context() {
            contexts.entry(context).or_default().runs = runs.clone();
        }
        for (context, &run) in self.runs.traced() {
            contexts.entry(context).or_default().traced.push(run);
        }
        contexts
    }

    /// Returns every live block and mapping, and the number that it stands for.
    fn all_blocks(&self) -> impl Iterator<Item = (Block, u64)> {
        let blocks = self.live.blocks().chain(self.ranges.blocks());
        let samples = self.samples.iter().flat_map(|samples| samples.blocks());
        blocks.map(|block| (block, 1)).chain(samples)
    }

    fn generations(&self, timeline: &[Moment]) -> Vec<u64> {
        let marks = self.marks.iter().map(|mark| mark.at_ms);
        let end_ms = timeline.last().map_or(0, |moment| moment.at_ms);
        generations(&self.checkpoints, marks, end_ms)
    }

    fn raw_sites(&self, oldest: &[Birth]) -> Vec<RawSite> {
        let sites = self.sites.iter(self.peak.epoch());
        sites
            .map(|(site, key, tallies)| {
                let oldest = oldest[site.0 as usize];
                let oldest = (oldest != Birth::NEVER).then(|| oldest.ms());
                self.raw_site(key, key.node, tallies, oldest)
            })
            .collect()
    }

    /// Returns the site of `key`, whose stack is called `node` in the snapshot.
    fn raw_site(
        &self,
        key: Key,
        node: NodeId,
        tallies: Tallies,
        oldest_live_ms: Option<u64>,
    ) -> RawSite {
        let (thread, context) = self.threads.thread_and_context(key.entry);
        RawSite {
            thread,
            node,
            context,
            kind: key.kind,
            allocated: tallies.allocated,
            high_water: tallies.high_water,
            live: tallies.live,
            temporary: tallies.temporary,
            oldest_live_ms,
        }
    }

    /// Returns sentences for the user, about what was counted together.
    fn notes(&self) -> Vec<String> {
        let contexts = self.has_contexts().then(contexts::notes);
        let contexts = contexts.into_iter().flatten();
        let notes = self.threads.note().into_iter().chain(contexts);
        notes.chain(self.runs.note()).collect()
    }

    /// Returns whether anything was done in a context. A run may have ended of which nothing was sampled.
    fn has_contexts(&self) -> bool {
        self.threads.has_contexts() || self.runs.by_context().next().is_some()
    }

    fn raw_totals(&self) -> RawTotals {
        let counters = self.counters();
        RawTotals {
            events: counters.events,
            allocated: counters.allocated,
            freed: counters.freed,
            live: counters.live,
            high_water: counters.high_water,
            high_water_ms: self.clock.clock().at_ms(self.peak.stamp()),
            unknown_frees: counters.unknown_frees,
            sizes: self.sizes.counts(),
            sizes_rounded: self.sizes.rounded(),
        }
    }
}

impl Snapshot {
    /// Returns the same view of the `number` call sites with the most live bytes, with only their stacks, and without the
    /// event log.
    #[must_use]
    pub fn top(&self, number: usize) -> Snapshot {
        let all = &self.stacks.sites;
        let mut most: Vec<usize> = (0..all.len()).collect();
        most.sort_by_key(|&site| Reverse(all[site].live.bytes));
        most.truncate(number);
        let mut stacks = Stacks::new(&self.stacks.nodes);
        let mut numbers = vec![None; all.len()];
        let mut sites = Vec::with_capacity(most.len());
        for (new, old) in (0u32..).zip(most) {
            numbers[old] = Some(new);
            let node = stacks.add(all[old].node);
            sites.push(RawSite { node, ..all[old] });
        }
        let number = |site: u32| numbers.get(site as usize).copied().flatten();
        Snapshot {
            survivors: self.survivors.renumbered(number),
            history: self.history.renumbered(number),
            stacks: StackTable {
                nodes: stacks.nodes,
                sites,
                threads: self.stacks.threads.clone(),
                contexts: self.stacks.contexts.clone(),
                runs: BTreeMap::new(),
                modules: Arc::clone(&self.stacks.modules),
            },
            timeline: self.timeline.clone(),
            process_memory: self.process_memory.clone(),
            marks: self.marks.clone(),
            totals: self.totals.clone(),
            log: None,
            log_given_up: self.log_given_up.clone(),
            stacks_bounded: self.stacks_bounded.clone(),
            sampling: self.sampling.clone(),
            notes: self.notes.clone(),
            ..*self
        }
    }
}

/// Part of a call tree: some of its stacks, renumbered, parents first.
struct Stacks<'t> {
    tree: &'t [RawNode],
    nodes: Vec<RawNode>,
    numbers: HashMap<NodeId, NodeId>,
}

impl Stacks<'_> {
    fn new(tree: &[RawNode]) -> Stacks<'_> {
        let root = tree.first().copied();
        Stacks {
            tree,
            nodes: root.into_iter().collect(),
            numbers: HashMap::from([(NodeId::ROOT, NodeId::ROOT)]),
        }
    }

    /// Returns the new number of a stack.
    fn add(&mut self, node: NodeId) -> NodeId {
        let mut path = Vec::new();
        let mut at = node;
        let mut parent = loop {
            if let Some(&known) = self.numbers.get(&at) {
                break known;
            }
            let Some(raw) = self.tree.get(at.0 as usize) else {
                break NodeId::ROOT;
            };
            path.push((at, *raw));
            at = raw.parent;
        };
        for (old, raw) in path.into_iter().rev() {
            let new = NodeId(self.nodes.len() as u32);
            self.nodes.push(RawNode { parent, ..raw });
            self.numbers.insert(old, new);
            parent = new;
        }
        parent
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeId, RawNode, Stacks};
    use crate::capture::modules::ModuleId;

    #[test]
    fn a_part_of_a_call_tree_has_the_same_stacks() {
        let node = |parent, address| RawNode {
            parent: NodeId(parent),
            module: ModuleId::NONE,
            address,
        };
        let tree = [
            node(0, 0),
            node(0, 10),
            node(1, 11),
            node(1, 12),
            node(3, 13),
            node(0, 20),
        ];
        let stack = |nodes: &[RawNode], mut at: NodeId| {
            let mut stack = Vec::new();
            while at != NodeId::ROOT {
                let node = nodes[at.0 as usize];
                assert!(node.parent.0 < at.0, "parents come first");
                stack.push(node.address);
                at = node.parent;
            }
            stack
        };
        let mut part = Stacks::new(&tree);
        for old in [4, 2, 4, 0, 1] {
            let new = part.add(NodeId(old));
            assert_eq!(stack(&part.nodes, new), stack(&tree, NodeId(old)));
        }
        assert_eq!(part.nodes.len(), 5, "what no stack needs is not in it");
    }
}
