//! The memory that is left: of each control group of the process, of the machine, of the process's own limits.
//!
//! Everything is read from `proc` and `sys` below a root that tests can choose. A missing or senseless file means that there
//! is no limit.

mod host;
mod limits;

use std::path::Path;

use super::reason::TriggerKind;
#[cfg(test)]
pub(super) use crate::os::cgroup::tests::Machine;
use crate::os::cgroup::{Groups, field};

/// Limit, and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Supply {
    pub(super) kind: TriggerKind,
    /// Name of the limit: `memory.max of /sys/fs/cgroup/app`.
    pub(super) what: String,
    /// The limit in bytes.
    pub(super) limit: u64,
    /// Bytes that can be had: free memory, and what the kernel would take back from caches.
    pub(super) left: u64,
}

/// All limits of the process.
#[derive(Debug)]
pub(super) struct Supplies {
    pub(super) groups: Groups,
    host: host::Host,
}

impl Supplies {
    pub(super) fn find(root: &Path) -> Supplies {
        Supplies {
            groups: Groups::find(root),
            host: host::Host::find(root),
        }
    }

    /// Reads all limits.
    pub(super) fn read(&self) -> Vec<Supply> {
        let limits = self.groups.limits().into_iter();
        let mut supplies: Vec<_> = limits
            .map(|limit| Supply {
                kind: TriggerKind::ControlGroup,
                what: limit.what,
                limit: limit.bytes,
                left: limit.left,
            })
            .collect();
        supplies.extend(self.host.read());
        supplies.extend(limits::read());
        supplies
    }
}

/// Returns the tightest limit on the memory of this process: its groups', the machine's, its own. Returns `None` if none is
/// known.
pub(crate) fn memory_of_process() -> Option<u64> {
    let supplies = Supplies::find(Path::new("/")).read();
    supplies.into_iter().map(|supply| supply.limit).min()
}
