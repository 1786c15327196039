//! What the flight recorder can be told.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::settings::Environment;
use super::{ConfigError, size, truth};
use crate::flight_recorder::{Slope, Threshold, WatchSettings};

/// Everything the flight recorder was told, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlightConfig {
    /// Whether memory's end is watched for. `MEMRAY_PROFILER_OOM`, default true.
    pub oom: bool,
    /// How little may be left. `MEMRAY_PROFILER_OOM_THRESHOLD`, default [`Threshold::Usual`].
    pub threshold: Threshold,
    /// With what the process ends after such a report, if it is to. `MEMRAY_PROFILER_OOM_EXIT_CODE`, default: it goes on.
    pub exit_code: Option<i32>,
    /// Live bytes at which a report is written. `MEMRAY_PROFILER_TRIGGER_SIZE`, default: none.
    pub size: Option<u64>,
    /// Growth after which one is. `MEMRAY_PROFILER_TRIGGER_STEP`, default: none.
    pub step: Option<u64>,
    /// Growth within a time after which one is. `MEMRAY_PROFILER_TRIGGER_SLOPE`, default: none.
    pub slope: Option<Slope>,
    /// Between two reports for one reason. `MEMRAY_PROFILER_TRIGGER_PAUSE`, default a minute.
    pub pause: Duration,
    /// Of these reports, so many of the last and so many of the worst are kept. `MEMRAY_PROFILER_TRIGGER_KEEP`, default 3.
    pub keep: u32,
    /// Whether `SIGUSR2` has a report written. `MEMRAY_PROFILER_SIGUSR2`, default false.
    pub sigusr2: bool,
    /// Where `proc` and `sys` are.
    pub(crate) root: PathBuf,
}

/// What the code asked for; `None` leaves a setting to the environment or its default.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // each is the field of that name in `FlightConfig`
pub struct FlightSettings {
    pub oom: Option<bool>,
    pub threshold: Option<Threshold>,
    pub exit_code: Option<i32>,
    pub size: Option<u64>,
    pub step: Option<u64>,
    pub slope: Option<Slope>,
    pub pause: Option<Duration>,
    pub keep: Option<u32>,
    pub sigusr2: Option<bool>,
    pub(crate) root: Option<PathBuf>,
}

const KEEP: u32 = 3;
const KEEP_AT_MOST: u32 = 100;
const PAUSE: Duration = Duration::from_secs(60);

const THRESHOLD: &str = "a number of bytes such as 256 MiB, or a part of the limit such as 5 %";
const EXIT_CODE: &str = "a whole number from 1 to 255";
const SLOPE: &str = "a number of bytes and a time, such as 100 MiB/10m";
const TIME: &str = "a whole number of seconds, or with s, m, h or d behind it, such as 10m";
const KEPT: &str = "a whole number from 0 to 100";

impl Default for FlightConfig {
    fn default() -> FlightConfig {
        FlightConfig {
            oom: true,
            threshold: Threshold::Usual,
            exit_code: None,
            size: None,
            step: None,
            slope: None,
            pause: PAUSE,
            keep: KEEP,
            sigusr2: false,
            root: "/".into(),
        }
    }
}

impl FlightConfig {
    /// What a session is watched for; `None` if for nothing.
    pub(crate) fn watch(&self) -> Option<WatchSettings> {
        let grows = self.size.is_some() || self.step.is_some() || self.slope.is_some();
        (self.oom || grows || self.sigusr2).then(|| WatchSettings {
            out_of_memory: self.oom,
            threshold: self.threshold,
            size: self.size,
            step: self.step,
            slope: self.slope,
            pause: self.pause,
            sigusr2: self.sigusr2,
            root: self.root.clone(),
        })
    }
}

