//! The frames of every address in a snapshot. Each distinct (module, address) is looked up once.
//!
//! One address has one or more frames, because an inlined call is a frame too. Frames are stored outermost first, as call
//! stacks are stored root first.

use std::borrow::Cow;
use std::collections::HashMap;

use heapray_report::model::{self, Frame, StrId, Strings};

use super::lookup::{Lookup, Place};
use super::names::FunctionName;
use super::options::{NameMode, ReportOptions};
use super::trim::{Role, is_c_runtime, role};
use crate::capture::event::NodeId;
use crate::collector::snapshot::{Module, ModuleId, RawNode};

/// A frame, the full name of its function (if the report has both names), its role in trimming, and what else tells it apart.
type Row = (Frame, StrId, Role, Option<Own>);

/// The address of a frame, and whether it is inlined there.
pub(super) type Own = (u64, bool);

/// Distinct frames.
#[derive(Debug, Default)]
pub(super) struct FrameTable {
    pub(super) strings: Strings,
    names: NameMode,
    by_address: bool,
    rows: Vec<Row>,
    /// The place at which each frame first occurred.
    places: Vec<model::Place>,
    index: HashMap<Row, u32>,
}

impl FrameTable {
    /// Returns the number of the frame `named`, and adds the frame if it is new. It occurs at `place`. `has_line`: whether the
    /// outermost frame there has one.
    fn add(&mut self, named: &Place<'_>, role: Role, place: model::Place, has_line: bool) -> u32 {
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
        // An inlined call belongs to the frame that it is inlined into.
        let is_apart = self.by_address && !has_line && place.module.is_some();
        let address = is_apart.then_some((place.address, place.inlined));
        let row = (frame, self.strings.intern(full), role, address);
        *self.index.entry(row).or_insert_with(|| {
            self.rows.push(row);
            self.places.push(place);
            u32::try_from(self.rows.len() - 1).expect("fewer than 2^32 distinct frames")
        })
    }

    pub(super) fn frame(&self, id: u32) -> Frame {
        self.rows[id as usize].0
    }

    /// Returns the full name of a frame's function, or `None` if the report has only one name per function.
    pub(super) fn full_name(&self, id: u32) -> Option<&str> {
        let of_both = self.names == NameMode::Both;
        of_both.then(|| self.strings.get(self.rows[id as usize].1))
    }

    /// Returns what tells a frame from others of the same names, if there may be any.
    pub(super) fn own_address(&self, id: u32) -> Option<Own> {
        self.rows[id as usize].3
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

    /// Returns the distinct source files of all frames. A frame whose source file is unknown has its module's path instead.
    pub(super) fn files(&self) -> Vec<StrId> {
        let mut files: Vec<StrId> = self.rows.iter().map(|(frame, ..)| frame.file).collect();
        files.sort_unstable();
        files.dedup();
        files
    }
}

/// The number of the program's own addresses, and of those with symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Coverage {
    /// Distinct addresses in the program itself.
    pub(super) addresses: u64,
    /// Addresses with a function name.
    pub(super) named: u64,
    /// Addresses with file and line of code outside the standard library. The standard library has debug information even if
    /// the program is built without.
    pub(super) with_lines: u64,
}

/// The frames of every node.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) table: FrameTable,
    pub(super) main: Coverage,
    /// For each node, the index in `spans` of its frames.
    span_of_node: Vec<u32>,
    spans: Vec<(u32, u32)>,
    frames: Vec<u32>,
}

impl Places {
    /// Looks up every address of `nodes`. `options` select the form of frames.
    pub(super) fn find(
        nodes: &[RawNode],
        modules: &[Module],
        options: &ReportOptions,
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
                names: options.names,
                by_address: options.by_address,
                ..FrameTable::default()
            },
            main: Coverage::default(),
            span_of_node: vec![0; nodes.len()],
            // The node of the empty stack has no frames.
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

    /// Returns the frames of `node`, without its callers, outermost first. The empty stack has none.
    pub(super) fn of(&self, node: NodeId) -> &[u32] {
        let span = self.span_of_node.get(node.0 as usize).copied().unwrap_or(0);
        let (start, end) = self.spans[span as usize];
        &self.frames[start as usize..end as usize]
    }

    /// Adds a span for each of `addresses`: return addresses in `module`, in ascending order.
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
        // `saturating_sub` keeps the offsets in ascending order even if the module's load bias is wrong.
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
                let role = match role(place.function.for_role(), &place.file, place.line) {
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
                frames.push(table.add(&named, role, met, found[0].line > 0));
            }
            spans[first + nth] = (index(start), index(frames.len()));
            if module.is_main {
                coverage.addresses += 1;
                coverage.named += u64::from(!found[0].function.is_empty());
                coverage.with_lines += u64::from(with_lines);
            }
        });
    }

    /// Adds a span for each of `addresses` outside of every module. Marks such as [`RawNode::CUT`] are among them.
    fn add_unknown(&mut self, addresses: &[u64]) {
        for &address in addresses {
            let start = index(self.frames.len());
            let mark = MARKS.iter().find(|(mark, _)| *mark == address);
            let (function, role) = match mark {
                Some((_, name)) => ((*name).to_owned(), Role::Entry),
                None => (format!("[unknown code] {address:#x}"), Role::Code),
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
            self.frames.push(self.table.add(&named, role, met, false));
            self.spans.push((start, start + 1));
        }
    }
}

/// The names of the marks at the root of call stacks.
pub(super) const MARKS: [(u64, &str); 4] = [
    (RawNode::CUT, "[stack cut: too deep]"),
    (RawNode::INCOMPLETE, "[outer frames unknown]"),
    (RawNode::FOREIGN, "[foreign stack]"),
    (RawNode::OTHER, "[other call stacks]"),
];

/// Returns the module of `node`, or [`ModuleId::NONE`] if it is not known. Marks and address 0 are not in a module.
fn known_module(modules: &[Module], node: &RawNode) -> ModuleId {
    if node.address <= RawNode::OTHER || usize::from(node.module.0) >= modules.len() {
        ModuleId::NONE
    } else {
        node.module
    }
}

/// Returns `module+0xoffset`, as `addr2line -e module 0xoffset` takes it. So `offset` is that of the call, not of the return
/// address.
fn name_by_offset(path: &str, offset: u64) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("{name}+{offset:#x}")
}

fn index(position: usize) -> u32 {
    u32::try_from(position).expect("fewer than 2^32 frames over all addresses")
}
