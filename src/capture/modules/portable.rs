//! Replaces the list of modules on systems that cannot list them.

use std::sync::Arc;

use super::{Changed, TableSize};
use crate::capture::modules::{Module, ModuleId};

/// Does nothing.
pub fn refresh() -> Changed {
    Changed::default()
}

/// Returns 0: no module is ever removed.
#[must_use]
pub fn epoch() -> u32 {
    0
}

/// Returns `ModuleId::NONE`: no module is known.
#[must_use]
pub fn module_of(_address: u64) -> ModuleId {
    ModuleId::NONE
}

/// Enters nothing: no module is known.
pub fn enter_modules<'a>(_addresses: impl Iterator<Item = (u64, &'a mut ModuleId)>) {}

/// Returns `ModuleId::NONE`: no module is known.
#[must_use]
pub fn module_of_at(_address: u64, _epoch: u32) -> ModuleId {
    ModuleId::NONE
}

/// Returns an empty list.
#[must_use]
pub fn history() -> Arc<Vec<Module>> {
    Arc::default()
}

/// Returns the size of no rules.
#[must_use]
pub fn table_size() -> TableSize {
    TableSize::default()
}
