//! How much memory the command may take, whatever a capture says.
//!
//! The reader counts what its tables take and refuses a capture that does not fit. What is made of a report afterwards is
//! watched: a thread looks at the resident memory, and ends the command with an error before it takes the machine's.

use std::fs;
use std::thread;
use std::time::Duration;

use heapray_report::memray::MemoryLimit;

use crate::context::Context;
use crate::failure::Failure;
use crate::leftovers;

/// Code, buffers, and the text that is being read: what comes on top of the limit.
const BESIDES: u64 = 64 << 20;

/// How often the resident memory is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// 2 GiB, or half of what the machine or the control group has, if that is less.
pub(crate) fn default() -> MemoryLimit {
    let half = memory_there_is().map_or(u64::MAX, |bytes| bytes / 2);
    MemoryLimit::default().min(MemoryLimit(half))
}

fn memory_there_is() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| kilobytes(&text, "MemTotal:"));
    let groups = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    let limit = |path| fs::read_to_string(path).ok()?.trim().parse().ok();
    let group = groups.into_iter().filter_map(limit).min();
    machine.into_iter().chain(group).min()
}

/// Ends the command when it takes more than `limit`, for as long as the command runs.
pub(crate) fn watch(limit: MemoryLimit, context: &Context) {
    let most = limit.0.saturating_add(BESIDES);
    if resident().is_none() {
        return;
    }
    let context = context.clone();
    // Where no thread can be had, the reader's own limit is left.
    let _ = thread::Builder::new().spawn(move || {
        while resident().is_some_and(|bytes| bytes <= most) {
            thread::sleep(LOOK);
        }
        let _held = leftovers::remove();
        let failure = Failure::Memory(limit);
        context.fail(&failure);
        std::process::exit(failure.exit_code().into());
    });
}

/// Resident memory in bytes; `None` where the system does not tell.
fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(&text, "VmRSS:")
}

/// The figure of a line of the kernel's: a name, blanks, a number and `kB`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kb: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kb.checked_mul(1 << 10)
}

/// `512MiB`, `2GiB`, `1.5G`, or a number of bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || "a size is a number of bytes, or one with KiB, MiB or GiB behind it".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
    let bytes = number * unit as f64;
    // The negated form also refuses what is not a number.
    if !(1.0..=1e18).contains(&bytes) {
        return Err(wrong());
    }
    Ok(bytes as u64)
}

/// A memory limit: 16 MiB is the least.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes < 16 << 20 => Err("it must be 16 MiB at least".into()),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_every_unit_and_nonsense_is_refused() {
        for (text, bytes) in [
            ("1", 1),
            ("64k", 64 << 10),
            ("512MiB", 512 << 20),
            ("1.5 GiB", 3 << 29),
            ("2gb", 2 << 30),
        ] {
            assert_eq!(size(text), Ok(bytes));
        }
        for text in ["", "0", "-1", "MiB", "1 pony", "NaN", "inf", "1e99", "é"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert!(memory("15MiB").is_err() && memory("16MiB").is_ok());
        assert!(default().0 <= MemoryLimit::default().0);
    }
}
