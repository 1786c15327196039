//! Where there is no way to list modules: there are none.

use std::sync::Arc;

use super::{Changed, TableSize};
use crate::capture::modules::{Module, ModuleId};

/// Nothing ever changes.
pub fn refresh() -> Changed {
    Changed::default()
}

/// No module is ever removed.
#[must_use]
pub fn epoch() -> u32 {
    0
}

/// No address lies in a known module.
#[must_use]
pub fn module_of(_address: u64) -> ModuleId {
    ModuleId::NONE
}

/// No address ever lay in a known module.
#[must_use]
pub fn module_of_at(_address: u64, _epoch: u32) -> ModuleId {
    ModuleId::NONE
}

/// No modules.
#[must_use]
pub fn history() -> Arc<Vec<Module>> {
    Arc::default()
}

/// No rules.
#[must_use]
pub fn table_size() -> TableSize {
    TableSize::default()
}
