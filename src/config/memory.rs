//! Settings of the memory log.

use std::path::PathBuf;
use std::time::Duration;

use super::settings::Environment;
use super::{ConfigError, settings, size, truth};
use std::ffi::OsString;

/// What this process is to the others of its job; it names the memory log's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MemoryRole {
    /// The one that people start: `mprofile_<YYYYMMDDhhmmss>.dat`, as `mprof run` names it.
    #[default]
    Main,
    /// One that a framework starts: `<HOSTNAME>.dat`, as PyCOMPSs names it.
    Worker,
}

/// What the memory log tells of child processes, and theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MemoryChildren {
    /// Nothing.
    None,
    /// They count into `MEM`, as with `mprof run --include-children`.
    Include,
    /// `MEM` is the process alone, and each has `CHLD` lines of its own, as with `mprof run --multiprocess`.
    #[default]
    Each,
    /// Both, as with `mprof run --multiprocess --include-children`, and so with PyCOMPSs.
    Both,
}

impl MemoryChildren {
    /// Whether they count into `MEM`.
    #[must_use]
    pub const fn are_included(self) -> bool {
        matches!(self, MemoryChildren::Include | MemoryChildren::Both)
    }

    /// Whether each has lines of its own.
    #[must_use]
    pub const fn have_lines(self) -> bool {
        matches!(self, MemoryChildren::Each | MemoryChildren::Both)
    }
}

/// How the memory log measures a process.
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

/// Everything the memory log was told, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLogConfig {
    /// Where its file goes. `MEMRAY_PROFILER_MEMORY_DIR`, in a worker else `COMPSS_WORKER_PROFILE_PATH`; by default
    /// the current directory.
    pub dir: PathBuf,
    /// `MEMRAY_PROFILER_MEMORY_ROLE`, default `main`.
    pub role: MemoryRole,
    /// From one reading to the next. `MEMRAY_PROFILER_MEMORY_INTERVAL`, default 0.1 s.
    pub interval: Duration,
    /// `MEMRAY_PROFILER_MEMORY_CHILDREN`, default `each`.
    pub children: MemoryChildren,
    /// `MEMRAY_PROFILER_MEMORY_METRIC`, default `rss`.
    pub metric: MemoryMetric,
    /// Bytes above which the file is thinned out. `MEMRAY_PROFILER_MEMORY_LIMIT`, default 64 MiB.
    pub limit: u64,
}

/// What the code asked for; `None` leaves a setting to the environment or its default.
#[derive(Debug, Clone, Default)]
pub struct MemoryLogSettings {
    /// Whether there is a memory log. `MEMRAY_PROFILER_MEMORY_LOG`, default false.
    pub enabled: Option<bool>,
    /// See [`MemoryLogConfig::dir`].
    pub dir: Option<PathBuf>,
    /// See [`MemoryLogConfig::role`].
    pub role: Option<MemoryRole>,
    /// See [`MemoryLogConfig::interval`].
    pub interval: Option<Duration>,
    /// See [`MemoryLogConfig::children`].
    pub children: Option<MemoryChildren>,
    /// See [`MemoryLogConfig::metric`].
    pub metric: Option<MemoryMetric>,
    /// See [`MemoryLogConfig::limit`].
    pub limit: Option<u64>,
}

const INTERVAL: Duration = Duration::from_millis(100);
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(3600);
const INTERVALS: &str = "seconds from 0.01 to 3600, such as 0.1";
/// 64 MiB: two days at 0.1 s.
const LIMIT: u64 = 64 << 20;
/// Less is no file worth having.
const LEAST: u64 = 64 << 10;
const LIMITS: &str = "a number of bytes from 64 KiB on, such as 64 MiB";

const ROLES: [(&str, MemoryRole); 2] = [("main", MemoryRole::Main), ("worker", MemoryRole::Worker)];
const CHILDREN: [(&str, MemoryChildren); 4] = [
    ("none", MemoryChildren::None),
    ("include", MemoryChildren::Include),
    ("each", MemoryChildren::Each),
    ("both", MemoryChildren::Both),
];
const METRICS: [(&str, MemoryMetric); 3] = [
    ("rss", MemoryMetric::Rss),
    ("pss", MemoryMetric::Pss),
    ("uss", MemoryMetric::Uss),
];

impl MemoryLogSettings {
    /// The checked whole; `None` where there is to be no memory log: nothing else is looked at then.
    pub(super) fn resolve<F: Fn(&str) -> Option<OsString>>(
        &self,
        env: &Environment<F>,
    ) -> Result<Option<MemoryLogConfig>, ConfigError> {
        const SWITCH: &str = "MEMRAY_PROFILER_MEMORY_LOG";
        let switched = match env.text(SWITCH, truth::ALLOWED)? {
            Some(text) => Some(
                truth::parse(&text)
                    .ok_or_else(|| ConfigError::new(SWITCH, text, truth::ALLOWED))?,
            ),
            None => self.enabled,
        };
        if switched == Some(false) {
            return Ok(None);
        }
        let compss = env.path("COMPSS_WORKER_PROFILE_PATH");
        if switched.is_none() && compss.is_none() {
            return Ok(None);
        }
        let role = word(env, "MEMRAY_PROFILER_MEMORY_ROLE", "main or worker", &ROLES)?;
        let role = role.or(self.role).unwrap_or_default();
        // As with PyCOMPSs, where the path alone has a worker's memory recorded; it says nothing of other processes.
        let compss = compss.filter(|_| role == MemoryRole::Worker);
        if switched.is_none() && compss.is_none() {
            return Ok(None);
        }
        let dir = match (env.path("MEMRAY_PROFILER_MEMORY_DIR"), compss, &self.dir) {
            (Some(dir), _, _) => settings::directory("MEMRAY_PROFILER_MEMORY_DIR", dir)?,
            (None, Some(dir), _) => settings::directory("COMPSS_WORKER_PROFILE_PATH", dir)?,
            (None, None, Some(dir)) => settings::directory("Builder::memory_dir", dir.clone())?,
            (None, None, None) => PathBuf::from("."),
        };
        Ok(Some(MemoryLogConfig {
            dir,
            role,
            interval: self.interval(env)?,
            children: word(
                env,
                "MEMRAY_PROFILER_MEMORY_CHILDREN",
                "none, include, each or both",
                &CHILDREN,
            )?
            .or(self.children)
            .unwrap_or_default(),
            metric: word(
                env,
                "MEMRAY_PROFILER_MEMORY_METRIC",
                "rss, pss or uss",
                &METRICS,
            )?
            .or(self.metric)
            .unwrap_or_default(),
            limit: self.limit(env)?,
        }))
    }

