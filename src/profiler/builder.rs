//! Settings from the code.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::control::Core;
use super::recorder::{OnTrigger, Trigger};
use super::{InitError, Profiler, global};
use crate::capture::untracked;
use crate::config::{Config, MemoryChildren, MemoryMetric, MemoryRole, Settings};
use crate::flight_recorder::{Slope, Threshold};
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
    told: Option<OnTrigger>,
}

/// Begins with every setting at its default.
pub fn builder() -> Builder {
    Builder::default()
}

impl Builder {
    /// Whether there is a profiler at all. `MEMRAY_PROFILER`; default false.
    pub fn enabled(mut self, enabled: bool) -> Builder {
        self.settings.enabled = Some(enabled);
        self
    }

    /// Where reports and the event log go. `MEMRAY_PROFILER_DIR`; by default a private directory below the system's
    /// temporary one. It is made if it is missing. Point it to a volume and the reports outlive the container.
    pub fn dir(self, dir: impl Into<PathBuf>) -> Builder {
        self.set(|settings| settings.dir = Some(dir.into()))
    }

    /// Bytes of event log above which a session keeps sums only, so that disk use is bounded.
    /// `MEMRAY_PROFILER_LOG_LIMIT`; default 512 MiB. With 0 there is no event log.
    pub fn log_limit(mut self, bytes: u64) -> Builder {
        self.settings.log_limit = Some(bytes);
        self
    }

    /// Bytes that the profiler's own memory may come to: tables, rings and the making of a report together. Past that,
    /// new call stacks are cut nearer to the root, and sums stay exact; where live blocks alone pass it, recording ends
    /// with a report. `MEMRAY_PROFILER_OVERHEAD_LIMIT`; default a quarter of the container's or the machine's memory, from
    /// 64 MiB to 2 GiB; at least 64 MiB.
    pub fn overhead_limit(self, bytes: u64) -> Builder {
        self.set(|settings| settings.overhead_limit = Some(bytes))
    }

    /// Records samples instead of every allocation: one each so many bytes that are asked for, on average. Light enough
    /// to leave on for good; sizes and counts are estimates then, and reports say how good they are. 512 KiB is a good
    /// choice for a service. `MEMRAY_PROFILER_SAMPLE`; default 0, which records every allocation.
    pub fn sample(mut self, bytes: u64) -> Builder {
        self.settings.sample = Some(bytes);
        self
    }

    /// Reports of finished sessions that are kept at most, the latest ones; the oldest goes first. With 0 there is the
    /// latest session's only, until the next one starts. `MEMRAY_PROFILER_KEEP`; default 5, at most 1000.
    pub fn keep(mut self, reports: u32) -> Builder {
        self.settings.keep = Some(reports);
        self
    }

    /// Bytes that heapray may have on disk in its directory, all in all and over restarts; the event log of a session gets
    /// half of them at most. The report of the present session, in sums, is written in any case.
    /// `MEMRAY_PROFILER_KEEP_BYTES`; default 1 GiB.
    pub fn keep_bytes(mut self, bytes: u64) -> Builder {
        self.settings.keep_bytes = Some(bytes);
        self
    }

    /// Whether a report is written when memory is at its end: a failed allocation, a control group (container), the
    /// machine or the process near its limit. `MEMRAY_PROFILER_OOM`; default true.
    pub fn oom(mut self, watched: bool) -> Builder {
        self.settings.flight.oom = Some(watched);
        self
    }

    /// How little may be left of a limit before such a report is written. `MEMRAY_PROFILER_OOM_THRESHOLD`, a size or a
    /// percentage; default [`Threshold::Usual`].
    pub fn oom_threshold(mut self, threshold: Threshold) -> Builder {
        self.settings.flight.threshold = Some(threshold);
        self
    }

    /// Ends the process with this code, 1 to 255, after such a report; Fil's is 53. Destructors and exit handlers do not
    /// run. `MEMRAY_PROFILER_OOM_EXIT_CODE`; by default the service goes on.
    pub fn oom_exit_code(mut self, code: i32) -> Builder {
        self.settings.flight.exit_code = Some(code);
        self
    }

