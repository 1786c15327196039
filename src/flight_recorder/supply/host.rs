//! The machine's memory: `proc/meminfo`.

use std::path::{Path, PathBuf};

use super::{Supply, field};
use crate::flight_recorder::TriggerKind;

#[derive(Debug)]
pub(super) struct Host {
    meminfo: PathBuf,
}

impl Host {
    pub(super) fn find(root: &Path) -> Host {
        Host {
            meminfo: root.join("proc/meminfo"),
        }
    }

    /// Reads the machine's memory. Returns `None` where the system does not report it.
    pub(super) fn read(&self) -> Option<Supply> {
        parse(&std::fs::read_to_string(&self.meminfo).ok()?)
    }
}

/// Parses `meminfo`. `MemAvailable` is the kernel's own estimate of what can be had without swapping (proc_meminfo(5)).
fn parse(meminfo: &str) -> Option<Supply> {
    let kib = |name| field(meminfo, name)?.checked_mul(1024);
    Some(Supply {
        kind: TriggerKind::Host,
        what: "the machine's memory".to_owned(),
        limit: kib("MemTotal")?,
        left: kib("MemAvailable")?,
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_kernels_estimate_is_taken_and_nothing_is_guessed() {
        let text = "MemTotal:       16000 kB\nMemFree:         10 kB\nMemAvailable:    4000 kB\n";
        let supply = parse(text).unwrap();
        assert_eq!((supply.limit, supply.left), (16000 << 10, 4000 << 10));
        for odd in ["", "MemTotal: 5 kB\n", "MemTotal: x\nMemAvailable: -1 kB\n"] {
            assert_eq!(parse(odd), None);
        }
        let huge = format!("MemTotal: {0} kB\nMemAvailable: {0} kB\n", u64::MAX);
        assert_eq!(parse(&huge), None);
    }
}
