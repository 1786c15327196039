//! What sessions that have ended allocated, by call stack: added to the running session, it never falls within a process.

use super::hash::Map;
use super::routes::{SumsByRoute, route_in};
use super::snapshot::{ContextSums, ModuleId, RawNode, RawSite, RawThread, StackTable};
use crate::capture::event::{Kind, NodeId};
use crate::contexts::OTHER;
use heapray_report::model::Tally;

/// Most frames and sums that are remembered: some megabytes. Call stacks beyond are summed up.
const MOST_NODES: usize = 100_000;
const MOST_SUMS: usize = 50_000;
/// Most routes that are told apart.
const MOST_ROUTES: usize = 10_000;
/// The name of the thread that the sums are shown under.
const THREAD: &str = "earlier sessions";

/// The sums of all ended sessions.
#[derive(Debug)]
pub(crate) struct AllocatedInEnded {
    /// The number of the last of these sessions.
    last: u64,
    tree: Tree,
    sums: Map<(NodeId, Kind), Tally>,
    total: Tally,
    /// Nothing of them is live.
    routes: SumsByRoute,
}

/// A call tree that grows.
#[derive(Debug)]
struct Tree {
    nodes: Vec<RawNode>,
    children: Map<(NodeId, ModuleId, u64), NodeId>,
}

impl Tree {
    /// Makes a tree of `nodes`; without any, one with the empty stack alone.
    fn of(mut nodes: Vec<RawNode>) -> Tree {
        if nodes.is_empty() {
            nodes.push(RawNode {
                parent: NodeId::ROOT,
                module: ModuleId::NONE,
                address: 0,
            });
        }
        let numbered = (0..).map(NodeId).zip(&nodes).skip(1);
        Tree {
            children: numbered.map(|(number, node)| (key(node), number)).collect(),
            nodes,
        }
    }

    /// Returns the number of `node`. A new one gets one unless there are `most` already.
    fn child(&mut self, node: RawNode, most: usize) -> Option<NodeId> {
        if let Some(&known) = self.children.get(&key(&node)) {
            return Some(known);
        }
        let number = u32::try_from(self.nodes.len()).ok().map(NodeId)?;
        (self.nodes.len() < most).then(|| {
            self.children.insert(key(&node), number);
            self.nodes.push(node);
            number
        })
    }

    /// Adds those of `nodes` that are `wanted`. Returns their numbers in this tree, where there is room for them.
    fn join(&mut self, nodes: &[RawNode], wanted: &[bool], most: usize) -> Vec<Option<NodeId>> {
        let mut joined = vec![None; nodes.len().max(1)];
        joined[0] = Some(NodeId::ROOT);
        for (at, node) in nodes.iter().enumerate().skip(1) {
            if wanted[at]
                && let Some(parent) = joined[node.parent.0 as usize]
            {
                joined[at] = self.child(RawNode { parent, ..*node }, most);
            }
        }
        joined
    }
}

fn key(node: &RawNode) -> (NodeId, ModuleId, u64) {
    (node.parent, node.module, node.address)
}

impl Default for AllocatedInEnded {
    fn default() -> AllocatedInEnded {
        AllocatedInEnded {
            last: 0,
            tree: Tree::of(Vec::new()),
            sums: Map::default(),
            total: Tally::default(),
            routes: SumsByRoute::new(),
        }
    }
}

impl AllocatedInEnded {
    /// Adds what session `number` has allocated: `total`, and `stacks` by call stack, both as its last view has them.
    pub(crate) fn add(&mut self, number: u64, stacks: &StackTable, total: Tally) {
        self.last = number;
        let nodes = &stacks.nodes;
        let sites = || {
            let all = stacks.sites.iter();
            all.filter(|site| site.allocated.count > 0)
        };
        let mut wanted = vec![false; nodes.len()];
        for site in sites() {
            let mut at = site.node.0 as usize;
            while at != 0 && !std::mem::replace(&mut wanted[at], true) {
                at = nodes[at].parent.0 as usize;
            }
        }
        let other = RawNode {
            parent: NodeId::ROOT,
            module: ModuleId::NONE,
            address: RawNode::OTHER,
        };
        let other = self.tree.child(other, usize::MAX).unwrap_or(NodeId::ROOT);
        let joined = self.tree.join(nodes, &wanted, MOST_NODES);
        for site in sites() {
            let node = joined[site.node.0 as usize].unwrap_or(other);
            let has_room = self.sums.len() < MOST_SUMS;
            let known = has_room || self.sums.contains_key(&(node, site.kind));
            let key = (if known { node } else { other }, site.kind);
            *self.sums.entry(key).or_default() += site.allocated;
            self.of_context(stacks, site.context).allocated += site.allocated;
        }
        for (&context, runs) in &stacks.runs {
            self.of_context(stacks, context).runs += runs;
        }
        self.total += total;
    }

    /// Returns the sums of the route that a context of `stacks` belongs to.
    fn of_context(&mut self, stacks: &StackTable, context: u32) -> &mut ContextSums {
        let labels = stacks.contexts.get(context as usize);
        let mut route = route_in(labels.map_or(&[], Vec::as_slice));
        if self.routes.len() >= MOST_ROUTES && !self.routes.contains_key(route) {
            route = OTHER;
        }
        self.routes.entry(route.to_owned()).or_default()
    }

    /// Adds the sums of all routes to `sums`, those of session `number` while that was running. Returns false, and adds
    /// nothing, if that session has ended meanwhile.
    pub(crate) fn add_to_routes(&self, number: u64, sums: &mut SumsByRoute) -> bool {
        if number <= self.last {
            return false;
        }
        for (route, ended) in &self.routes {
            *sums.entry(route.clone()).or_default() += ended;
        }
        true
    }

