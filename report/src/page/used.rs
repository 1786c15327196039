//! The frames and strings of a report that its page needs: those that a call stack refers to.

use crate::Report;
use crate::model::{Frame, FrameId, StrId};
use crate::views::CallTree;

const UNUSED: u32 = u32::MAX;

/// Frames and strings that the tree needs, numbered in the order of their first use.
pub(super) struct Used {
    /// Frames of the report.
    pub(super) frames: Vec<u32>,
    /// Number on the page of each frame of the report.
    pub(super) frame_number: Vec<u32>,
    /// Strings of the report.
    pub(super) strings: Vec<StrId>,
    /// Number on the page of each string of the report.
    pub(super) string_number: Vec<u32>,
}

impl Used {
    /// Returns the number on the page of a frame of the report, if it is there.
    pub(super) fn number_of(&self, FrameId(frame): FrameId) -> Option<u32> {
        let number = self.frame_number.get(frame as usize).copied()?;
        (number != UNUSED).then_some(number)
    }

    /// Collects the frames and strings of the nodes of `tree`.
    pub(super) fn by(report: &Report, tree: &CallTree) -> Used {
        let most = tree
            .nodes
            .iter()
            .map(|node| node.frame.0 as usize + 1)
            .max();
        let mut used = Used {
            frames: Vec::new(),
            frame_number: vec![UNUSED; report.frames.len().max(most.unwrap_or(0))],
            strings: Vec::new(),
            string_number: vec![UNUSED; report.strings.len()],
        };
        for node in &tree.nodes {
            let old = node.frame.0;
            if used.frame_number[old as usize] == UNUSED {
                used.frame_number[old as usize] = number(used.frames.len());
                used.frames.push(old);
                let frame = report.frames.get(old as usize).copied();
                let Frame { function, file, .. } = frame.unwrap_or_default();
                used.string(function);
                if let Some(&full) = report.full_names.get(old as usize) {
                    used.string(full);
                }
                used.string(file);
            }
        }
        used
    }

    fn string(&mut self, id: StrId) {
        // An unknown handle reads as the empty string everywhere, and is numbered like any other.
        if self.string_number.len() <= id.0 as usize {
            self.string_number.resize(id.0 as usize + 1, UNUSED);
        }
        if self.string_number[id.0 as usize] == UNUSED {
            self.string_number[id.0 as usize] = number(self.strings.len());
            self.strings.push(id);
        }
    }
}

pub(super) fn number(length: usize) -> u32 {
    u32::try_from(length).expect("no more of them than 32-bit handles")
}
