//! The default limit on the profiler's own memory.

/// Smallest limit: with less, the symbols of a larger program could not be looked up.
pub(crate) const LEAST: u64 = 64 << 20;

/// Returns a quarter of `memory`, from 64 MiB to 2 GiB. A live block takes some 30 bytes, and 40 more while a report of
/// every event is read. So a heap of nothing but blocks of 300 bytes fits, and recording goes on to the service's own limit.
/// No service is expected to need more than 2 GiB, which are 25 million live blocks.
pub(crate) fn overhead_share(memory: Option<u64>) -> u64 {
    const MOST: u64 = 2 << 30;
    memory.map_or(MOST, |memory| (memory / 4).clamp(LEAST, MOST))
}

#[cfg(test)]
mod tests {
    use super::overhead_share;

    #[test]
    fn the_share_is_a_quarter_within_its_bounds() {
        let mib = |memory: u64| overhead_share(Some(memory << 20)) >> 20;
        assert_eq!([mib(64), mib(512), mib(1 << 20)], [64, 128, 2048]);
        assert_eq!(overhead_share(None), 2 << 30);
    }
}
