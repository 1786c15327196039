//! Call stacks turned over: the leaf is the root, and what called it are its branches.

use super::rebuild::{placed, restack};
use crate::Report;

/// `report` with every call stack in reverse, so that every tree and format that is made of it is leaf first.
#[must_use]
pub fn inverted(report: &Report) -> Report {
    restack(report, |path, _, out| {
        out.extend(path.iter().rev().map(|&frame| placed(report, frame)));
    })
}
