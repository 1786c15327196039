//! The limit on the memory of the command, whatever a capture contains.
//!
//! The reader counts the memory of its tables and refuses a capture that does not fit. For everything that is made of a
//! report later, a thread watches the resident memory, and ends the command with an error before it uses up the machine's
//! memory.

use std::fs;
use std::thread;
use std::time::Duration;

use heapray_report::memray::MemoryLimit;

use crate::context::Context;
use crate::failure::Failure;
use crate::leftovers;

/// Memory besides the limit: code, buffers, and the text that is being read.
const BESIDES: u64 = 64 << 20;

/// Time between two checks of the resident memory.
const LOOK: Duration = Duration::from_millis(10);

/// Returns 2 GiB, or half of the memory of the machine or the control group, if that is less.
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

/// Ends the command when it takes more than `limit`, as long as the command runs.
pub(crate) fn watch(limit: MemoryLimit, context: &Context) {
    let most = limit.0.saturating_add(BESIDES);
    if resident().is_none() {
        return;
    }
    let context = context.clone();
    // If no thread can be started, the reader's own limit still applies.
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

/// Returns the resident memory in bytes, or `None` where the system does not report it.
fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(&text, "VmRSS:")
}

/// Returns the figure in a line of the kernel's: a name, blanks, a number and `kB`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kb: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kb.checked_mul(1 << 10)
}

/// Parses `512MiB`, `2GiB`, `1.5G`, or a number of bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong =
        || "a size is a number of bytes, or a number followed by KiB, MiB or GiB".to_owned();
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
    // The negated form also refuses NaN.
    if !(1.0..=1e18).contains(&bytes) {
        return Err(wrong());
    }
    Ok(bytes as u64)
}

/// Parses a memory limit of at least 16 MiB.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes < 16 << 20 => Err("it must be at least 16 MiB".into()),
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
