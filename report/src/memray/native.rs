//! Native call stacks (capture format, section 3.5): chains of return addresses, and their images.
//!
//! heapray never writes them and does not symbolize them: a frame is its address, with the image's path as its file.

use std::collections::BTreeMap;
use std::io::Read;

use super::codec::Running;
use super::limit::{in_list, in_map, in_tree};
use super::source::{Decoded, Source, damaged};
use super::tables::{MOST_STACKS, Tables};
use super::tag;
use crate::hash::FastMap;
use crate::model::{Frame, StackId, StrId};

/// Larger than any program's number of native frames. A capture may repeat one in a few bytes.
const MOST_NODES: usize = 1 << 23;

/// Largest number of generations. One is written for each `dlopen` and `dlclose`.
const MOST_GENERATIONS: usize = 1 << 20;

/// Largest memory of each of these. A node may be on a path that is walked, too.
const NODE: u64 = 2 * in_list::<(u64, u64)>();
const GENERATION: u64 = in_list::<Images>();
const SEGMENT: u64 = in_tree::<(u64, (u64, StrId))>();
const STACK: u64 = in_map::<((u64, u64), StackId)>();

/// Segments by start: end and image.
type Images = BTreeMap<u64, (u64, StrId)>;

#[derive(Debug, Default)]
pub(super) struct Native {
    ip: Running,
    /// The last node number, from which records store differences. Allocation records share it.
    pub(super) last_node: Running,
    /// Return address and caller's node of each node. Node n is `nodes[n - 1]`.
    nodes: Vec<(u64, u64)>,
    /// Images of each generation. A MEMORY_MAP_START record begins one.
    generations: Vec<Images>,
    /// Stacks by generation and node.
    stacks: FastMap<(u64, u64), StackId>,
}

impl Native {
    /// Reads the body of a NATIVE_TRACE_INDEX record.
    pub(super) fn read_node<R: Read>(
        &mut self,
        source: &mut Source<R>,
        tables: &mut Tables,
    ) -> Decoded<()> {
        let ip = source.delta(&mut self.ip)?;
        let parent = source.delta(&mut self.last_node)?;
        if parent > self.nodes.len() as u64 {
            return damaged(format!(
                "a native frame whose caller, {parent}, comes later"
            ));
        }
        if self.nodes.len() >= MOST_NODES {
            return damaged("more native frames than there can be");
        }
        tables.budget.take(NODE)?;
        self.nodes.push((ip, parent));
        Ok(())
    }

    /// Handles a MEMORY_MAP_START record: from here on other images are loaded.
    pub(super) fn start_generation(&mut self, tables: &mut Tables) -> Decoded<()> {
        if self.generations.len() >= MOST_GENERATIONS {
            return damaged("more changes of the loaded images than there can be");
        }
        tables.budget.take(GENERATION)?;
        self.generations.push(Images::new());
        Ok(())
    }

    /// Returns the number of the current generation, from 1; 0 if none has begun.
    pub(super) fn generation(&self) -> u64 {
        self.generations.len() as u64
    }

    /// Reads the body of a SEGMENT_HEADER record and its segments.
    pub(super) fn read_image<R: Read>(
        &mut self,
        source: &mut Source<R>,
        tables: &mut Tables,
    ) -> Decoded<()> {
        let path = source.cstr()?;
        let path = tables.intern(&path)?;
        let segments = source.varint()?;
        let load = source.u64()?;
        for _ in 0..segments {
            if source.byte()? != tag::SEGMENT {
                return damaged("an image with fewer segments than it says");
            }
            let start = load.wrapping_add(source.u64()?);
            let end = start.saturating_add(source.varint()?);
            if let Some(images) = self.generations.last_mut()
                && images.insert(start, (end, path)).is_none()
            {
                tables.budget.take(SEGMENT)?;
            }
        }
        Ok(())
    }

    /// Returns the stack of `node` with the images of `generation`.
    pub(super) fn stack(
        &mut self,
        node: u64,
        generation: u64,
        tables: &mut Tables,
    ) -> Decoded<StackId> {
        let mut path = Vec::new();
        let mut at = node;
        let mut stack = loop {
            if at == 0 {
                break StackId::EMPTY;
            }
            if let Some(&stack) = self.stacks.get(&(generation, at)) {
                break stack;
            }
            let Some(&(ip, parent)) = self.nodes.get(at as usize - 1) else {
                return damaged(format!("native call stack {at}, which is not defined"));
            };
            path.push((at, ip));
            at = parent;
        };
        if self.stacks.len() + path.len() > MOST_STACKS {
            return damaged("more native call stacks than there can be");
        }
        for (node, ip) in path.into_iter().rev() {
            let frame = Frame {
                function: tables.intern(&format!("{ip:#x}"))?,
                file: self.image(ip.wrapping_sub(1), generation),
                line: 0,
            };
            let frame = tables.intern_frame(frame)?;
            stack = tables.child(stack, frame)?;
            tables.budget.take(STACK)?;
            self.stacks.insert((generation, node), stack);
        }
        Ok(stack)
    }

    fn image(&self, address: u64, generation: u64) -> StrId {
        (generation as usize)
            .checked_sub(1)
            .and_then(|index| self.generations.get(index))
            .and_then(|images| images.range(..=address).next_back())
            .filter(|(_, (end, _))| address < *end)
            .map_or(StrId::EMPTY, |(_, &(_, path))| path)
    }
}
