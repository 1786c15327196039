//! The disk of the log, and how long it keeps the service waiting.
//!
//! While the collector waits for the disk, rings become full, and their threads wait too. A disk that is slower than the
//! events would hold the service to its own speed for as long as the session lasts.

use std::io;
use std::time::{Duration, Instant};

use crate::capture::{record, room};
use crate::os::process::thread_waits;

/// Time for which threads may wait for the disk at once.
const LONGEST: Duration = Duration::from_secs(2);
/// Part of all time for which they may wait for it besides: one of so many.
const PART: u32 = 10;

/// What is known of the disk.
#[derive(Debug)]
pub(super) struct Disk {
    /// Time for which threads have waited, less their part of the time since.
    waited: Duration,
    until: Instant,
    /// Events that had been lost then.
    lost: u64,
}

impl Disk {
    pub(super) fn new() -> Disk {
        Disk {
            waited: Duration::ZERO,
            until: Instant::now(),
            lost: record::lost(),
        }
    }

    /// Writes something by `write`.
    ///
    /// # Errors
    /// The write's; or threads have waited for the disk too long by now.
    pub(super) fn write(&mut self, write: impl FnOnce() -> io::Result<()>) -> Result<(), String> {
        let (began, waits) = (Instant::now(), thread_waits());
        room::may_block(write).map_err(|error| describe(&error))?;
        // The collector may only have lost its processor to others meanwhile.
        let waited_for_disk = waits.is_none() || thread_waits() != waits;
        let lost = record::lost();
        let held_up = waited_for_disk && (room::is_awaited() || lost != self.lost);
        self.lost = lost;
        let now = Instant::now();
        self.add(now, if held_up { now - began } else { Duration::ZERO })
    }

    fn add(&mut self, now: Instant, waited: Duration) -> Result<(), String> {
        let allowed = (now - self.until) / PART;
        self.waited = self.waited.saturating_sub(allowed) + waited;
        self.until = now;
        if self.waited <= LONGEST {
            return Ok(());
        }
        Err("its disk is too slow: threads of the service had to wait for it".into())
    }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full".into(),
        io::ErrorKind::FileTooLarge => "the file is larger than the system allows".into(),
        _ => format!("its file cannot be written: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds so many waits of 100 ms each, with pauses between them. Returns the number after which the disk is too slow.
    fn too_slow_after(waits: u32, pause: Duration) -> Option<u32> {
        let mut disk = Disk::new();
        let mut now = Instant::now();
        let wait = Duration::from_millis(100);
        (1..=waits).find(|_| {
            now += wait + pause;
            disk.add(now, wait).is_err()
        })
    }

    #[test]
    fn threads_may_wait_for_two_seconds_and_a_tenth_of_the_time() {
        let after = |pause_ms| too_slow_after(1000, Duration::from_millis(pause_ms));
        assert_eq!(after(0), Some(23));
        assert_eq!(after(400), Some(40));
        assert_eq!(after(900), None);
    }

    #[test]
    fn a_write_that_waits_holds_up_nobody_if_no_ring_is_full() {
        let mut disk = Disk::new();
        let wait = || {
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        };
        disk.write(wait).unwrap();
        assert_eq!(disk.waited, Duration::ZERO);
        let failed = disk.write(|| Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(failed.unwrap_err(), "the disk is full");
    }
}
