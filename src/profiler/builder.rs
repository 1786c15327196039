//! Settings from the code.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::flight::{OnTrigger, Trigger};
use super::{InitError, Profiler, global};
use crate::capture::untracked;
use crate::config::declared::every_setting;
use crate::config::flight::{Slopes, Thresholds};
use crate::config::hosts::HostNames;
use crate::config::overhead;
use crate::config::prefix::Prefixes;
use crate::config::token::Tokens;
use crate::config::values::{
    Directory, Line, OrEmpty, Seconds, Sizes, Times, Truth, Values as _, WholeNumbers, Words,
};
use crate::config::{Config, MemoryChildren, MemoryMetric, MemoryRole, Settings};
use crate::flight_recorder::{OomThreshold, Slope};
use crate::memory_log::Recording;

/// Settings from the code. Where the environment says something too, it has the last word, so that an operator can
/// change it without a rebuild; [`ignore_environment`](Builder::ignore_environment) turns that off.
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

/// Begins with every setting at its default.
pub fn builder() -> Builder {
    Builder::default()
}

/// A method for each setting.
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
                    // A copy of a text is the profiler's, not the service's.
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
    /// Calls `told` when a report was written by itself, or could not be: on a thread of the profiler's, after the
    /// report is on disk. What it allocates is not recorded. It should not block for long: the next such report waits.
    /// Not called where [`oom_exit_code`](Builder::oom_exit_code) ends the process.
    pub fn on_trigger(mut self, told: impl Fn(&Trigger) + Send + Sync + 'static) -> Builder {
        let _untracked = untracked::enter();
        self.on_trigger = Some(OnTrigger(Arc::new(told)));
        self
    }

    /// Where `proc` and `sys` are, for tests of what is read there.
    #[doc(hidden)]
    pub fn system_root(mut self, root: impl Into<PathBuf>) -> Builder {
        let _untracked = untracked::enter();
        self.settings.system_root = Some(root.into());
        self
    }

    /// Does not record yet when it returns: the first `start` begins. By default recording has begun.
    pub fn wait_for_start(mut self) -> Builder {
        self.wait = true;
        self
    }

    /// Reads no environment variable.
    pub fn ignore_environment(mut self) -> Builder {
        self.ignore_environment = true;
        self
    }

    /// What the settings come to.
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

    /// The process's profiler, recording if it is enabled. Where there is one already, that one, whatever its
    /// settings. Never fails: what is wrong is logged, and the profiler stays off.
    pub fn init(self) -> Profiler {
        global::init_with(self)
    }

    /// As [`init`](Builder::init), but what is wrong comes back as an error.
    ///
    /// # Errors
    ///
    /// A bad setting, or no threads: the profiler is off. Recording did not start: the profiler is there
    /// ([`profiler`](crate::profiler())) and its endpoints say why.
    pub fn try_init(self) -> Result<Profiler, InitError> {
        global::try_init_with(self)
    }

    /// A profiler that is not the process's: for programs that hand it around themselves. Only one in a process can
    /// record at a time.
    ///
    /// # Errors
    ///
    /// Those of [`try_init`](Builder::try_init); without exception there is no profiler then.
    pub fn build(self) -> Result<Profiler, InitError> {
        let _untracked = untracked::enter();
        let profiler = self.assemble()?;
        if profiler.is_enabled() && !self.wait {
            profiler.start().map_err(InitError::Start)?;
        }
        Ok(profiler)
    }

    /// A profiler that does not record yet, with its threads, and the memory log.
    pub(super) fn assemble(&self) -> Result<Profiler, InitError> {
        let config = self.config().map_err(InitError::Config)?;
        // Before the first session, so that not even its thread's birth is in a capture.
        let memory_log = Recording::start(config.memory().as_ref());
        if !config.enabled {
            return Ok(Profiler {
                core: None,
                memory_log,
            });
        }
        let core = Core::new(config, self.on_trigger.clone()).map_err(InitError::Threads)?;
        Ok(Profiler {
            core: Some(Arc::new(core)),
            memory_log,
        })
    }

    pub(super) fn starts(&self) -> bool {
        !self.wait
    }
}
