//! The frames of call stacks outside of a report, such as those of CPU samples.

use super::helped::HelpedLookup;
use super::options::ReportOptions;
use super::places::Places;
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
    /// The source file, or the module's path. Empty if both are unknown.
    pub(crate) file: &'l str,
    /// The line, from 1. 0 if unknown.
    pub(crate) line: u32,
}

impl Located {
    /// Looks up every address of `nodes`.
    pub(crate) fn find(nodes: &[RawNode], modules: &[Module]) -> Located {
        Located {
            places: Places::find(
                nodes,
                modules,
                &ReportOptions::default(),
                &mut HelpedLookup::default(),
            ),
        }
    }

    /// Returns the frames of node `number`, without its callers, outermost first: its function and the functions that were
    /// inlined into it.
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
