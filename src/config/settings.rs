//! From what the code and the environment say to one checked [`Config`].

use std::ffi::OsString;
use std::path::PathBuf;

use super::{
    ConfigError, FlightConfig, FlightSettings, Hosts, MemoryLogConfig, MemoryLogSettings, Prefix,
    Secret, Token, hosts, overhead, prefix, size, token, truth,
};

/// Everything the profiler was told, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Whether there is a profiler at all. `MEMRAY_PROFILER`, default false.
    pub enabled: bool,
    /// Where reports and the event log go. `MEMRAY_PROFILER_DIR`; by default a private directory below the
    /// system's temporary one.
    pub dir: Option<PathBuf>,
    /// Bytes of event log above which a session keeps sums only. `MEMRAY_PROFILER_LOG_LIMIT`, default 512 MiB.
    pub log_limit: u64,
    /// Bytes that the profiler's own memory may come to, the making of reports included.
    /// `MEMRAY_PROFILER_OVERHEAD_LIMIT`, default a quarter of the process's memory, from 64 MiB to 2 GiB.
    pub overhead_limit: Option<u64>,
    /// Bytes between two samples on average, or 0 to record every allocation. `MEMRAY_PROFILER_SAMPLE`, default 0.
    pub sample: u64,
    /// Reports of finished sessions that are kept at most. `MEMRAY_PROFILER_KEEP`, default 5.
    pub keep: u32,
    /// Bytes that everything on disk in the directory may have together. `MEMRAY_PROFILER_KEEP_BYTES`, default 1 GiB.
    pub keep_bytes: u64,
    /// What the flight recorder does.
    pub flight: FlightConfig,
    /// Where else the profiler is reachable. `MEMRAY_PROFILER_PREFIX`, default [`Prefix::DEFAULT`].
    pub prefix: Prefix,
    /// Whether the service's own routes are reachable there, too. `MEMRAY_PROFILER_PREFIX_ROUTES`, default false.
    pub routes_below_prefix: bool,
    /// What callers of the endpoints must know. `MEMRAY_PROFILER_TOKEN`, default: nothing.
    pub token: Option<Token>,
    /// Names under which callers without a token may ask, whoever they are. `MEMRAY_PROFILER_HOSTS`, default: none are
    /// listed, and only where the profiler listens itself or the caller is on this machine are names looked at.
    pub hosts: Option<Hosts>,
    /// The service's name in titles and links. `JOB_NAME`, default `JOB_NAME` (Racetrack's own placeholder).
    pub job_name: String,
    /// The service's version in titles and links. `JOB_VERSION`, default `JOB_VERSION`.
    pub job_version: String,
    /// The memory log, if there is to be one; it does not need the profiler.
    pub memory_log: Option<MemoryLogConfig>,
}

/// What the code asked for; `None` leaves a setting to the environment or its default.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// See [`Config::enabled`].
    pub enabled: Option<bool>,
    /// See [`Config::dir`].
    pub dir: Option<PathBuf>,
    /// See [`Config::log_limit`].
    pub log_limit: Option<u64>,
    /// See [`Config::overhead_limit`].
    pub overhead_limit: Option<u64>,
    /// See [`Config::sample`].
    pub sample: Option<u64>,
    /// See [`Config::keep`].
    pub keep: Option<u32>,
    /// See [`Config::keep_bytes`].
    pub keep_bytes: Option<u64>,
    /// See [`Config::flight`].
    pub flight: FlightSettings,
    /// See [`Config::prefix`].
    pub prefix: Option<String>,
    /// See [`Config::routes_below_prefix`].
    pub routes_below_prefix: Option<bool>,
    /// See [`Config::token`].
    pub token: Option<Secret>,
    /// See [`Config::hosts`].
    pub hosts: Option<Vec<String>>,
    /// See [`Config::job_name`].
    pub job_name: Option<String>,
    /// See [`Config::job_version`].
    pub job_version: Option<String>,
    /// See [`Config::memory_log`].
    pub memory_log: MemoryLogSettings,
}

/// 512 MiB.
const LOG_LIMIT: u64 = 512 << 20;
const KEEP: u32 = 5;
/// 1 GiB.
const KEEP_BYTES: u64 = 1 << 30;
/// More would make a list that nobody reads, from files that are looked up at every call.
const KEEP_AT_MOST: u32 = 1_000;

