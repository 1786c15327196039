//! Turns a sampler's call tree into functions.

use std::collections::HashSet;

use super::{Frame, StatsBuilder};
use crate::capture::cpu::{CpuTally, Sampler};
use crate::capture::event::NodeId;
use crate::capture::modules;
use crate::collector::snapshot::{ModuleId, RawNode};
use crate::symbolize::{Located, LocatedFrame};

/// Samples of one or more samplers, by return address.
#[derive(Debug)]
pub(crate) struct Samples {
    nodes: Vec<RawNode>,
    tallies: Vec<CpuTally>,
    /// Stacks in which profiles began. The frames outside of them are not part of a profile.
    bases: HashSet<u32>,
    lost: u64,
}

/// Number of outermost frames among which heapray's own are searched.
const OWN_DEPTH: usize = 12;

impl Samples {
    /// Returns an empty set of samples.
    pub(crate) fn new() -> Samples {
        let root = RawNode {
            parent: NodeId(0),
            module: ModuleId::NONE,
            address: 0,
        };
        Samples {
            nodes: vec![root],
            tallies: vec![CpuTally::default()],
            bases: HashSet::new(),
            lost: 0,
        }
    }

    /// Adds the samples of `sampler`. Stacks end below those of its nodes that are `bases`.
    pub(crate) fn add(&mut self, sampler: &mut Sampler, bases: &HashSet<u32>) {
        // Node n of the sampler's tree is node `before + n` here, and its root is ours.
        let before = u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX);
        let moved = |node: u32| if node == 0 { 0 } else { before + node };
        let (nodes, tallies) = (&mut self.nodes, &mut self.tallies);
        sampler.for_each_node(|parent, address, tally| {
            nodes.push(RawNode {
                parent: NodeId(moved(parent)),
                module: modules::module_of(address),
                address,
            });
            tallies.push(tally);
        });
        let bases = bases.iter().filter(|&&base| base != 0);
        self.bases.extend(bases.map(|&base| moved(base)));
        self.lost += sampler.lost().samples;
    }

    /// Returns the samples for which there was no memory.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Adds every stack to `stats`.
    pub(crate) fn into_stats(self, stats: &mut StatsBuilder) {
        let located = Located::find(&self.nodes, &modules::history());
        let mut functions: Vec<u32> = Vec::new();
        for (leaf, tally) in self.tallies.iter().enumerate() {
            if tally.samples == 0 {
                continue;
            }
            let frames = self.frames(leaf, &located);
            functions.clear();
            functions.extend(frames.iter().map(|frame| {
                stats.function(Frame {
                    name: frame.function,
                    file: frame.file,
                    line: frame.line,
                })
            }));
            stats.add(&functions, *tally);
        }
    }

    /// Returns the frames of a stack, outermost first, from the start of its profile.
    fn frames<'l>(&self, leaf: usize, located: &'l Located) -> Vec<LocatedFrame<'l>> {
        let mut frames = Vec::new();
        let mut node = leaf;
        while node != 0 && !self.bases.contains(&(node as u32)) {
            frames.extend(located.of(node as u32).rev());
            // Parents have smaller numbers than their children.
            node = (self.nodes[node].parent.0 as usize).min(node - 1);
        }
        frames.reverse();
        let own = frames
            .iter()
            .take(OWN_DEPTH)
            .rposition(|frame| is_own(frame));
        // A stack that consists of heapray's frames alone is the cost of the profile itself.
        let from = own.map_or(0, |own| own + 1);
        if from < frames.len() {
            frames.drain(..from);
        }
        frames
    }
}

/// Returns whether a frame belongs to the code that starts and ends profiles.
fn is_own(frame: &LocatedFrame<'_>) -> bool {
    let name = frame.function.trim_start_matches('<');
    name.starts_with("heapray::profiles::")
}
