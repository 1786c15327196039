//! The sampler's thread: it writes a reading at each interval, and the calls that ended since the last one.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use heapray_report::memory_log::{Line, Reading};
use heapray_report::memray::in_one_line;

use super::recorder::{Shared, seconds_now};
use super::{LogFile, Probe};
use crate::announce;
use crate::config::MemoryLogConfig;
use crate::os::command_line;
use crate::os::file::file_size_limit;

/// Longest time that a finished call waits for its line.
const SLICE: Duration = Duration::from_millis(100);

/// Longest interval: a log is thinned out to one reading a day at most.
const LONGEST_INTERVAL: Duration = Duration::from_secs(86_400);

/// Time between two error messages.
const REPEAT_AFTER: Duration = Duration::from_secs(3600);

/// See the module.
pub(super) struct Sampler {
    shared: Arc<Shared>,
    probe: Probe,
    file: LogFile,
    interval: Duration,
    limit: u64,
    /// Time of the last message that a line could not be written.
    last_failure_report: Option<Instant>,
    /// Set once a message said that calls were lost.
    loss_reported: bool,
}

impl Sampler {
    pub(super) fn new(
        shared: Arc<Shared>,
        probe: Probe,
        file: LogFile,
        config: &MemoryLogConfig,
    ) -> Sampler {
        Sampler {
            shared,
            probe,
            file,
            interval: config.interval,
            // The file never becomes longer than the system allows, so it has to be thinned out before.
            limit: config.limit.min(file_size_limit() / 8 * 7),
            last_failure_report: None,
            loss_reported: false,
        }
    }

    pub(super) fn run(mut self) {
        let command = command_line::read();
        self.write(&Line::Command(in_one_line(&command).trim()));
        let mut next = Instant::now();
        loop {
            self.sample();
            // Readings that were missed while the machine slept are not made up for.
            next = (next + self.interval).max(Instant::now());
            if self.rest_until(next) {
                break;
            }
        }
        self.write_calls();
        self.sample();
    }

    /// Waits until `next`. Returns whether the log is to end.
    fn rest_until(&mut self, next: Instant) -> bool {
        loop {
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            if self.shared.wait(left.min(SLICE)) {
                return true;
            }
            self.write_calls();
        }
    }

    fn sample(&mut self) {
        let Some(readings) = self.probe.read() else {
            // `/proc` is gone, for example in a chroot.
            return;
        };
        let at = seconds_now();
        self.shared.set_offset(readings.memory, readings.rss);
        self.write(&Line::Memory(Reading::of_bytes(readings.memory, at)));
        for (pid, bytes) in readings.children {
            self.write(&Line::Child {
                id: &pid.to_string(),
                reading: Reading::of_bytes(bytes, at),
            });
        }
        self.thin_if_too_long();
    }

    fn write_calls(&mut self) {
        let (calls, lost) = self.shared.take_calls();
        for call in &calls {
            self.write(&Line::Function {
                name: &call.name,
                from: call.from,
                to: call.to,
                level: call.level,
            });
        }
        if lost > 0 && !self.loss_reported {
            self.loss_reported = true;
            announce::error(
                "calls end faster than the memory log can write them: some are left out",
            );
        }
        // The next reading may be far away.
        self.thin_if_too_long();
    }

    fn write(&mut self, line: &Line<'_>) {
        if let Err(error) = self.file.write(line) {
            self.failed(&error);
        }
    }

    fn failed(&mut self, error: &io::Error) {
        // On a full disk short lines may fit where long ones do not: one message stands for all failures of an hour.
        if self
            .last_failure_report
            .is_none_or(|last| last.elapsed() > REPEAT_AFTER)
        {
            self.last_failure_report = Some(Instant::now());
            let path = self.file.path().display();
            announce::error(format!(
                "the memory log {path} cannot be written ({error}); it goes on when it can"
            ));
        }
    }

    fn thin_if_too_long(&mut self) {
        if self.file.length() > self.limit {
            self.thin();
        }
    }

    /// Makes room in the file: halves the number of readings a second, from here on too.
    fn thin(&mut self) {
        let enough = self.limit / 4 * 3;
        while self.file.length() > enough {
            let longer = self.interval * 2;
            if longer > LONGEST_INTERVAL {
                // The rest, such as a long command line, cannot be thinned out.
                self.limit = self.limit.saturating_mul(2);
                break;
            }
            self.interval = longer;
            if let Err(error) = self.file.thin(self.interval.as_secs_f64()) {
                // Otherwise thinning would be tried again with each reading.
                self.limit = self.limit.saturating_mul(2);
                return self.failed(&error);
            }
        }
        let seconds = self.interval.as_secs_f64();
        tracing::info!(
            seconds,
            "the memory log was thinned out to a reading in so many seconds"
        );
    }
}