impl Settings {
    /// The checked whole, with `variable` looking up the environment.
    ///
    /// Where the profiler is not enabled, nothing else of it is looked at, nor of a memory log that is not: what is off
    /// cannot be wrong.
    ///
    /// # Errors
    ///
    /// The first setting whose value is not allowed.
    pub fn resolve(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Config, ConfigError> {
        let env = Environment(variable);
        let enabled = match env.text("MEMRAY_PROFILER", truth::ALLOWED)? {
            Some(text) => truth::parse(&text)
                .ok_or_else(|| ConfigError::new("MEMRAY_PROFILER", text, truth::ALLOWED))?,
            None => self.enabled.unwrap_or(false),
        };
        let mut config = Config {
            enabled,
            dir: None,
            log_limit: LOG_LIMIT,
            overhead_limit: None,
            sample: 0,
            keep: KEEP,
            keep_bytes: KEEP_BYTES,
            flight: FlightConfig::default(),
            prefix: Prefix::parse(Prefix::DEFAULT).expect("the default prefix is one"),
            routes_below_prefix: false,
            token: None,
            hosts: None,
            job_name: "JOB_NAME".into(),
            job_version: "JOB_VERSION".into(),
            memory_log: self.memory_log.resolve(&env)?,
        };
        if enabled {
            self.fill(&env, &mut config)?;
        }
        Ok(config)
    }

    fn fill<F: Fn(&str) -> Option<OsString>>(
        &self,
        env: &Environment<F>,
        config: &mut Config,
    ) -> Result<(), ConfigError> {
        config.dir = match (env.0)("MEMRAY_PROFILER_DIR") {
            Some(dir) => Some(directory("MEMRAY_PROFILER_DIR", dir.into())?),
            None => self
                .dir
                .clone()
                .map(|dir| directory("Builder::dir", dir))
                .transpose()?,
        };
        config.log_limit = env
            .size("MEMRAY_PROFILER_LOG_LIMIT", self.log_limit)?
            .unwrap_or(LOG_LIMIT);
        const OVERHEAD: &str = "MEMRAY_PROFILER_OVERHEAD_LIMIT";
        let given = self.overhead_limit.map(|bytes| bytes.to_string());
        let method = "Builder::overhead_limit";
        if let Some((setting, text)) = env.or(OVERHEAD, LIMITS, method, given.as_ref())? {
            let bytes = size::parse(&text).filter(|&bytes| bytes >= overhead::LEAST);
            let refused = || ConfigError::new(setting, text, LIMITS);
            config.overhead_limit = Some(bytes.ok_or_else(refused)?);
        }
        config.sample = env
            .size("MEMRAY_PROFILER_SAMPLE", self.sample)?
            .unwrap_or_default();
        config.keep_bytes = env
            .size("MEMRAY_PROFILER_KEEP_BYTES", self.keep_bytes)?
            .unwrap_or(KEEP_BYTES);
        config.flight = self.flight.resolve(env)?;
        let keep = self.keep.map(|keep| keep.to_string());
        if let Some((setting, text)) =
            env.or("MEMRAY_PROFILER_KEEP", KEPT, "Builder::keep", keep.as_ref())?
        {
            let number = text.trim().parse().ok().filter(|&n| n <= KEEP_AT_MOST);
            config.keep = number.ok_or_else(|| ConfigError::new(setting, text, KEPT))?;
        }
        if let Some((setting, text)) = env.or(
            "MEMRAY_PROFILER_PREFIX",
            prefix::ALLOWED,
            "Builder::prefix",
            self.prefix.as_ref(),
        )? {
            config.prefix = Prefix::parse(&text)
                .ok_or_else(|| ConfigError::new(setting, text, prefix::ALLOWED))?;
        }
        config.routes_below_prefix = env
            .parsed(
                "MEMRAY_PROFILER_PREFIX_ROUTES",
                truth::ALLOWED,
                truth::parse,
            )?
            .or(self.routes_below_prefix)
            .unwrap_or_default();
        config.token = self.token(env)?;
        let listed = self.hosts.as_ref().map(|names| names.join(","));
        if let Some((setting, text)) = env.or(
            "MEMRAY_PROFILER_HOSTS",
            hosts::ALLOWED,
            "Builder::hosts",
            listed.as_ref(),
        )? {
            let parsed = Hosts::parse(&text);
            config.hosts =
                Some(parsed.ok_or_else(|| ConfigError::new(setting, text, hosts::ALLOWED))?);
        }
        for (target, variable, method, given) in [
            (
                &mut config.job_name,
                "JOB_NAME",
                "Builder::job_name",
                &self.job_name,
            ),
            (
                &mut config.job_version,
                "JOB_VERSION",
                "Builder::job_version",
                &self.job_version,
            ),
        ] {
            if let Some((setting, text)) = env.or(variable, WORD, method, given.as_ref())?
                && !text.is_empty()
            {
                if text.chars().any(char::is_control) {
                    return Err(ConfigError::new(setting, text, WORD));
                }
                *target = text;
            }
        }
        Ok(())
    }

    /// The token. No error tells its value, whatever is wrong with it.
    fn token<F: Fn(&str) -> Option<OsString>>(
        &self,
        env: &Environment<F>,
    ) -> Result<Option<Token>, ConfigError> {
        let (setting, given) = match (env.0)("MEMRAY_PROFILER_TOKEN") {
            Some(raw) => ("MEMRAY_PROFILER_TOKEN", raw.into_string().ok()),
            None => match &self.token {
                Some(given) => ("Builder::token", Some(given.text().to_owned())),
                None => return Ok(None),
            },
        };
        // A token that is set but empty is a secret that was not mounted; to go on without one would open the
        // door that its owner meant to lock.
        let shown = match given.as_deref() {
            Some("") => "",
            _ => "(hidden)",
        };
        let token = given.as_deref().and_then(Token::parse);
        let refused = || ConfigError::new(setting, shown, token::ALLOWED);
        token.map(Some).ok_or_else(refused)
    }
}

const LIMITS: &str = "a number of bytes from 64 MiB on, such as 256 MiB";
const KEPT: &str = "a whole number from 0 to 1000";
const WORD: &str = "text without control characters";

pub(super) fn directory(setting: &'static str, path: PathBuf) -> Result<PathBuf, ConfigError> {
    if path.as_os_str().is_empty() {
        return Err(ConfigError::new(setting, "", "the path of a directory"));
    }
    Ok(path)
}

pub(super) struct Environment<F>(F);

impl<F: Fn(&str) -> Option<OsString>> Environment<F> {
    pub(super) fn path(&self, variable: &str) -> Option<PathBuf> {
        (self.0)(variable).map(PathBuf::from)
    }

