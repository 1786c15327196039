//! Combines the settings of the code and of the environment into one checked [`Config`].

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::declared::every_setting;
use super::flight::{Slopes, Thresholds};
use super::hosts::HostNames;
use super::own_crates::CratePatterns;
use super::prefix::Prefixes;
use super::push::{Destination, PushTargets};
use super::service::{Names, service};
use super::source_url::{Commits, SourceUrls};
use super::store::StoreTargets;
use super::token::Tokens;
use super::values::{
    Line, OrEmpty, PathOf, Seconds, Sizes, Times, Truth, Values, WholeNumbers, Words,
};
use super::{
    ConfigError, Hosts, MemoryChildren, MemoryMetric, MemoryRole, Prefix, PushTarget, StoreTarget,
    SymbolMode, Token, overhead,
};
use crate::flight_recorder::{OomThreshold, Slope};

/// Expands to a setting's value if neither the code nor the environment gives one.
macro_rules! initial {
    ($values:expr, Value($text:literal)) => {
        $values
            .parse($text)
            .expect("a test parses every default")
            .into()
    };
    ($values:expr, Unset($words:literal)) => {
        Default::default()
    };
}

/// Defines the types of the checked and the requested settings, and the reading of each group.
macro_rules! define {
    ($($group:ident { $(
        $(#[doc = $doc:literal])*
        fn $name:ident($($argument:ident: $argument_type:ty),*) -> $type:ty {
            variable: $variable:literal,
            given: $given:expr,
            values: $values:expr,
            default: $default:ident($default_text:literal),
            example: $example:literal,
        }
    )* })*) => {
        /// Checked settings.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Config {
            $($($(#[doc = $doc])* pub $name: $type,)*)*
            /// Where profiles are pushed to, with what the variables of the protocol say.
            #[cfg_attr(not(feature = "push"), allow(dead_code))]
            pub(crate) destination: Option<Destination>,
            /// What the service is called in an object storage; `None` if nobody has named it.
            #[cfg_attr(not(feature = "store"), allow(dead_code))]
            pub(crate) service: Option<String>,
            /// Directory that has `proc` and `sys`. Not a setting: it differs from `/` in tests only.
            pub(crate) system_root: PathBuf,
        }

        impl Default for Config {
            fn default() -> Config {
                Config {
                    $($($name: initial!($values, $default($default_text)),)*)*
                    destination: None,
                    service: None,
                    system_root: "/".into(),
                }
            }
        }

        /// Settings that the code requested: a value, or the text of a value that is not allowed. `None` leaves a setting to
        /// the environment or its default.
        #[derive(Debug, Clone, Default)]
        pub struct Settings {
            $($($(#[doc = $doc])* pub $name: Option<Result<$type, String>>,)*)*
            /// See [`Config::system_root`].
            pub(crate) system_root: Option<PathBuf>,
        }

        /// Functions that read the settings, one for each group.
        impl Settings {
            /// The variables of all settings.
            pub(super) const VARIABLES: &[&str] = &[$($($variable),*),*];

            $(fn $group<F: Fn(&str) -> Option<OsString>>(
                &self,
                env: &Environment<F>,
                config: &mut Config,
            ) -> Result<(), ConfigError> {
                $(
                    let method = concat!("Builder::", stringify!($name));
                    let found = env.or($variable, &$values, method, self.$name.as_ref())?;
                    if let Some(value) = found {
                        config.$name = value;
                    }
                )*
                Ok(())
            })*
        }
    };
}

every_setting!(define);

impl Settings {
    /// Returns the checked settings. `variable` looks up the environment.
    ///
    /// If the profiler is not enabled, its other settings are not read, and neither are those of a memory log that is off: a
    /// disabled part cannot be misconfigured.
    ///
    /// # Errors
    ///
    /// The first setting whose value is not allowed.
    pub fn resolve(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Config, ConfigError> {
        let env = Environment(variable);
        let mut config = Config::default();
        if let Some(root) = &self.system_root {
            config.system_root.clone_from(root);
        }
        self.switch(&env, &mut config)?;
        self.memory_switch(&env, &mut config)?;
        self.memory_where_wanted(&env, &mut config)?;
        if config.enabled {
            self.profiler(&env, &mut config)?;
            config.destination = destination(&env, &config)?;
            let order = [Names::OpenTelemetry, Names::Pyroscope];
            config.service = service(order, &config.job()[0], |name| env.text(name));
        }
        Ok(config)
    }

    /// Reads the memory log's settings if there is to be one. As with PyCOMPSs, its path alone makes a worker write one. The
    /// path says nothing about other processes.
    fn memory_where_wanted<F: Fn(&str) -> Option<OsString>>(
        &self,
        env: &Environment<F>,
        config: &mut Config,
    ) -> Result<(), ConfigError> {
        const PATH: &str = "COMPSS_WORKER_PROFILE_PATH";
        let path = (env.0)(PATH);
        if !config.memory_log.unwrap_or(path.is_some()) {
            return Ok(());
        }
        self.memory_role(env, config)?;
        let path = path.filter(|_| config.memory_role == MemoryRole::Worker);
        let is_wanted = config.memory_log.unwrap_or(path.is_some());
        config.memory_log = Some(is_wanted);
        if !is_wanted {
            return Ok(());
        }
        self.memory(env, config)?;
        if let Some(path) = path
            && (env.0)("MEMRAY_PROFILER_MEMORY_DIR").is_none()
        {
            let refused = |value| ConfigError::new(PATH, value, PathOf("directory").allowed());
            config.memory_dir = PathOf("directory").read(path).map_err(refused)?;
        }
        Ok(())
    }
}

/// Returns where profiles are pushed to.
fn destination<F: Fn(&str) -> Option<OsString>>(
    env: &Environment<F>,
    config: &Config,
) -> Result<Option<Destination>, ConfigError> {
    let Some(target) = &config.push else {
        return Ok(None);
    };
    let [name, version] = config.job();
    let found = Destination::of(target, [&name, &version], |name| env.text(name));
    let refused = |(variable, value)| {
        let allowed = "the address of a server without a user or a query, such as https://profiles.example.com";
        ConfigError::new(variable, value, allowed.to_owned())
    };
    found.map(Some).map_err(refused)
}

struct Environment<F>(F);

impl<F: Fn(&str) -> Option<OsString>> Environment<F> {
    /// Returns a variable that is text, and not empty.
    fn text(&self, name: &str) -> Option<String> {
        let text = (self.0)(name)?.into_string().ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// Returns the variable's value, or else the code's. An error names the one that the value is from.
    fn or<V: Values, T: From<V::Value> + Clone>(
        &self,
        variable: &'static str,
        values: &V,
        method: &'static str,
        coded: Option<&Result<T, String>>,
    ) -> Result<Option<T>, ConfigError> {
        let (culprit, value) = match ((self.0)(variable), coded) {
            (Some(raw), _) => (variable, values.read(raw).map(T::from)),
            (None, Some(coded)) => (method, coded.clone()),
            (None, None) => return Ok(None),
        };
        let refused = |value| ConfigError::new(culprit, value, values.allowed());
        value.map(Some).map_err(refused)
    }
}

impl Config {
    /// Returns the name and the version of the job, each empty if none is configured: the defaults are placeholders, as
    /// Racetrack has them.
    pub(crate) fn job(&self) -> [String; 2] {
        let [name, version] = [
            (&self.job_name, "JOB_NAME"),
            (&self.job_version, "JOB_VERSION"),
        ]
        .map(|(said, placeholder)| if said == placeholder { "" } else { said });
        [name.to_owned(), version.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, ConfigError, Prefixes, Settings, Tokens, Values as _};
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
        assert_eq!(config.job(), ["", ""]);
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
            ("MEMRAY_PROFILER_OWN", "shop, shop_*"),
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
        assert_eq!(config.job(), ["adder", "0.1.0"]);
        assert!(config.hosts.unwrap().admit("x.b.example:7000"));
        assert_eq!(config.own_crates, ["shop", "shop_*"]);
        assert_eq!(config.job_name, "adder");
        assert_eq!(config.job_version, "0.1.0");
    }

    #[test]
    fn the_environment_has_the_last_word_over_the_code() {
        let settings = Settings {
            enabled: Some(Ok(true)),
            log_limit: Some(Ok(1)),
            job_name: Some(Ok("coded".into())),
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
            // In `read` the first of two entries wins, so MEMRAY_PROFILER itself is tested alone.
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
            enabled: Some(Ok(true)),
            prefix: Some(Prefixes.accept("x".into())),
            ..Settings::default()
        };
        assert_eq!(
            with(&settings, &[]).unwrap_err().setting(),
            "Builder::prefix"
        );
    }

    #[test]
    fn an_empty_token_is_refused_and_a_bad_one_is_not_shown() {
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
    fn a_token_is_never_shown_whatever_is_wrong_with_it_and_wherever_it_is_from() {
        use std::os::unix::ffi::OsStringExt;
        let shown = |error: ConfigError| format!("{error} {error:?} {}", error.value());
        let raw = Settings::default().resolve(|name| match name {
            "MEMRAY_PROFILER" => Some("1".into()),
            "MEMRAY_PROFILER_TOKEN" => Some(OsString::from_vec(b"hunter\xff2".to_vec())),
            _ => None,
        });
        let raw = shown(raw.unwrap_err());
        assert!(raw.contains("MEMRAY_PROFILER_TOKEN is "), "{raw}");
        let coded = Settings {
            enabled: Some(Ok(true)),
            token: Some(Tokens.accept("hunter 2".into()).map(Some)),
            ..Settings::default()
        };
        let error = shown(with(&coded, &[]).unwrap_err());
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
