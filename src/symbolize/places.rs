//! The frames of every address in a snapshot: each distinct (module, address) is looked up once.
//!
//! One address is one to many frames, since inlined calls are frames like any other. Frames are kept
//! outermost first, as stacks are root first.

use std::borrow::Cow;
use std::collections::HashMap;

use heapray_report::model::{self, Frame, StrId, Strings};

use super::lookup::{Lookup, Place};
use super::names::FunctionName;
use super::options::NameMode;
use super::trim::{Role, is_c_runtime, role};
use crate::capture::event::NodeId;
use crate::collector::snapshot::{Module, ModuleId, RawNode};

/// A frame, the full name of its function where the report is to have both, and the part it plays when stacks are trimmed.
type Row = (Frame, StrId, Role);

/// Distinct frames.
#[derive(Debug, Default)]
pub(super) struct FrameTable {
    pub(super) strings: Strings,
    names: NameMode,
    rows: Vec<Row>,
    /// Where each frame was met first.
    places: Vec<model::Place>,
    index: HashMap<Row, u32>,
}

impl FrameTable {
    /// The frame of `named`, which is met at `place`.
    fn add(&mut self, named: &Place<'_>, role: Role, place: model::Place) -> u32 {
        let name = &named.function;
        let (function, full) = match self.names {
            NameMode::Plain => (&name.plain, ""),
            NameMode::Full => (&name.full, ""),
            NameMode::Both => (&name.plain, &*name.full),
        };
        let frame = Frame {
            function: self.strings.intern(function),
            file: self.strings.intern(&named.file),
            line: named.line,
        };
        let row = (frame, self.strings.intern(full), role);
        *self.index.entry(row).or_insert_with(|| {
            self.rows.push(row);
            self.places.push(place);
            u32::try_from(self.rows.len() - 1).expect("fewer than 2^32 distinct frames")
        })
    }

    pub(super) fn frame(&self, id: u32) -> Frame {
        self.rows[id as usize].0
    }

    /// The full name of a frame's function; nothing where the frame has the only name that the report is to have.
    pub(super) fn full_name(&self, id: u32) -> Option<&str> {
        let of_both = self.names == NameMode::Both;
        of_both.then(|| self.strings.get(self.rows[id as usize].1))
    }

    pub(super) fn role(&self, id: u32) -> Role {
        self.rows[id as usize].2
    }

    pub(super) fn place(&self, id: u32) -> model::Place {
        self.places[id as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The distinct source files (and, where unknown, modules' paths) of all frames.
    pub(super) fn files(&self) -> Vec<StrId> {
        let mut files: Vec<StrId> = self.rows.iter().map(|(frame, ..)| frame.file).collect();
        files.sort_unstable();
        files.dedup();
        files
    }
}

/// How much is known of the program's own addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Coverage {
    /// Distinct addresses in the program itself.
    pub(super) addresses: u64,
    /// Those with a function's name.
    pub(super) named: u64,
    /// Those with a file and line of code outside the language's library: the library comes with debug
    /// information even where the program is built without.
    pub(super) with_lines: u64,
}

/// The frames of every node.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) table: FrameTable,
    pub(super) main: Coverage,
    /// For each node, which span of `frames` is its own.
    span_of_node: Vec<u32>,
    spans: Vec<(u32, u32)>,
    frames: Vec<u32>,
}

impl Places {
    /// Looks up every address of `nodes`; functions are called as `names` says.
    pub(super) fn find(
        nodes: &[RawNode],
        modules: &[Module],
        names: NameMode,
        lookup: &mut dyn Lookup,
    ) -> Places {
        let key = |node: u32| {
            let node = &nodes[node as usize];
            (known_module(modules, node), node.address)
        };
        let mut order: Vec<u32> = (1..nodes.len())
            .map_while(|node| u32::try_from(node).ok())
            .collect();
        order.sort_unstable_by_key(|&node| key(node));

        let mut places = Places {
            table: FrameTable {
                names,
                ..FrameTable::default()
            },
            main: Coverage::default(),
            span_of_node: vec![0; nodes.len()],
            // The empty stack's node has no frame.
            spans: vec![(0, 0)],
            frames: Vec::new(),
        };
        for of_module in order.chunk_by(|&a, &b| key(a).0 == key(b).0) {
            let mut addresses = Vec::new();
            for same in of_module.chunk_by(|&a, &b| key(a) == key(b)) {
                let span = places.spans.len() + addresses.len();
                let span = u32::try_from(span).expect("no more addresses than nodes");
                for &node in same {
                    places.span_of_node[node as usize] = span;
                }
                addresses.push(key(same[0]).1);
            }
            match modules.get(usize::from(key(of_module[0]).0.0)) {
                Some(module) => {
                    places.add_module(key(of_module[0]).0, module, &addresses, lookup);
                }
                None => places.add_unknown(&addresses),
            }
        }
        places
    }