    fn interval<F: Fn(&str) -> Option<OsString>>(
        &self,
        env: &Environment<F>,
    ) -> Result<Duration, ConfigError> {
        const VARIABLE: &str = "MEMRAY_PROFILER_MEMORY_INTERVAL";
        let allowed = |interval: &Duration| (SHORTEST..=LONGEST).contains(interval);
        if let Some(text) = env.text(VARIABLE, INTERVALS)? {
            let seconds = text.trim().parse().ok();
            let interval = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            return interval
                .filter(allowed)
                .ok_or_else(|| ConfigError::new(VARIABLE, text, INTERVALS));
        }
        let interval = self.interval.unwrap_or(INTERVAL);
        if allowed(&interval) {
            Ok(interval)
        } else {
            let text = format!("{interval:?}");
            Err(ConfigError::new(
                "Builder::memory_interval",
                text,
                INTERVALS,
            ))
        }
    }

    fn limit<F: Fn(&str) -> Option<OsString>>(
        &self,
        env: &Environment<F>,
    ) -> Result<u64, ConfigError> {
        const VARIABLE: &str = "MEMRAY_PROFILER_MEMORY_LIMIT";
        let (setting, limit) = match env.text(VARIABLE, LIMITS)? {
            Some(text) => {
                let bytes = size::parse(&text);
                let refused = || ConfigError::new(VARIABLE, text, LIMITS);
                (VARIABLE, bytes.ok_or_else(refused)?)
            }
            None => ("Builder::memory_limit", self.limit.unwrap_or(LIMIT)),
        };
        if limit < LEAST {
            return Err(ConfigError::new(setting, limit.to_string(), LIMITS));
        }
        Ok(limit)
    }
}

/// The variable's word, one of `words`.
fn word<F: Fn(&str) -> Option<OsString>, T: Copy>(
    env: &Environment<F>,
    variable: &'static str,
    allowed: &'static str,
    words: &[(&str, T)],
) -> Result<Option<T>, ConfigError> {
    let Some(text) = env.text(variable, allowed)? else {
        return Ok(None);
    };
    let is = |(word, _): &&(&str, T)| word.eq_ignore_ascii_case(text.trim());
    match words.iter().find(is) {
        Some((_, value)) => Ok(Some(*value)),
        None => Err(ConfigError::new(variable, text, allowed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn read(
        settings: MemoryLogSettings,
        variables: &[(&str, &str)],
    ) -> Result<Option<MemoryLogConfig>, ConfigError> {
        let settings = Settings {
            memory_log: settings,
            ..Settings::default()
        };
        let config = settings.resolve(|name| {
            let found = variables
                .iter()
                .rev()
                .find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        });
        config.map(|config| config.memory_log)
    }

    const ON: (&str, &str) = ("MEMRAY_PROFILER_MEMORY_LOG", "true");
    const COMPSS: (&str, &str) = ("COMPSS_WORKER_PROFILE_PATH", "/compss");
    const WORKER: (&str, &str) = ("MEMRAY_PROFILER_MEMORY_ROLE", "worker");

    #[test]
    fn it_is_off_unless_it_is_switched_on() {
        let none = MemoryLogSettings::default;
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
            let config = read(MemoryLogSettings::default(), variables)
                .unwrap()
                .unwrap();
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
        let coded = MemoryLogSettings {
            enabled: Some(true),
            dir: Some("/coded".into()),
            role: Some(MemoryRole::Main),
            interval: Some(Duration::from_secs(9)),
            children: Some(MemoryChildren::None),
            metric: Some(MemoryMetric::Uss),
            limit: Some(1 << 20),
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
        let worker = MemoryLogSettings {
            role: Some(MemoryRole::Worker),
            dir: Some("/coded".into()),
            ..MemoryLogSettings::default()
        };
        assert_eq!(read(worker.clone(), &[]).unwrap(), None);
        let config = read(worker, &[COMPSS]).unwrap().unwrap();
        assert_eq!(config.dir, PathBuf::from("/compss"));
        // A main process has it nowhere.
        let config = read(MemoryLogSettings::default(), &[ON, COMPSS])
            .unwrap()
            .unwrap();
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
            let error = read(MemoryLogSettings::default(), &[ON, (variable, value)]).unwrap_err();
            assert_eq!(error.setting(), variable);
            assert!(error.to_string().contains(allowed), "{error}");
        }
        let coded = MemoryLogSettings {
            enabled: Some(true),
            interval: Some(Duration::ZERO),
            ..MemoryLogSettings::default()
        };
        assert_eq!(
            read(coded, &[]).unwrap_err().setting(),
            "Builder::memory_interval"
        );
    }
}
