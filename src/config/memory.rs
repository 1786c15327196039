//! Settings of the memory log.

use std::path::PathBuf;
use std::time::Duration;

use super::Config;

/// Role of this process in its job; it names the memory log's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MemoryRole {
    /// The process that users start: `mprofile_<YYYYMMDDhhmmss>.dat`, as `mprof run` names it.
    #[default]
    Main,
    /// A process that a framework starts: `<HOSTNAME>.dat`, as PyCOMPSs names it.
    Worker,
}

/// What the memory log contains about child processes and their children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MemoryChildren {
    /// Child processes are left out.
    None,
    /// Child processes count into `MEM`, as with `mprof run --include-children`.
    Include,
    /// `MEM` is the process alone, and each has `CHLD` lines of its own, as with `mprof run --multiprocess`.
    #[default]
    Each,
    /// Both, as with `mprof run --multiprocess --include-children`, and so with PyCOMPSs.
    Both,
}

impl MemoryChildren {
    /// Returns whether child processes count into `MEM`.
    #[must_use]
    pub const fn are_included(self) -> bool {
        matches!(self, MemoryChildren::Include | MemoryChildren::Both)
    }

    /// Returns whether each child process has lines of its own.
    #[must_use]
    pub const fn have_lines(self) -> bool {
        matches!(self, MemoryChildren::Each | MemoryChildren::Both)
    }
}

/// Measure of a process's memory in the memory log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MemoryMetric {
    /// Resident memory. Pages that processes share count in each of them.
    #[default]
    Rss,
    /// Resident memory with each shared page divided by the number of processes that have it.
    Pss,
    /// Resident memory that no other process has.
    Uss,
}

/// Settings of a memory log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLogConfig {
    /// Directory of the file.
    pub dir: PathBuf,
    /// Role that names the file.
    pub role: MemoryRole,
    /// Time between two readings.
    pub interval: Duration,
    /// Treatment of child processes.
    pub children: MemoryChildren,
    /// Measure of a process's memory.
    pub metric: MemoryMetric,
    /// Size in bytes above which the file is thinned out.
    pub limit: u64,
}