    /// The frames of `node` alone, outermost first; none for the empty stack.
    pub(super) fn of(&self, node: NodeId) -> &[u32] {
        let span = self.span_of_node.get(node.0 as usize).copied().unwrap_or(0);
        let (start, end) = self.spans[span as usize];
        &self.frames[start as usize..end as usize]
    }

    /// Adds a span for each of `addresses`, ascending return addresses in `module`.
    fn add_module(
        &mut self,
        id: ModuleId,
        module: &Module,
        addresses: &[u64],
        lookup: &mut dyn Lookup,
    ) {
        let path = module.path.to_string_lossy();
        let c_runtime = is_c_runtime(&path);
        let first = self.spans.len();
        self.spans.resize(first + addresses.len(), (0, 0));
        // Saturating keeps them ascending, even if a module says that it lies where it does not.
        let offsets: Vec<u64> = addresses
            .iter()
            .map(|address| (address - 1).saturating_sub(module.load_bias))
            .collect();
        let (table, frames, spans) = (&mut self.table, &mut self.frames, &mut self.spans);
        let coverage = &mut self.main;
        lookup.lookup(module, &offsets, &mut |nth, found| {
            let start = frames.len();
            let unnamed = Place {
                function: Cow::default(),
                file: Cow::Borrowed(""),
                line: 0,
            };
            let found = if found.is_empty() {
                &[unnamed][..]
            } else {
                found
            };
            let mut with_lines = false;
            for (depth, place) in found.iter().enumerate() {
                let role = match role(place.function.whose(), &place.file, place.line) {
                    Role::Code if c_runtime => Role::Entry,
                    role => role,
                };
                with_lines |= role == Role::Code && place.line > 0;
                let function = if place.function.is_empty() {
                    Cow::Owned(FunctionName::plain(name_by_offset(&path, offsets[nth])))
                } else {
                    Cow::Borrowed(&*place.function)
                };
                let file: &str = if place.file.is_empty() {
                    &path
                } else {
                    &place.file
                };
                let named = Place {
                    function,
                    file: Cow::Borrowed(file),
                    line: place.line,
                };
                let met = model::Place {
                    module: Some(u32::from(id.0)),
                    address: addresses[nth] - 1,
                    inlined: depth > 0,
                };
                frames.push(table.add(&named, role, met));
            }
            spans[first + nth] = (index(start), index(frames.len()));
            if module.is_main {
                coverage.addresses += 1;
                coverage.named += u64::from(!found[0].function.is_empty());
                coverage.with_lines += u64::from(with_lines);
            }
        });
    }

    /// Adds a span for each of `addresses` outside of every module, marks among them.
    fn add_unknown(&mut self, addresses: &[u64]) {
        for &address in addresses {
            let start = index(self.frames.len());
            let (function, role) = match address {
                RawNode::CUT => ("[stack cut: too deep]".to_owned(), Role::Entry),
                RawNode::INCOMPLETE => ("[outer frames unknown]".to_owned(), Role::Entry),
                RawNode::FOREIGN => ("[foreign stack]".to_owned(), Role::Entry),
                RawNode::OTHER => ("[other call stacks]".to_owned(), Role::Entry),
                _ => (format!("[unknown code] {address:#x}"), Role::Code),
            };
            let named = Place {
                function: Cow::Owned(FunctionName::plain(function)),
                file: Cow::Borrowed(""),
                line: 0,
            };
            let met = model::Place {
                address: if role == Role::Entry { 0 } else { address },
                ..model::Place::default()
            };
            self.frames.push(self.table.add(&named, role, met));
            self.spans.push((start, start + 1));
        }
    }
}

/// The module of `node` if there is such a one. Marks are in none, and neither is address 0.
fn known_module(modules: &[Module], node: &RawNode) -> ModuleId {
    if node.address <= RawNode::OTHER || usize::from(node.module.0) >= modules.len() {
        ModuleId::NONE
    } else {
        node.module
    }
}

/// `module+0xoffset`: what `addr2line -e module 0xoffset` takes, so of the call and not of its return.
fn name_by_offset(path: &str, offset: u64) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("{name}+{offset:#x}")
}

fn index(position: usize) -> u32 {
    u32::try_from(position).expect("fewer than 2^32 frames over all addresses")
}
