//! The process's own limits on its mappings.

use super::Supply;
use crate::flight_recorder::TriggerKind;
use crate::os::process;

/// Returns the limits that are set. Most processes have none, and pay one system call each.
pub(super) fn read() -> Vec<Supply> {
    let [space, data] = process::mapping_limits();
    if space.is_none() && data.is_none() {
        return Vec::new();
    }
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = |nth| statm.split_ascii_whitespace().nth(nth)?.parse::<u64>().ok();
    // All mapped bytes, and those that are data or stack (proc_pid_statm(5)).
    [
        ("RLIMIT_AS", space, pages(0)),
        ("RLIMIT_DATA", data, pages(5)),
    ]
    .into_iter()
    .filter_map(|(what, limit, used)| {
        let (limit, used) = (limit?, used?.saturating_mul(process::page_size()));
        Some(Supply {
            kind: TriggerKind::AddressSpace,
            what: what.to_owned(),
            limit,
            left: limit.saturating_sub(used),
        })
    })
    .collect()
}
