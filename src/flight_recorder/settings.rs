//! Settings of the flight recorder.

use std::path::PathBuf;
use std::time::Duration;

/// Amount of free memory below which a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OomThreshold {
    /// 100 MiB or 2 % of the limit, whichever is more, but at most an eighth of the limit: otherwise a small container would
    /// always be near its limit.
    #[default]
    Usual,
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the limit.
    Percent(u8),
}

impl OomThreshold {
    /// Returns the threshold in bytes for a limit of `limit` bytes.
    pub(crate) fn of(self, limit: u64) -> u64 {
        match self {
            OomThreshold::Usual => (limit / 50).max(100 << 20).min(limit / 8),
            OomThreshold::Bytes(bytes) => bytes,
            OomThreshold::Percent(percent) => {
                (u128::from(limit) * u128::from(percent) / 100) as u64
            }
        }
    }
}

/// Rate of growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slope {
    /// Growth in bytes…
    pub bytes: u64,
    /// …within this time.
    pub within: Duration,
}

/// Conditions for a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WatchSettings {
    /// Set if free memory is watched.
    pub(crate) out_of_memory: bool,
    pub(crate) threshold: OomThreshold,
    pub(crate) size: Option<u64>,
    pub(crate) step: Option<u64>,
    pub(crate) slope: Option<Slope>,
    /// Time between two reports for the same reason.
    pub(crate) pause: Duration,
    pub(crate) sigusr2: bool,
    /// Directory that has `proc` and `sys`. It differs from `/` in tests only.
    pub(crate) root: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::OomThreshold;

    #[test]
    fn the_usual_threshold_is_fils_but_for_small_limits() {
        for (limit, left) in [
            (100 << 30, 2 << 30),
            (4 << 30, 100 << 20),
            (512 << 20, 64 << 20),
            (64 << 20, 8 << 20),
            (0, 0),
        ] {
            let found = OomThreshold::Usual.of(limit);
            assert!(found.abs_diff(left) <= limit / 1000, "{limit}: {found}");
        }
        assert_eq!(OomThreshold::Percent(5).of(1000), 50);
        assert_eq!(OomThreshold::Percent(100).of(u64::MAX), u64::MAX);
        assert_eq!(OomThreshold::Bytes(7).of(1000), 7);
    }
}