    /// Adds all sums to `stacks` and `total`, of a view of session `number` while that was running. Returns false, and adds nothing, if that
    /// session has ended meanwhile, so that it is among the sums.
    pub(crate) fn add_to(&self, number: u64, stacks: &mut StackTable, total: &mut Tally) -> bool {
        if number <= self.last {
            return false;
        }
        if self.sums.is_empty() {
            return true;
        }
        let thread = (0..u32::MAX / 2)
            .rev()
            .find(|number| stacks.threads.iter().all(|thread| thread.number != *number))
            .unwrap_or(0);
        stacks.threads.push(RawThread {
            number: thread,
            tid: 0,
            name: THREAD.to_owned(),
            threads: 1,
        });
        let mut tree = Tree::of(std::mem::take(&mut stacks.nodes));
        let wanted = vec![true; self.tree.nodes.len()];
        let joined = tree.join(&self.tree.nodes, &wanted, usize::MAX);
        stacks.nodes = tree.nodes;
        let none = Tally::default();
        let sites = self.sums.iter().map(|(&(node, kind), &allocated)| RawSite {
            thread,
            node: joined[node.0 as usize].unwrap_or(NodeId::ROOT),
            context: 0,
            kind,
            allocated,
            high_water: none,
            live: none,
            temporary: none,
            oldest_live_ms: None,
        });
        stacks.sites.extend(sites);
        *total += self.total;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(bytes: u64) -> Tally {
        Tally { count: 1, bytes }
    }

    /// Returns stacks of these addresses, root first, each of which has allocated so many bytes.
    fn stacks(all: &[(&[u64], u64)]) -> StackTable {
        let (mut tree, none) = (Tree::of(Vec::new()), Tally::default());
        let mut stacks = StackTable::default();
        for &(addresses, bytes) in all {
            let node = addresses.iter().fold(NodeId::ROOT, |parent, &address| {
                let module = ModuleId(0);
                let node = RawNode {
                    parent,
                    module,
                    address,
                };
                tree.child(node, usize::MAX).unwrap()
            });
            stacks.sites.push(RawSite {
                thread: 7,
                node,
                context: 0,
                kind: Kind::Malloc,
                allocated: tally(bytes),
                high_water: none,
                live: none,
                temporary: none,
                oldest_live_ms: None,
            });
        }
        stacks.nodes = tree.nodes;
        stacks
    }

    /// Returns what each call stack has allocated.
    fn sums(stacks: &StackTable) -> Vec<(Vec<u64>, u64)> {
        let mut sums: Map<Vec<u64>, u64> = Map::default();
        for site in &stacks.sites {
            let (mut addresses, mut at) = (Vec::new(), site.node);
            while at != NodeId::ROOT {
                let node = stacks.nodes[at.0 as usize];
                assert!(node.parent < at, "parents come first");
                addresses.insert(0, node.address);
                at = node.parent;
            }
            *sums.entry(addresses).or_default() += site.allocated.bytes;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort();
        sums
    }

    #[test]
    fn what_ended_sessions_allocated_is_added_by_call_stack() {
        let mut ended = AllocatedInEnded::default();
        ended.add(
            1,
            &stacks(&[(&[10, 11], 100), (&[10, 12], 20), (&[], 3)]),
            tally(123),
        );
        ended.add(2, &stacks(&[(&[10, 12], 5), (&[13], 0)]), tally(5));
        let (mut now, mut total) = (stacks(&[(&[9], 1), (&[10, 11], 1)]), tally(2));
        assert!(ended.add_to(3, &mut now, &mut total));
        let expected: [(&[u64], u64); 5] = [
            (&[], 3),
            (&[9], 1),
            (&[10, 11], 101),
            (&[10, 12], 25),
            (&[13], 0),
        ];
        let expected = expected.map(|(addresses, bytes)| (addresses.to_vec(), bytes));
        assert_eq!(sums(&now), expected);
        assert_eq!(total.bytes, 130);
        // A second time, as for the next scrape: from a new view.
        let (mut now, mut total) = (StackTable::default(), Tally::default());
        assert!(ended.add_to(3, &mut now, &mut total));
        assert_eq!(
            sums(&now).iter().map(|(_, bytes)| bytes).sum::<u64>(),
            total.bytes
        );
    }

    #[test]
    fn a_session_that_has_ended_is_not_added_to_itself() {
        let mut ended = AllocatedInEnded::default();
        ended.add(4, &stacks(&[(&[1], 1)]), tally(1));
        let (mut view, mut total) = (stacks(&[(&[1], 1)]), tally(1));
        assert!(!ended.add_to(4, &mut view, &mut total));
        assert_eq!((view.sites.len(), total), (1, tally(1)));
    }

    #[test]
    fn call_stacks_beyond_the_bound_are_summed_up() {
        let mut ended = AllocatedInEnded::default();
        let many = 2 * MOST_NODES as u64;
        let addresses: Vec<[u64; 1]> = (0..many).map(|number| [1_000_000 + number]).collect();
        let all: Vec<(&[u64], u64)> = addresses.iter().map(|address| (&address[..], 1)).collect();
        ended.add(1, &stacks(&all), tally(many));
        assert!(ended.tree.nodes.len() <= MOST_NODES && ended.sums.len() <= MOST_SUMS + 1);
        let (mut now, mut total) = (StackTable::default(), Tally::default());
        assert!(ended.add_to(2, &mut now, &mut total));
        assert_eq!(sums(&now).iter().map(|(_, bytes)| bytes).sum::<u64>(), many);
        assert!(
            sums(&now)
                .iter()
                .any(|(addresses, _)| *addresses == [RawNode::OTHER])
        );
    }
}
