//! A report's call tree as one of addresses.

use std::collections::HashMap;
use std::path::PathBuf;

use heapray_report::Report;
use heapray_report::model::{Frame, FrameId, Place as CodePlace};

use crate::capture::event::NodeId;
use crate::collector::snapshot::{Module, ModuleId, RawNode};
use crate::hex;
use crate::symbolize::places::MARKS;

/// Returns whether code of `report` has no line, and where it is.
pub(super) fn lacks_line(frame: Frame, place: CodePlace) -> bool {
    let is_code = place.address > RawNode::OTHER && place.address < u64::MAX;
    frame.line == 0 && place.module.is_some() && !place.inlined && is_code
}

/// A report's call tree as one of addresses.
#[derive(Debug)]
pub(super) struct Addresses {
    /// The report's modules, and as many again that stand for frames of theirs that stay as they are. The last one stands for
    /// frames of no module.
    pub(super) modules: Vec<Module>,
    pub(super) nodes: Vec<RawNode>,
    pub(super) of_stack: Vec<NodeId>,
    /// The report's frames of each address without a line, outermost first.
    pub(super) frames: HashMap<Address, Vec<FrameId>>,
}

/// An address without a line, by its module, and the report's frames there, outermost first.
type End = (Address, Vec<FrameId>);
type Address = (usize, u64);

/// The most frames of an address that are kept. Compilers inline less deeply.
const MOST_INLINED: usize = 64;

/// Added to the number of a frame that stands for itself, so that it is larger than the marks.
const FIRST: u64 = RawNode::OTHER + 1;

impl Addresses {
    pub(super) fn of(report: &Report) -> Addresses {
        let count = report.modules.len();
        let itself = |path: PathBuf| Module {
            path,
            load_bias: 0,
            start: 0,
            end: u64::MAX,
            code: None,
            build_id: Vec::new(),
            is_main: false,
        };
        let looked_up = report.modules.iter().enumerate().map(|(number, module)| {
            let path: PathBuf = (&*module.path).into();
            Module {
                load_bias: module.start.wrapping_sub(module.address),
                start: module.start,
                end: module.limit,
                build_id: hex::bytes(&module.build_id).unwrap_or_default(),
                is_main: number == 0,
                ..itself(path)
            }
        });
        let paths = report.modules.iter().map(|module| (&*module.path).into());
        let themselves = paths.chain([PathBuf::new()]).map(itself);
        let modules = looked_up.chain(themselves).collect();

        let mut addresses = Addresses {
            modules,
            nodes: vec![RawNode {
                parent: NodeId(0),
                module: ModuleId::NONE,
                address: 0,
            }],
            of_stack: vec![NodeId(0)],
            frames: HashMap::new(),
        };
        let mut known = HashMap::new();
        // The address without a line that each call stack ends at, if it does, and its frames.
        let mut ends: Vec<Option<End>> = vec![None];
        for (_, node) in report.stacks.iter() {
            let parent = addresses.of_stack[node.parent.0 as usize];
            let at = node.frame.0 as usize;
            let frame = report.frames.get(at).copied().unwrap_or_default();
            let place = report.places.get(at).copied().unwrap_or_default();
            let around = ends[node.parent.0 as usize].as_ref();
            // A frame with a line says only where it was first met.
            let is_here = |((module, address), _): &&End| {
                place.inlined && (place.module, place.address) == (Some(*module as u32), *address)
            };
            if let Some((key, mut frames)) = around.filter(is_here).cloned() {
                if frames.len() < MOST_INLINED {
                    frames.push(node.frame);
                }
                let longest = addresses.frames.entry(key).or_default();
                if frames.len() > longest.len() {
                    longest.clone_from(&frames);
                }
                ends.push(Some((key, frames)));
                addresses.of_stack.push(parent);
                continue;
            }
            let function = report.strings.get(frame.function);
            let mark = MARKS.iter().find(|(_, name)| *name == function);
            let module = place.module.map(|module| module as usize);
            let module = module.filter(|&module| module < count);
            let (module, address) = match (module, mark) {
                (None, Some((mark, _))) => (usize::MAX, *mark),
                (Some(module), _) if lacks_line(frame, place) => (module, place.address + 1),
                // A return address: one more than what is looked up.
                (module, _) => (
                    count + module.unwrap_or(count),
                    FIRST + u64::from(node.frame.0) + 1,
                ),
            };
            let end = (module < count).then(|| ((module, place.address), vec![node.frame]));
            if let Some((key, frames)) = &end {
                addresses
                    .frames
                    .entry(*key)
                    .or_insert_with(|| frames.clone());
            }
            ends.push(end);
            let raw = RawNode {
                parent,
                module: u16::try_from(module).map_or(ModuleId::NONE, ModuleId),
                address,
            };
            let next = NodeId(u32::try_from(addresses.nodes.len()).unwrap_or(u32::MAX));
            let id = *known.entry((parent, module, address)).or_insert(next);
            if id == next {
                addresses.nodes.push(raw);
            }
            addresses.of_stack.push(id);
        }
        addresses
    }

    /// Returns the number of the report's modules.
    pub(super) fn looked_up(&self) -> usize {
        self.modules.len() / 2
    }

    /// Returns the frame that stands for itself at `address` of a module for that.
    pub(super) fn frame_at(address: u64) -> Option<FrameId> {
        let number = address.checked_sub(FIRST)?;
        Some(FrameId(u32::try_from(number).ok()?))
    }

    /// Returns the code of a frame in the new report.
    pub(super) fn place(&self, report: &Report, place: CodePlace) -> CodePlace {
        match place.module {
            Some(module) if module as usize >= self.looked_up() => {
                let old = Addresses::frame_at(place.address);
                let old = old.and_then(|frame| report.places.get(frame.0 as usize));
                old.copied().unwrap_or_default()
            }
            _ => place,
        }
    }
}