    /// Writes a report when the heap reaches so many live bytes. `MEMRAY_PROFILER_TRIGGER_SIZE`; default 0, never.
    pub fn trigger_size(mut self, bytes: u64) -> Builder {
        self.settings.flight.size = Some(bytes);
        self
    }

    /// Writes a report each time the heap has grown by so many bytes. `MEMRAY_PROFILER_TRIGGER_STEP`; default 0, never.
    pub fn trigger_step(mut self, bytes: u64) -> Builder {
        self.settings.flight.step = Some(bytes);
        self
    }

    /// Writes a report when the heap has grown by so many bytes within such a time. `MEMRAY_PROFILER_TRIGGER_SLOPE`, such
    /// as `100MiB/10m`; default: never.
    pub fn trigger_slope(mut self, bytes: u64, within: Duration) -> Builder {
        self.settings.flight.slope = Some(Slope { bytes, within });
        self
    }

    /// The least time between two reports for one reason. `MEMRAY_PROFILER_TRIGGER_PAUSE`; default one minute.
    pub fn trigger_pause(mut self, pause: Duration) -> Builder {
        self.settings.flight.pause = Some(pause);
        self
    }

    /// Of reports that were written by themselves, so many of the last and so many of the worst (those with the most
    /// live) are kept. `MEMRAY_PROFILER_TRIGGER_KEEP`; default 3, at most 100.
    pub fn trigger_keep(mut self, reports: u32) -> Builder {
        self.settings.flight.keep = Some(reports);
        self
    }

    /// Writes a report when the process gets `SIGUSR2`, and goes on. A handler that is there already is called too; one
    /// that is set later takes our place. `MEMRAY_PROFILER_SIGUSR2`; default false.
    pub fn sigusr2(mut self, handled: bool) -> Builder {
        self.settings.flight.sigusr2 = Some(handled);
        self
    }

    /// Calls `told` when a report was written by itself, or could not be: on a thread of the profiler's, after the
    /// report is on disk. What it allocates is not recorded. It should not block for long: the next such report waits.
    /// Not called where [`oom_exit_code`](Builder::oom_exit_code) ends the process.
    pub fn on_trigger(mut self, told: impl Fn(&Trigger) + Send + Sync + 'static) -> Builder {
        let _untracked = untracked::enter();
        self.told = Some(OnTrigger(Arc::new(told)));
        self
    }

    /// Where `proc` and `sys` are, for tests of what is read there.
    #[doc(hidden)]
    pub fn system_root(self, root: impl Into<PathBuf>) -> Builder {
        self.set(|settings| settings.flight.root = Some(root.into()))
    }

    /// Where else the profiler is reachable. `MEMRAY_PROFILER_PREFIX`; default `/pub/job/{name}/{version}`, where any
    /// text matches a word in braces. `/` for no prefix.
    pub fn prefix(self, template: impl Into<String>) -> Builder {
        self.set(|settings| settings.prefix = Some(template.into()))
    }

    /// Whether the service's own routes are reachable below the prefix, too: `/pub/job/x/y/admin` is `/admin` then, also to
    /// rules of a proxy or of a layer that know `/admin` only. `MEMRAY_PROFILER_PREFIX_ROUTES`; default false: there are
    /// the profiler's own paths, and nothing else.
    pub fn routes_below_prefix(mut self, reachable: bool) -> Builder {
        self.settings.routes_below_prefix = Some(reachable);
        self
    }

    /// What callers of the endpoints must send as `Authorization: Bearer …`. `MEMRAY_PROFILER_TOKEN`; default: none.
    pub fn token(self, token: impl Into<String>) -> Builder {
        self.set(|settings| settings.token = Some(token.into().into()))
    }

    /// Names under which callers may ask for the profiler, without a port: `profiler.example.com`, `*.example.com` for
    /// all below, `*` for any. Asking under other names is answered with 403, so that a stranger's page cannot have its own name lead here
    /// (DNS rebinding). `MEMRAY_PROFILER_HOSTS`, separated by commas.
    ///
    /// By default none is listed, and names are looked at only where the profiler listens itself
    /// ([`serve`](Profiler::serve)), or where the request tells that its caller is on this machine: by axum's
    /// `ConnectInfo<SocketAddr>`, or a bare `SocketAddr` among its extensions. Addresses, names without a dot, and names that end in `.localhost`,
    /// `.internal`, `.svc` or `.cluster.local` are always good: no stranger can own them. With a
    /// [`token`](Builder::token) names do not matter.
    pub fn hosts<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Builder {
        self.set(|settings| settings.hosts = Some(names.into_iter().map(N::into).collect()))
    }

