//! The frames of call stacks that are not of allocations and belong to no report.

use super::options::NameMode;
use super::places::Places;
use super::resolver::ElfLookup;
use crate::capture::event::NodeId;
use crate::collector::snapshot::{Module, RawNode};

/// The frames of each node of a call tree.
#[derive(Debug)]
pub(crate) struct Located {
    places: Places,
}

/// A function's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocatedFrame<'l> {
    /// The plain name, or `module+0xoffset`.
    pub(crate) function: &'l str,
    /// The source file, or the module's path; empty if neither is known.
    pub(crate) file: &'l str,
    /// From 1; 0 if unknown.
    pub(crate) line: u32,
}

impl Located {
    /// Looks up every address of `nodes`.
    pub(crate) fn find(nodes: &[RawNode], modules: &[Module]) -> Located {
        Located {
            places: Places::find(nodes, modules, NameMode::Plain, &mut ElfLookup::default()),
        }
    }

    /// The frames of node `number` alone, outermost first: its function, with what was inlined into it.
    pub(crate) fn of(
        &self,
        number: u32,
    ) -> impl DoubleEndedIterator<Item = LocatedFrame<'_>> + ExactSizeIterator {
        self.places.of(NodeId(number)).iter().map(|&id| {
            let frame = self.places.table.frame(id);
            let strings = &self.places.table.strings;
            LocatedFrame {
                function: strings.get(frame.function),
                file: strings.get(frame.file),
                line: frame.line,
            }
        })
    }
}