impl FlightSettings {
    /// The checked whole.
    pub(super) fn resolve<F: Fn(&str) -> Option<OsString>>(
        &self,
        env: &Environment<F>,
    ) -> Result<FlightConfig, ConfigError> {
        let usual = FlightConfig::default();
        let own = |given: Option<u64>| given.filter(|&bytes| bytes > 0);
        let (size, step) = (
            env.size("MEMRAY_PROFILER_TRIGGER_SIZE", self.size)?,
            env.size("MEMRAY_PROFILER_TRIGGER_STEP", self.step)?,
        );
        let exit_code = |text: &str| match text.trim() {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        };
        let exit_code = env
            .parsed("MEMRAY_PROFILER_OOM_EXIT_CODE", EXIT_CODE, exit_code)?
            .unwrap_or(self.exit_code);
        if let Some(code) = exit_code.filter(|code| !(1..=255).contains(code)) {
            let code = code.to_string();
            return Err(ConfigError::new(
                "MEMRAY_PROFILER_OOM_EXIT_CODE",
                code,
                EXIT_CODE,
            ));
        }
        let keep = env
            .parsed("MEMRAY_PROFILER_TRIGGER_KEEP", KEPT, |text| {
                text.trim().parse().ok()
            })?
            .or(self.keep)
            .unwrap_or(usual.keep);
        if keep > KEEP_AT_MOST {
            let keep = keep.to_string();
            return Err(ConfigError::new("MEMRAY_PROFILER_TRIGGER_KEEP", keep, KEPT));
        }
        let slope = |text: &str| match text.trim() {
            "" | "0" => Some(None),
            text => parse_slope(text).map(Some),
        };
        Ok(FlightConfig {
            oom: env
                .parsed("MEMRAY_PROFILER_OOM", truth::ALLOWED, truth::parse)?
                .or(self.oom)
                .unwrap_or(usual.oom),
            threshold: env
                .parsed("MEMRAY_PROFILER_OOM_THRESHOLD", THRESHOLD, parse_threshold)?
                .or(self.threshold)
                .unwrap_or_default(),
            exit_code,
            size: own(size),
            step: own(step),
            slope: env
                .parsed("MEMRAY_PROFILER_TRIGGER_SLOPE", SLOPE, slope)?
                .unwrap_or(self.slope)
                .filter(|slope| slope.bytes > 0 && !slope.within.is_zero()),
            pause: env
                .parsed("MEMRAY_PROFILER_TRIGGER_PAUSE", TIME, parse_time)?
                .or(self.pause)
                .unwrap_or(usual.pause),
            keep,
            sigusr2: env
                .parsed("MEMRAY_PROFILER_SIGUSR2", truth::ALLOWED, truth::parse)?
                .or(self.sigusr2)
                .unwrap_or(usual.sigusr2),
            root: self.root.clone().unwrap_or(usual.root),
        })
    }
}

fn parse_threshold(text: &str) -> Option<Threshold> {
    let text = text.trim();
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent = percent.trim().parse().ok()?;
            (percent <= 100).then_some(Threshold::Percent(percent))
        }
        None if text.is_empty() => Some(Threshold::Usual),
        None => size::parse(text).map(Threshold::Bytes),
    }
}

fn parse_slope(text: &str) -> Option<Slope> {
    let (bytes, within) = text.split_once('/')?;
    Some(Slope {
        bytes: size::parse(bytes)?,
        within: parse_time(within)?,
    })
}

fn parse_time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let seconds = match text[digits..].trim() {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    // A year is for ever, and no sum of times runs over.
    let seconds = number.checked_mul(seconds)?;
    (seconds <= 366 * 86_400).then_some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn read(variables: &[(&str, &str)]) -> Result<FlightConfig, ConfigError> {
        with(FlightSettings::default(), variables)
    }

    fn with(
        flight: FlightSettings,
        variables: &[(&str, &str)],
    ) -> Result<FlightConfig, ConfigError> {
        let settings = Settings {
            enabled: Some(true),
            flight,
            ..Settings::default()
        };
        let config = settings.resolve(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        });
        config.map(|config| config.flight)
    }

    #[test]
    fn every_variable_is_read_and_has_the_last_word() {
        assert_eq!(read(&[]).unwrap(), FlightConfig::default());
        let given = FlightSettings {
            step: Some(7),
            exit_code: Some(53),
            size: Some(9),
            ..FlightSettings::default()
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
        let expected = FlightConfig {
            oom: false,
            threshold: Threshold::Percent(5),
            exit_code: None,
            size: None,
            step: Some(7),
            slope: Some(slope),
            pause: Duration::from_secs(3600),
            keep: 0,
            sigusr2: true,
            root: "/".into(),
        };
        assert_eq!(config.unwrap(), expected);
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
