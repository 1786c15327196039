//! How much memory there still is: of each control group that the process is in, of the machine, of its own limits.
//!
//! Everything is read from `proc` and `sys` below a root that tests can choose. What is missing or makes no sense there is
//! no limit.

mod host;
mod limits;

use std::path::Path;

use super::reason::TriggerKind;
#[cfg(test)]
pub(super) use crate::os::cgroup::tests::Machine;
use crate::os::cgroup::{Groups, field};

/// One bound and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Supply {
    pub(super) kind: TriggerKind,
    /// What bounds: `memory.max of /sys/fs/cgroup/app`.
    pub(super) what: String,
    /// Bytes of the bound.
    pub(super) limit: u64,
    /// Bytes that can be had: what is free, and what the kernel would take back from caches.
    pub(super) left: u64,
}

/// Everything that bounds the process.
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

    /// Reads all of them.
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

/// The least of all bounds on the memory of this process: its groups', the machine's, its own. `None` if nothing tells.
pub(crate) fn memory_of_process() -> Option<u64> {
    let supplies = Supplies::find(Path::new("/")).read();
    supplies.into_iter().map(|supply| supply.limit).min()
}