    pub(super) fn text(
        &self,
        variable: &'static str,
        allowed: &'static str,
    ) -> Result<Option<String>, ConfigError> {
        let text = (self.0)(variable).map(OsString::into_string).transpose();
        text.map_err(|raw| ConfigError::new(variable, raw.to_string_lossy(), allowed))
    }

    /// What the variable's text says, if there is one.
    pub(super) fn parsed<T>(
        &self,
        variable: &'static str,
        allowed: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.text(variable, allowed)? else {
            return Ok(None);
        };
        let parsed = parse(&text).map(Some);
        parsed.ok_or_else(|| ConfigError::new(variable, text, allowed))
    }

    /// The variable's size, else what the code said.
    pub(super) fn size(
        &self,
        variable: &'static str,
        given: Option<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        let Some(text) = self.text(variable, size::ALLOWED)? else {
            return Ok(given);
        };
        let size = size::parse(&text);
        size.map(Some)
            .ok_or_else(|| ConfigError::new(variable, text, size::ALLOWED))
    }

    /// The variable's text, else what the code said, each with the name to blame.
    fn or(
        &self,
        variable: &'static str,
        allowed: &'static str,
        method: &'static str,
        given: Option<&String>,
    ) -> Result<Option<(&'static str, String)>, ConfigError> {
        Ok(match self.text(variable, allowed)? {
            Some(text) => Some((variable, text)),
            None => given.map(|text| (method, text.clone())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, ConfigError, Settings};
    use std::ffi::OsString;
    use std::path::PathBuf;

    fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        with(&Settings::default(), variables)
    }

    fn with(settings: &Settings, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        settings.resolve(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn nothing_said_means_not_enabled() {
        assert!(!read(&[]).unwrap().enabled);
        assert!(!read(&[("MEMRAY_PROFILER", "")]).unwrap().enabled);
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let config = read(&[("MEMRAY_PROFILER", "true")]).unwrap();
        assert_eq!((&config.dir, config.overhead_limit), (&None, None));
        assert_eq!((config.log_limit, config.sample), (536_870_912, 0));
        assert_eq!((config.keep, config.keep_bytes), (5, 1_073_741_824));
        assert_eq!(config.prefix.filled("n", "v"), "/pub/job/n/v");
        assert!(!config.routes_below_prefix);
        assert_eq!((config.token, config.hosts), (None, None));
        assert_eq!(
            (config.job_name.as_str(), config.job_version.as_str()),
            ("JOB_NAME", "JOB_VERSION")
        );
    }

    #[test]
    fn every_variable_is_read() {
        let config = read(&[
            ("MEMRAY_PROFILER", "Yes"),
            ("MEMRAY_PROFILER_DIR", "/var/profiles"),
            ("MEMRAY_PROFILER_LOG_LIMIT", "1 GiB"),
            ("MEMRAY_PROFILER_OVERHEAD_LIMIT", "64 MiB"),
            ("MEMRAY_PROFILER_SAMPLE", "512KiB"),
            ("MEMRAY_PROFILER_KEEP", "0"),
            ("MEMRAY_PROFILER_KEEP_BYTES", "2 GB"),
            ("MEMRAY_PROFILER_PREFIX", "/x"),
            ("MEMRAY_PROFILER_PREFIX_ROUTES", "1"),
            ("MEMRAY_PROFILER_TOKEN", "s3cret"),
            ("MEMRAY_PROFILER_HOSTS", "a.example, *.b.example"),
            ("JOB_NAME", "adder"),
            ("JOB_VERSION", "0.1.0"),
        ])
        .unwrap();
        assert!(config.enabled && config.token.is_some());
        assert_eq!(config.dir, Some(PathBuf::from("/var/profiles")));
        assert_eq!((config.log_limit, config.sample), (1 << 30, 512 << 10));
        assert_eq!(config.overhead_limit, Some(64 << 20));
        assert_eq!((config.keep, config.keep_bytes), (0, 2_000_000_000));
        assert_eq!(config.prefix.filled("", ""), "/x");
        assert!(config.routes_below_prefix);
        assert!(config.hosts.unwrap().admit("x.b.example:7000"));
        assert_eq!(config.job_name, "adder");
        assert_eq!(config.job_version, "0.1.0");
    }

    #[test]
    fn the_environment_has_the_last_word_over_the_code() {
        let settings = Settings {
            enabled: Some(true),
            log_limit: Some(1),
            job_name: Some("coded".into()),
            ..Settings::default()
        };
        let config = with(&settings, &[("MEMRAY_PROFILER_LOG_LIMIT", "2")]).unwrap();
        assert!(config.enabled);
        assert_eq!(config.log_limit, 2);
        assert_eq!(config.job_name, "coded");
        assert!(
            !with(&settings, &[("MEMRAY_PROFILER", "0")])
                .unwrap()
                .enabled
        );
    }

    #[test]
    fn a_bad_value_is_named_with_its_variable_and_what_is_allowed() {
        for (variable, value, allowed) in [
            ("MEMRAY_PROFILER", "maybe", "true, t, yes"),
            ("MEMRAY_PROFILER_DIR", "", "the path of a directory"),
            ("MEMRAY_PROFILER_LOG_LIMIT", "lots", "a number of bytes"),
            ("MEMRAY_PROFILER_OVERHEAD_LIMIT", "63 MiB", "from 64 MiB on"),
            ("MEMRAY_PROFILER_SAMPLE", "often", "a number of bytes"),
            ("MEMRAY_PROFILER_KEEP", "1001", "from 0 to 1000"),
            ("MEMRAY_PROFILER_KEEP", "-1", "from 0 to 1000"),
            (
                "MEMRAY_PROFILER_KEEP_BYTES",
                "5 apples",
                "a number of bytes",
            ),
            ("MEMRAY_PROFILER_PREFIX", "job", "/pub/job/{name}/{version}"),
            ("MEMRAY_PROFILER_PREFIX_ROUTES", "some", "true, t, yes"),
            ("MEMRAY_PROFILER_HOSTS", "a:80", "names of hosts"),
            ("JOB_NAME", "a\tb", "without control characters"),
            ("JOB_VERSION", "1\n0", "without control characters"),
        ] {
            let error = read(&[("MEMRAY_PROFILER", "1"), (variable, value)]);
            // The first entry of the two wins in `read`, so MEMRAY_PROFILER itself is asked alone.
            let error = if variable == "MEMRAY_PROFILER" {
                read(&[(variable, value)])
            } else {
                error
            };
            let error = error.unwrap_err();
            assert_eq!((error.setting(), error.value()), (variable, value));
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("{variable} is {value:?}, but must be ")),
                "{text}"
            );
            assert!(text.contains(allowed), "{text}");
        }
    }

    #[test]
    fn a_bad_value_from_the_code_names_the_method() {
        let settings = Settings {
            enabled: Some(true),
            prefix: Some("x".into()),
            ..Settings::default()
        };
        assert_eq!(
            with(&settings, &[]).unwrap_err().setting(),
            "Builder::prefix"
        );
    }

    #[test]
    fn an_empty_token_is_refused_and_a_bad_one_is_not_told() {
        for token in ["", "hunter 2"] {
            let variables = [("MEMRAY_PROFILER", "1"), ("MEMRAY_PROFILER_TOKEN", token)];
            let text = read(&variables).unwrap_err().to_string();
            assert!(
                text.contains("MEMRAY_PROFILER_TOKEN") && !text.contains("hunter"),
                "{text}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_token_is_never_told_whatever_is_wrong_with_it_and_wherever_it_is_from() {
        use std::os::unix::ffi::OsStringExt;
        let told = |error: ConfigError| format!("{error} {error:?} {}", error.value());
        let raw = Settings::default().resolve(|name| match name {
            "MEMRAY_PROFILER" => Some("1".into()),
            "MEMRAY_PROFILER_TOKEN" => Some(OsString::from_vec(b"hunter\xff2".to_vec())),
            _ => None,
        });
        let raw = told(raw.unwrap_err());
        assert!(raw.contains("MEMRAY_PROFILER_TOKEN is "), "{raw}");
        let coded = Settings {
            enabled: Some(true),
            token: Some("hunter 2".to_owned().into()),
            ..Settings::default()
        };
        let error = told(with(&coded, &[]).unwrap_err());
        assert!(error.contains("Builder::token is "), "{error}");
        let good = [
            ("MEMRAY_PROFILER", "1"),
            ("MEMRAY_PROFILER_TOKEN", "hunter2"),
        ];
        let config = format!("{:?}", read(&good).unwrap());
        for text in [raw, error, format!("{coded:?}"), config] {
            assert!(!text.contains("hunter"), "{text}");
        }
    }

    #[test]
    fn what_is_off_cannot_be_wrong() {
        let config = read(&[
            ("MEMRAY_PROFILER", "no"),
            ("MEMRAY_PROFILER_LOG_LIMIT", "lots"),
        ]);
        assert!(!config.unwrap().enabled);
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_not_unicode_is_an_error_not_a_panic() {
        use std::os::unix::ffi::OsStringExt;
        let raw = || OsString::from_vec(vec![b'5', 0xff]);
        let error = Settings::default().resolve(|name| match name {
            "MEMRAY_PROFILER" => Some("1".into()),
            "MEMRAY_PROFILER_LOG_LIMIT" => Some(raw()),
            _ => None,
        });
        assert_eq!(error.unwrap_err().setting(), "MEMRAY_PROFILER_LOG_LIMIT");
        // A directory need not be Unicode.
        let config = Settings::default().resolve(|name| match name {
            "MEMRAY_PROFILER" => Some("1".into()),
            "MEMRAY_PROFILER_DIR" => Some(raw()),
            _ => None,
        });
        assert_eq!(config.unwrap().dir, Some(PathBuf::from(raw())));
    }
}