impl Config {
    /// Returns the settings of the memory log, if one is wanted. It does not need the profiler.
    #[must_use]
    pub fn memory(&self) -> Option<MemoryLogConfig> {
        (self.memory_log == Some(true)).then(|| MemoryLogConfig {
            dir: self.memory_dir.clone(),
            role: self.memory_role,
            interval: self.memory_interval,
            children: self.memory_children,
            metric: self.memory_metric,
            limit: self.memory_limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigError, Settings};
    use std::ffi::OsString;

    fn read(
        settings: Settings,
        variables: &[(&str, &str)],
    ) -> Result<Option<MemoryLogConfig>, ConfigError> {
        let config = settings.resolve(|name| {
            let found = variables
                .iter()
                .rev()
                .find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        });
        config.map(|config| config.memory())
    }

    const ON: (&str, &str) = ("MEMRAY_PROFILER_MEMORY_LOG", "true");
    const COMPSS: (&str, &str) = ("COMPSS_WORKER_PROFILE_PATH", "/compss");
    const WORKER: (&str, &str) = ("MEMRAY_PROFILER_MEMORY_ROLE", "worker");

    #[test]
    fn it_is_off_unless_it_is_switched_on() {
        let none = Settings::default;
        for variables in [
            &[][..],
            &[("MEMRAY_PROFILER", "true")],
            &[
                ("MEMRAY_PROFILER_MEMORY_LOG", "no"),
                ("MEMRAY_PROFILER_MEMORY_INTERVAL", "bad"),
            ],
            // PyCOMPSs's path is for workers.
            &[COMPSS],
            &[COMPSS, WORKER, ("MEMRAY_PROFILER_MEMORY_LOG", "0")],
        ] {
            assert_eq!(read(none(), variables).unwrap(), None, "{variables:?}");
        }
    }

    #[test]
    fn defaults_are_the_documented_ones_with_and_without_the_profiler() {
        for variables in [&[ON][..], &[ON, ("MEMRAY_PROFILER", "true")]] {
            let config = read(Settings::default(), variables).unwrap().unwrap();
            assert_eq!(
                config,
                MemoryLogConfig {
                    dir: ".".into(),
                    role: MemoryRole::Main,
                    interval: Duration::from_millis(100),
                    children: MemoryChildren::Each,
                    metric: MemoryMetric::Rss,
                    limit: 67_108_864,
                }
            );
        }
    }

    #[test]
    fn every_variable_is_read_and_has_the_last_word() {
        let coded = Settings {
            memory_log: Some(Ok(Some(true))),
            memory_dir: Some(Ok("/coded".into())),
            memory_role: Some(Ok(MemoryRole::Main)),
            memory_interval: Some(Ok(Duration::from_secs(9))),
            memory_children: Some(Ok(MemoryChildren::None)),
            memory_metric: Some(Ok(MemoryMetric::Uss)),
            memory_limit: Some(Ok(1 << 20)),
            ..Settings::default()
        };
        let config = read(coded.clone(), &[]).unwrap().unwrap();
        assert_eq!((config.dir, config.limit), ("/coded".into(), 1 << 20));
        assert_eq!(
            (config.interval.as_secs(), config.metric),
            (9, MemoryMetric::Uss)
        );
        let variables = [
            ("MEMRAY_PROFILER_MEMORY_DIR", "/var/memory"),
            WORKER,
            ("MEMRAY_PROFILER_MEMORY_INTERVAL", " 0.25 "),
            ("MEMRAY_PROFILER_MEMORY_CHILDREN", "Both"),
            ("MEMRAY_PROFILER_MEMORY_METRIC", "pss"),
            ("MEMRAY_PROFILER_MEMORY_LIMIT", "128KiB"),
            COMPSS,
        ];
        let config = read(coded, &variables).unwrap().unwrap();
        assert_eq!(config.dir, PathBuf::from("/var/memory"));
        assert_eq!(
            (config.role, config.metric),
            (MemoryRole::Worker, MemoryMetric::Pss)
        );
        assert_eq!(
            (config.interval.as_millis(), config.limit),
            (250, 128 << 10)
        );
        assert_eq!(config.children, MemoryChildren::Both);
    }

    #[test]
    fn the_path_of_pycompss_switches_a_worker_on_and_says_where() {
        let worker = Settings {
            memory_role: Some(Ok(MemoryRole::Worker)),
            memory_dir: Some(Ok("/coded".into())),
            ..Settings::default()
        };
        assert_eq!(read(worker.clone(), &[]).unwrap(), None);
        let config = read(worker, &[COMPSS]).unwrap().unwrap();
        assert_eq!(config.dir, PathBuf::from("/compss"));
        // A main process does not use that path.
        let config = read(Settings::default(), &[ON, COMPSS]).unwrap().unwrap();
        assert_eq!(config.dir, PathBuf::from("."));
    }

    #[test]
    fn a_bad_value_is_named_with_what_is_allowed() {
        for (variable, value, allowed) in [
            ("MEMRAY_PROFILER_MEMORY_LOG", "maybe", "true, t"),
            ("MEMRAY_PROFILER_MEMORY_DIR", "", "directory"),
            ("MEMRAY_PROFILER_MEMORY_ROLE", "boss", "main or worker"),
            ("MEMRAY_PROFILER_MEMORY_INTERVAL", "0", "0.01 to 3600"),
            ("MEMRAY_PROFILER_MEMORY_INTERVAL", "-1", "0.01 to 3600"),
            ("MEMRAY_PROFILER_MEMORY_INTERVAL", "nan", "0.01 to 3600"),
            ("MEMRAY_PROFILER_MEMORY_CHILDREN", "some", "none, include"),
            ("MEMRAY_PROFILER_MEMORY_METRIC", "vms", "rss, pss or uss"),
            ("MEMRAY_PROFILER_MEMORY_LIMIT", "1KiB", "64 KiB"),
        ] {
            let error = read(Settings::default(), &[ON, (variable, value)]).unwrap_err();
            assert_eq!(error.setting(), variable);
            assert!(error.to_string().contains(allowed), "{error}");
        }
        let coded = crate::builder()
            .ignore_environment()
            .memory_log(true)
            .memory_interval(Duration::ZERO);
        assert_eq!(
            coded.config().unwrap_err().setting(),
            "Builder::memory_interval"
        );
    }
}
