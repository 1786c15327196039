//! `/proc/self/status`.

use heapray_report::model::ProcessMemory;

/// Returns the figures of `status`, or `None` if it has no resident size.
pub(super) fn parse(status: &str) -> Option<ProcessMemory> {
    let field = |name: &str| -> Option<u64> {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib = line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?;
        kib.checked_mul(1024)
    };
    Some(ProcessMemory {
        rss: field("VmRSS")?,
        anonymous: field("RssAnon"),
        files: field("RssFile"),
        shared: field("RssShmem"),
        swapped: field("VmSwap"),
        ..ProcessMemory::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_bytes_and_missing_ones_are_none() {
        let status =
            "Name:\tx VmRSS:\t9 kB\nVmRSS:\t    2048 kB\nRssAnon:\t  1024 kB\nRssFile:\t bad\n";
        let memory = parse(status).unwrap();
        assert_eq!(memory.rss, 2 << 20);
        assert_eq!(memory.anonymous, Some(1 << 20));
        assert_eq!((memory.files, memory.swapped), (None, None));
        assert_eq!(parse("Name:\tx\n"), None);
    }
}
