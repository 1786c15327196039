//! Settings from the code.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::flight::{OnTrigger, Trigger};
use super::{Error, InitError, Profiler, global};
use crate::announce;
use crate::capture::untracked;
use crate::config::declared::every_setting;
use crate::config::flight::{Slopes, Thresholds};
use crate::config::hosts::HostNames;
use crate::config::overhead;
use crate::config::own_crates::CratePatterns;
use crate::config::prefix::Prefixes;
use crate::config::push::PushTargets;
use crate::config::source_url::{Commits, SourceUrls};
use crate::config::store::StoreTargets;
use crate::config::token::Tokens;
use crate::config::values::{
    Line, OrEmpty, PathOf, Seconds, Sizes, Times, Truth, Values as _, WholeNumbers, Words,
};
use crate::config::{
    Config, MemoryChildren, MemoryMetric, MemoryRole, Settings, SymbolMode, unknown,
};
use crate::contexts;
use crate::flight_recorder::{OomThreshold, Slope};
use crate::memory_log::Recording;

/// Settings from the code. The environment overrides them, so that an operator can change a setting without a rebuild;
/// [`ignore_environment`](Builder::ignore_environment) turns that off.
///
/// ```
/// let profiler = heapray::builder()
///     .log_limit(1 << 30)
///     .job_name("adder")
///     .job_version(env!("CARGO_PKG_VERSION"))
///     .init();
/// # assert!(!profiler.is_enabled());
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until `init`, `try_init` or `build`"]
pub struct Builder {
    settings: Settings,
    ignore_environment: bool,
    wait: bool,
    on_trigger: Option<OnTrigger>,
}

/// Returns a builder with every setting at its default.
pub fn builder() -> Builder {
    Builder::default()
}

/// Makes a method for each setting.
macro_rules! methods {
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
        impl Builder {
            $($(
                $(#[doc = $doc])*
                ///
                #[doc = concat!("Variable: `", $variable, "`, such as `", $example, "`.")]
                #[doc = concat!("Default: ", $default_text, ". [All settings](crate#configuration)")]
                pub fn $name(mut self, $($argument: $argument_type),*) -> Builder {
                    // A copy of a text is the profiler's allocation, not the service's.
                    let _untracked = untracked::enter();
                    self.settings.$name = Some($values.accept($given).map(Into::into));
                    self
                }
            )*)*
        }
    };
}

every_setting!(methods);

impl Builder {
    /// Sets a function that is called after the flight recorder has written a report, or has failed to. It runs on a thread of
    /// the profiler's, and its allocations are not recorded. It should not block for long: the next such report waits for it.
    /// It is not called if [`oom_exit_code`](Builder::oom_exit_code) ends the process.
    pub fn on_trigger(mut self, told: impl Fn(&Trigger) + Send + Sync + 'static) -> Builder {
        let _untracked = untracked::enter();
        self.on_trigger = Some(OnTrigger(Arc::new(told)));
        self
    }

    /// Sets the folder of `proc` and `sys`, for tests of what is read there.
    #[doc(hidden)]
    pub fn system_root(mut self, root: impl Into<PathBuf>) -> Builder {
        let _untracked = untracked::enter();
        self.settings.system_root = Some(root.into());
        self
    }

    /// Makes [`init`](Builder::init) return without recording: the first `start` begins. By default recording has begun. A
    /// session in the background ([`continuous`](Builder::continuous)) begins all the same.
    pub fn wait_for_start(mut self) -> Builder {
        self.wait = true;
        self
    }

    /// Makes the profiler ignore all environment variables.
    pub fn ignore_environment(mut self) -> Builder {
        self.ignore_environment = true;
        self
    }

    /// Returns the settings, checked and with their defaults.
    ///
    /// # Errors
    ///
    /// The first value that is not allowed.
    #[doc(hidden)]
    pub fn config(&self) -> Result<Config, crate::config::ConfigError> {
        let _untracked = untracked::enter();
        self.settings.resolve(|variable| {
            let read = !self.ignore_environment;
            read.then(|| std::env::var_os(variable)).flatten()
        })
    }

    /// Makes the process's profiler, which records if it is enabled. If there is one already, returns that one, whatever its
    /// settings. Never fails: an error is logged, and the profiler stays off.
    pub fn init(self) -> Profiler {
        global::init_with(self)
    }

    /// Does what [`init`](Builder::init) does, but returns an error if something is wrong.
    ///
    /// # Errors
    ///
    /// With a bad setting, or if its threads cannot start, the profiler is off. If recording did not start, the profiler is on
    /// ([`profiler`](crate::profiler())) and its endpoints say why.
    pub fn try_init(self) -> Result<Profiler, InitError> {
        global::try_init_with(self)
    }

    /// Makes a profiler that is not the process's own, for programs that pass it around themselves. Only one in a process can
    /// record at a time.
    ///
    /// # Errors
    ///
    /// Those of [`try_init`](Builder::try_init); there is no profiler then in any case.
    pub fn build(self) -> Result<Profiler, InitError> {
        let _untracked = untracked::enter();
        let profiler = self.assemble()?;
        self.begin(&profiler).map_err(InitError::Start)?;
        Ok(profiler)
    }

    /// Makes a profiler that does not record yet, with its threads, and the memory log.
    pub(super) fn assemble(&self) -> Result<Profiler, InitError> {
        let config = self.config().map_err(InitError::Config)?;
        // Before the first session, so that not even the start of its thread is in a capture.
        let memory_log = Recording::start(config.memory().as_ref());
        if !config.enabled {
            return Ok(Profiler {
                core: None,
                memory_log,
            });
        }
        if !self.ignore_environment {
            let names = std::env::vars_os().map(|(name, _)| name);
            unknown(names).iter().for_each(announce::warn);
        }
        contexts::set_most(config.contexts);
        let core = Core::new(config, self.on_trigger.clone()).map_err(InitError::Threads)?;
        Ok(Profiler {
            core: Some(Arc::new(core)),
            memory_log,
        })
    }

    /// Begins to record, if `profiler` is to. Returns whether it is.
    pub(super) fn begin(&self, profiler: &Profiler) -> Result<bool, Error> {
        let Some(core) = &profiler.core else {
            return Ok(false);
        };
        if core.config().continuous {
            core.lifecycle().start_in_background_blocking()?;
        } else if self.wait {
            return Ok(false);
        } else {
            profiler.start()?;
        }
        Ok(true)
    }
}
