//! Reversed call stacks: the leaf is the root, and its callers are its branches.

use super::rebuild::{placed, restack};
use crate::Report;

/// Returns `report` with every call stack reversed, so that every tree and format that is made of it is leaf first.
#[must_use]
pub fn inverted(report: &Report) -> Report {
    restack(report, |path, _, out| {
        out.extend(path.iter().rev().map(|&frame| placed(report, frame)));
    })
}
