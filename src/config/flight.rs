//! The flight recorder's settings.

use std::time::Duration;

use super::values::{Times, Values};
use super::{Config, size};
use crate::flight_recorder::{OomThreshold, Slope, WatchSettings};

impl Config {
    /// Returns the conditions for reports of a session, or `None` if there are none.
    pub(crate) fn watch(&self) -> Option<WatchSettings> {
        let bytes = |bytes: u64| Some(bytes).filter(|&bytes| bytes > 0);
        let (size, step) = (bytes(self.trigger_size), bytes(self.trigger_step));
        let grows = size.is_some() || step.is_some() || self.trigger_slope.is_some();
        (self.oom || grows || self.sigusr2).then(|| WatchSettings {
            out_of_memory: self.oom,
            threshold: self.oom_threshold,
            size,
            step,
            slope: self.trigger_slope,
            pause: self.trigger_pause,
            sigusr2: self.sigusr2,
            root: self.system_root.clone(),
        })
    }
}

/// Kind of setting: bytes, or a percentage; an empty text is [`OomThreshold::Usual`].
pub(crate) struct Thresholds;

impl Values for Thresholds {
    type Given = OomThreshold;
    type Value = OomThreshold;

    fn allowed(&self) -> String {
        "a number of bytes such as 256 MiB, or a part of the limit such as 5 %".into()
    }

    fn bounds(&self) -> String {
        "bytes, or up to `100 %`".into()
    }

    fn parse(&self, text: &str) -> Option<OomThreshold> {
        let text = text.trim();
        let threshold = match text.strip_suffix('%') {
            Some(percent) => OomThreshold::Percent(percent.trim().parse().ok()?),
            None if text.is_empty() => OomThreshold::Usual,
            None => OomThreshold::Bytes(size::parse(text)?),
        };
        self.accept(threshold).ok()
    }

    fn accept(&self, given: OomThreshold) -> Result<OomThreshold, String> {
        match given {
            OomThreshold::Percent(percent @ 101..) => Err(format!("{percent} %")),
            threshold => Ok(threshold),
        }
    }
}

/// Kind of setting: bytes, and the time in which the heap grows by them; 0 or an empty text means none.
pub(crate) struct Slopes;

impl Values for Slopes {
    type Given = Slope;
    type Value = Option<Slope>;

    fn allowed(&self) -> String {
        "a number of bytes and a time up to 366d, such as 100 MiB/10m".into()
    }

    fn bounds(&self) -> String {
        "bytes/time, the time up to `366d`".into()
    }

    fn parse(&self, text: &str) -> Option<Option<Slope>> {
        if let "" | "0" = text.trim() {
            return Some(None);
        }
        let (bytes, within) = text.split_once('/')?;
        let (bytes, within) = (size::parse(bytes)?, Times.parse(within)?);
        self.accept(Slope { bytes, within }).ok()
    }

    fn accept(&self, given: Slope) -> Result<Option<Slope>, String> {
        let Slope { bytes, within } = given;
        match Times.accept(within) {
            Ok(Duration::ZERO) => Ok(None),
            Ok(_) => Ok((bytes > 0).then_some(given)),
            Err(within) => Err(format!("{bytes}/{within}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigError, Settings};
    use std::ffi::OsString;

    fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        with(Settings::default(), variables)
    }

    fn with(settings: Settings, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let settings = Settings {
            enabled: Some(Ok(true)),
            ..settings
        };
        settings.resolve(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn every_variable_is_read_and_has_the_last_word() {
        let usual = Config {
            enabled: true,
            ..Config::default()
        };
        assert_eq!(read(&[]).unwrap(), usual);
        assert_eq!((usual.trigger_keep, usual.trigger_pause.as_secs()), (3, 60));
        assert!(usual.oom && !usual.sigusr2 && usual.trigger_slope.is_none());
        let given = Settings {
            trigger_step: Some(Ok(7)),
            oom_exit_code: Some(Ok(Some(53))),
            trigger_size: Some(Ok(9)),
            ..Settings::default()
        };
        let config = with(
            given,
            &[
                ("MEMRAY_PROFILER_OOM", "no"),
                ("MEMRAY_PROFILER_OOM_THRESHOLD", " 5 %"),
                ("MEMRAY_PROFILER_OOM_EXIT_CODE", ""),
                ("MEMRAY_PROFILER_TRIGGER_SIZE", "0"),
                ("MEMRAY_PROFILER_TRIGGER_SLOPE", "100MiB/10m"),
                ("MEMRAY_PROFILER_TRIGGER_PAUSE", "1 h"),
                ("MEMRAY_PROFILER_TRIGGER_KEEP", "0"),
                ("MEMRAY_PROFILER_SIGUSR2", "true"),
            ],
        );
        let slope = Slope {
            bytes: 100 << 20,
            within: Duration::from_secs(600),
        };
        let expected = Config {
            enabled: true,
            oom: false,
            oom_threshold: OomThreshold::Percent(5),
            oom_exit_code: None,
            trigger_size: 0,
            trigger_step: 7,
            trigger_slope: Some(slope),
            trigger_pause: Duration::from_secs(3600),
            trigger_keep: 0,
            sigusr2: true,
            ..Config::default()
        };
        assert_eq!(config.unwrap(), expected);
        let watch = expected.watch().unwrap();
        assert_eq!((watch.size, watch.step), (None, Some(7)));
    }

    #[test]
    fn a_bad_value_is_named_with_its_variable_and_what_is_allowed() {
        for (variable, value) in [
            ("MEMRAY_PROFILER_OOM", "maybe"),
            ("MEMRAY_PROFILER_OOM_THRESHOLD", "101 %"),
            ("MEMRAY_PROFILER_OOM_THRESHOLD", "-5"),
            ("MEMRAY_PROFILER_OOM_EXIT_CODE", "0"),
            ("MEMRAY_PROFILER_OOM_EXIT_CODE", "256"),
            ("MEMRAY_PROFILER_OOM_EXIT_CODE", "x"),
            ("MEMRAY_PROFILER_TRIGGER_SLOPE", "100MiB"),
            ("MEMRAY_PROFILER_TRIGGER_SLOPE", "100MiB/99999999999h"),
            ("MEMRAY_PROFILER_TRIGGER_PAUSE", "soon"),
            ("MEMRAY_PROFILER_TRIGGER_KEEP", "101"),
            ("MEMRAY_PROFILER_SIGUSR2", "2"),
        ] {
            let error = read(&[(variable, value)]).unwrap_err();
            assert_eq!((error.setting(), error.value()), (variable, value));
        }
    }
}