    /// The service's name in titles and links. `JOB_NAME`; default `JOB_NAME`.
    pub fn job_name(self, name: impl Into<String>) -> Builder {
        self.set(|settings| settings.job_name = Some(name.into()))
    }

    /// The service's version in titles and links. `JOB_VERSION`; default `JOB_VERSION`.
    pub fn job_version(self, version: impl Into<String>) -> Builder {
        self.set(|settings| settings.job_version = Some(version.into()))
    }

    /// Whether the process's memory over time is written to a file, as `mprof run` does it; with or without
    /// [`enabled`](Builder::enabled). `MEMRAY_PROFILER_MEMORY_LOG`; default false, but for a
    /// [worker](MemoryRole::Worker) of PyCOMPSs (`COMPSS_WORKER_PROFILE_PATH` is set).
    pub fn memory_log(mut self, enabled: bool) -> Builder {
        self.settings.memory_log.enabled = Some(enabled);
        self
    }

    /// Where the memory log's file goes; the directory is made if it is missing. `MEMRAY_PROFILER_MEMORY_DIR`, in a
    /// [worker](MemoryRole::Worker) else `COMPSS_WORKER_PROFILE_PATH`; default: the current directory.
    pub fn memory_dir(self, dir: impl Into<PathBuf>) -> Builder {
        self.set(|settings| settings.memory_log.dir = Some(dir.into()))
    }

    /// What this process is to the others of its job: names the memory log's file. `MEMRAY_PROFILER_MEMORY_ROLE` (`main`,
    /// `worker`); default `main`.
    pub fn memory_role(mut self, role: MemoryRole) -> Builder {
        self.settings.memory_log.role = Some(role);
        self
    }

    /// From one reading of the memory log to the next, 10 ms to an hour. `MEMRAY_PROFILER_MEMORY_INTERVAL`, in seconds;
    /// default 0.1.
    pub fn memory_interval(mut self, interval: Duration) -> Builder {
        self.settings.memory_log.interval = Some(interval);
        self
    }

    /// What the memory log tells of child processes. `MEMRAY_PROFILER_MEMORY_CHILDREN` (`none`, `include`, `each`,
    /// `both`); default `each`.
    pub fn memory_children(mut self, children: MemoryChildren) -> Builder {
        self.settings.memory_log.children = Some(children);
        self
    }

    /// How the memory log measures a process. `MEMRAY_PROFILER_MEMORY_METRIC` (`rss`, `pss`, `uss`); default `rss`.
    pub fn memory_metric(mut self, metric: MemoryMetric) -> Builder {
        self.settings.memory_log.metric = Some(metric);
        self
    }

    /// Bytes above which the memory log is thinned out: half as many readings a second then, from its beginning on.
    /// `MEMRAY_PROFILER_MEMORY_LIMIT`; default 64 MiB, at least 64 KiB.
    pub fn memory_limit(mut self, bytes: u64) -> Builder {
        self.settings.memory_log.limit = Some(bytes);
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

    /// Changes the settings untracked: a copy of a text is the profiler's, not the service's.
    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Builder {
        let _untracked = untracked::enter();
        change(&mut self.settings);
        self
    }

    /// What the settings come to. For tests.
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
        let memory_log = Recording::start(config.memory_log.as_ref());
        if !config.enabled {
            return Ok(Profiler {
                core: None,
                memory_log,
            });
        }
        let core = Core::new(config, self.told.clone()).map_err(InitError::Threads)?;
        let core = Arc::new(core);
        core.sweep_and_reclaim();
        Ok(Profiler {
            core: Some(core),
            memory_log,
        })
    }

    pub(super) fn starts(&self) -> bool {
        !self.wait
    }
}
