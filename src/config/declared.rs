//! Every setting, declared once. To add one, copy an entry.
//!
//! An entry defines the field of [`Config`](super::Config), the environment variable, the method of `Builder` with its
//! documentation, the name in error messages, and the row in `docs/configuration.md` (`UPDATE_EXPECTED=1 cargo test --lib
//! config` rewrites the table). The parts of an entry:
//!
//! - The comment. Its first paragraph is also the meaning in the table, so it has no links.
//! - `fn name(arguments) -> type`: the method of `Builder`, and the field of `Config`.
//! - `given`: the value that the method passes to `values`.
//! - `values`: the allowed values, for the code and for the environment: one of the types that implement
//!   [`Values`](super::Values).
//! - `default`: `Value("…")`, which is parsed like the variable, or `Unset("…")`: the type's own default, described in
//!   words.
//! - `example`: an allowed value.
//!
//! The groups are steps of [`Settings::resolve`](super::Settings::resolve): a group that is off is not read, and cannot be
//! wrong.

/// Passes every setting to the macro `$make`.
macro_rules! every_setting {
    ($make:ident) => { $make! {
        switch {
            /// Whether the profiler is enabled. It records from `init` on.
            fn enabled(enabled: bool) -> bool {
                variable: "MEMRAY_PROFILER",
                given: enabled,
                values: Truth,
                default: Value("false"),
                example: "true",
            }
        }

        profiler {
            /// The directory of reports and the event log. It is made if it is missing. On a volume, reports outlive the
            /// container.
            fn dir(dir: impl Into<PathBuf>) -> Option<PathBuf> {
                variable: "MEMRAY_PROFILER_DIR",
                given: dir.into(),
                values: PathOf("directory"),
                default: Unset("a private directory below the system's temporary one"),
                example: "/var/profiles",
            }

            /// Bytes of the event log. Above this limit a session gives its event log up, and the report has sums only
            /// (memray's aggregated format). With 0 there is no event log.
            fn log_limit(bytes: u64) -> u64 {
                variable: "MEMRAY_PROFILER_LOG_LIMIT",
                given: bytes,
                values: Sizes(0..),
                default: Value("512 MiB"),
                example: "2 GiB",
            }

            /// Bytes of the profiler's own memory: tables, rings and the making of a report together. Above this limit new call
            /// stacks are cut nearer to the root, and sums stay exact. Where live blocks alone exceed it, the event log is given
            /// up; where they exceed it without the log, recording ends with a report.
            fn overhead_limit(bytes: u64) -> Option<u64> {
                variable: "MEMRAY_PROFILER_OVERHEAD_LIMIT",
                given: bytes,
                values: Sizes(overhead::LEAST..),
                default: Unset("a quarter of the container's or the machine's memory, from 64 MiB to 2 GiB"),
                example: "256 MiB",
            }

            /// Whether reports are made and names are looked up in a helper process: this program, started once more, which
            /// ends before its `main` begins. It takes the memory for that with it. If false, or if the system allows no new
            /// process, the service does that work itself, and its allocator keeps some of the memory.
            fn helper(allowed: bool) -> bool {
                variable: "MEMRAY_PROFILER_HELPER",
                given: allowed,
                values: Truth,
                default: Value("true"),
                example: "false",
            }

            /// Bytes between two samples, on average. 0 records every allocation. With samples, sizes and counts are estimates,
            /// and reports say how good they are; 512 KiB is light enough to leave on in a service.
            fn sample(bytes: u64) -> u64 {
                variable: "MEMRAY_PROFILER_SAMPLE",
                given: bytes,
                values: Sizes(0..),
                default: Value("0"),
                example: "512 KiB",
            }

            /// Whether a session runs in the background whenever no other does: one sample each 512 KiB, sums only, no event log.
            /// Metrics, pushed and scraped profiles and the live page are of it. `start` ends it and begins the session that was
            /// asked for; after `stop` another one runs in the background.
            fn continuous(always: bool) -> bool {
                variable: "MEMRAY_PROFILER_CONTINUOUS",
                given: always,
                values: Truth,
                default: Value("false"),
                example: "true",
            }

            /// Crates that are the service's own wherever their sources are: names, and patterns with `*` for any text. By
            /// default these are the crates of the service's workspace and its path dependencies; reports show them first.
            fn own_crates(crates: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
                variable: "MEMRAY_PROFILER_OWN",
                given: crates.into_iter().map(Into::into).collect(),
                values: CratePatterns,
                default: Unset("those of the workspace and path dependencies"),
                example: "shop, shop_*",
            }

            /// File of the call sites that are known, such as a cache of known size: reports list them apart, and neither rank
            /// them as leaks nor give advice about them. It is read once, at the start.
            fn known_sites(file: impl Into<PathBuf>) -> Option<PathBuf> {
                variable: "MEMRAY_PROFILER_KNOWN",
                given: file.into(),
                values: PathOf("file"),
                default: Unset("`heapray-known.toml` in the working directory, if there is one"),
                example: "/etc/shop/heapray-known.toml",
            }

            /// Address of the service's sources: reports link each line of its own code to it. `{file}` is the path from the
            /// directory in which the service was compiled, usually the repository's. Lines of packages from crates.io and of
            /// Rust's own library are linked without it.
            fn source_url(template: impl Into<String>) -> String {
                variable: "MEMRAY_PROFILER_SOURCE_URL",
                given: template.into(),
                values: SourceUrls,
                default: Unset("no links to own code"),
                example: "https://github.com/acme/shop/blob/{commit}/{file}#L{line}",
            }

            /// The commit of the sources that the service was built from: `{commit}` in their address.
            fn commit(commit: impl Into<String>) -> String {
                variable: "MEMRAY_PROFILER_COMMIT",
                given: commit.into(),
                values: Commits,
                default: Value("HEAD"),
                example: "9d61259",
            }

            /// Number of reports of finished sessions that are kept; the oldest is deleted first. With 0 only the latest
            /// session's report is kept, until the next session starts.
            fn keep(reports: u32) -> u32 {
                variable: "MEMRAY_PROFILER_KEEP",
                given: reports,
                // A larger number would make a list that nobody reads, of files that are looked up at every call.
                values: WholeNumbers(0..=1000_u32),
                default: Value("5"),
                example: "20",
            }

            /// Bytes that heapray may use on disk in its directory, in total and over restarts. The event log of a session
            /// gets half of them at most. The report of the present session, in sums, is written in any case. Profiles that
            /// wait to be pushed have a limit of their own.
            fn keep_bytes(bytes: u64) -> u64 {
                variable: "MEMRAY_PROFILER_KEEP_BYTES",
                given: bytes,
                values: Sizes(0..),
                default: Value("1 GiB"),
                example: "768 MiB",
            }

            /// Whether a report is written when memory is nearly used up: after a failed allocation, or when the control
            /// group (container), the machine or the process is near its limit.
            fn oom(watched: bool) -> bool {
                variable: "MEMRAY_PROFILER_OOM",
                given: watched,
                values: Truth,
                default: Value("true"),
                example: "false",
            }

            /// Remaining memory of a limit below which such a report is written: bytes, or a percentage of the limit.
            fn oom_threshold(threshold: OomThreshold) -> OomThreshold {
                variable: "MEMRAY_PROFILER_OOM_THRESHOLD",
                given: threshold,
                values: Thresholds,
                default: Unset("100 MiB or 2 %, whichever is more, but at most an eighth of the limit"),
                example: "5 %",
            }

            /// Ends the process with this code after such a report (Fil's code is 53). Destructors and exit handlers do not run.
            fn oom_exit_code(code: i32) -> Option<i32> {
                variable: "MEMRAY_PROFILER_OOM_EXIT_CODE",
                given: code,
                values: OrEmpty(WholeNumbers(1..=255)),
                default: Unset("the service goes on"),
                example: "53",
            }

            /// Live bytes at which a report is written; 0 for never.
            fn trigger_size(bytes: u64) -> u64 {
                variable: "MEMRAY_PROFILER_TRIGGER_SIZE",
                given: bytes,
                values: Sizes(0..),
                default: Value("0"),
                example: "3 GiB",
            }

            /// Bytes of growth after which a report is written, counted from the last such report or from the lowest point after
            /// it; 0 for never.
            fn trigger_step(bytes: u64) -> u64 {
                variable: "MEMRAY_PROFILER_TRIGGER_STEP",
                given: bytes,
                values: Sizes(0..),
                default: Value("0"),
                example: "512 MiB",
            }

            /// Growth within a time after which a report is written; 0 for never.
            fn trigger_slope(bytes: u64, within: Duration) -> Option<Slope> {
                variable: "MEMRAY_PROFILER_TRIGGER_SLOPE",
                given: Slope { bytes, within },
                values: Slopes,
                default: Value("0"),
                example: "100 MiB/10m",
            }

            /// Shortest time between two reports for the same reason.
            fn trigger_pause(pause: Duration) -> Duration {
                variable: "MEMRAY_PROFILER_TRIGGER_PAUSE",
                given: pause,
                values: Times,
                default: Value("60 s"),
                example: "10m",
            }

            /// Number of reports that the profiler wrote by itself and that are kept: so many of the latest, and so many of
            /// the largest (those with the most live bytes).
            fn trigger_keep(reports: u32) -> u32 {
                variable: "MEMRAY_PROFILER_TRIGGER_KEEP",
                given: reports,
                values: WholeNumbers(0..=100_u32),
                default: Value("3"),
                example: "5",
            }

            /// Whether a report is written when the process gets `SIGUSR2`; recording goes on. A handler that is set before
            /// is called too; a handler that is set later replaces the profiler's.
            fn sigusr2(handled: bool) -> bool {
                variable: "MEMRAY_PROFILER_SIGUSR2",
                given: handled,
                values: Truth,
                default: Value("false"),
                example: "true",
            }

            /// Whether the profiler answers below `/debug/pprof`, where services in Go have their profiles: `heap`, `allocs`,
            /// `delta_heap`, `cmdline` and `symbol`. The service's own routes there come first.
            fn debug_pprof(answered: bool) -> bool {
                variable: "MEMRAY_PROFILER_DEBUG_PPROF",
                given: answered,
                values: Truth,
                default: Value("true"),
                example: "false",
            }

            /// Whether `mount` puts each request into the context of its route, as the layer `by_route` does, so that reports
            /// show memory by route.
            fn by_route(recorded: bool) -> bool {
                variable: "MEMRAY_PROFILER_BY_ROUTE",
                given: recorded,
                values: Truth,
                default: Value("false"),
                example: "true",
            }

            /// How much of the names of its code the service looks up: nothing (`off`), functions by the tables of symbols
            /// (`functions`), or files, lines and inlined calls as well (`lines`). `heapray symbolize` adds what is missing.
            fn symbols(looked_up: SymbolMode) -> SymbolMode {
                variable: "MEMRAY_PROFILER_SYMBOLS",
                given: looked_up,
                values: Words(&[
                    ("off", SymbolMode::Off),
                    ("functions", SymbolMode::Functions),
                    ("lines", SymbolMode::Lines),
                ]),
                default: Value("lines"),
                example: "off",
            }

            /// Number of contexts at one time. Those that hold no memory make room for new ones; without room, the values of
            /// new ones are counted as `other`. Each costs a few hundred bytes, and some 100 more for each of its call sites.
            fn contexts(most: u32) -> u32 {
                variable: "MEMRAY_PROFILER_CONTEXTS",
                given: most,
                values: WholeNumbers(1..=65_536_u32),
                default: Value("4096"),
                example: "20000",
            }

            /// Profile store that gets a profile of the running session again and again, over HTTP: Pyroscope's `Push`, Parca's
            /// `WriteRaw`, or OpenTelemetry's profiles (experimental). Needs the feature `push`. Empty for none.
            fn push(target: impl Into<String>) -> Option<PushTarget> {
                variable: "MEMRAY_PROFILER_PUSH",
                given: target.into(),
                values: OrEmpty(PushTargets),
                default: Unset("nothing is pushed"),
                example: "pyroscope+https://profiles.example.com",
            }

            /// Seconds from one pushed profile to the next. A profile that takes much CPU time is made less often: at most a
            /// fiftieth of one processor's time goes into it.
            fn push_interval(interval: Duration) -> Duration {
                variable: "MEMRAY_PROFILER_PUSH_INTERVAL",
                given: interval,
                values: Seconds(Duration::from_secs(1)..=Duration::from_secs(3600)),
                default: Value("15"),
                example: "60",
            }

            /// Bytes of profiles that wait on disk for a server which does not take them; the oldest is dropped first. Those
            /// of a process that has ended are pushed by the next one with the same directory.
            fn push_queue(bytes: u64) -> u64 {
                variable: "MEMRAY_PROFILER_PUSH_QUEUE",
                given: bytes,
                values: Sizes(0..),
                default: Value("32 MiB"),
                example: "100 MiB",
            }

            /// The token that is sent to the profile store as `Authorization: Bearer …`.
            fn push_token(token: impl Into<String>) -> Option<Token> {
                variable: "MEMRAY_PROFILER_PUSH_TOKEN",
                given: token.into(),
                values: Tokens,
                default: Unset("none"),
                example: "c2VjcmV0",
            }

            /// Object storage that gets a copy of each kept report, with what a list shows of it: S3 and what is compatible with it,
            /// Google's, Azure's, or a directory. Needs the feature `store`. Keys are in the variables of the storage's own tools.
            /// Empty for none.
            fn store(target: impl Into<String>) -> Option<StoreTarget> {
                variable: "MEMRAY_PROFILER_STORE",
                given: target.into(),
                values: OrEmpty(StoreTargets),
                default: Unset("reports are on disk only"),
                example: "s3://reports/prod",
            }

            /// The path below which the profiler is reachable a second time. Any text matches a word in braces; `/` means no
            /// such path.
            fn prefix(template: impl Into<String>) -> Prefix {
                variable: "MEMRAY_PROFILER_PREFIX",
                given: template.into(),
                values: Prefixes,
                default: Value("/pub/job/{name}/{version}"),
                example: "/profiles/{name}",
            }

            /// Whether the service's own routes are reachable below the prefix, too: `/pub/job/x/y/admin` then means
            /// `/admin`. A rule of a proxy or a layer for `/admin` alone does not apply to it. If false, only the profiler's
            /// own paths are there.
            fn routes_below_prefix(reachable: bool) -> bool {
                variable: "MEMRAY_PROFILER_PREFIX_ROUTES",
                given: reachable,
                values: Truth,
                default: Value("false"),
                example: "true",
            }

            /// The token that clients of the endpoints must send as `Authorization: Bearer …`; without it the answer is 401.
            fn token(token: impl Into<String>) -> Option<Token> {
                variable: "MEMRAY_PROFILER_TOKEN",
                given: token.into(),
                values: Tokens,
                default: Unset("none"),
                example: "c2VjcmV0",
            }

            /// Host names, without a port, under which clients without a token may call the profiler:
            /// `profiler.example.com`, `*.example.com` for all below it, `*` for any.
            ///
            /// A request under another name is answered with 403, so that a stranger's page cannot point its own name to
            /// this machine (DNS rebinding). By default no name is listed, and names are checked only on the profiler's own
            /// listener ([`serve`](crate::serve())), or if the request says that its client is on this machine: by axum's
            /// `ConnectInfo<SocketAddr>`, or a bare `SocketAddr` among its extensions. Addresses, names without a dot, and
            /// names that end in `.localhost`, `.internal`, `.svc` or `.cluster.local` are always allowed: no stranger can
            /// own them. With a token names do not matter.
            fn hosts(names: impl IntoIterator<Item = impl Into<String>>) -> Option<Hosts> {
                variable: "MEMRAY_PROFILER_HOSTS",
                given: names.into_iter().map(Into::into).collect(),
                values: HostNames,
                default: Unset("only those that no stranger can own"),
                example: "profiler.example.com, *.corp.example",
            }

            /// The service's name in titles and links.
            fn job_name(name: impl Into<String>) -> String {
                variable: "JOB_NAME",
                given: name.into(),
                values: Line { if_empty: "JOB_NAME" },
                default: Value("JOB_NAME"),
                example: "adder",
            }

            /// The service's version in titles and links.
            fn job_version(version: impl Into<String>) -> String {
                variable: "JOB_VERSION",
                given: version.into(),
                values: Line { if_empty: "JOB_VERSION" },
                default: Value("JOB_VERSION"),
                example: "0.1.0",
            }
        }

        memory_switch {
            /// Whether the process's memory over time is written to a file for `mprof` and `heapray memory plot`, with or without
            /// the profiler.
            fn memory_log(enabled: bool) -> Option<bool> {
                variable: "MEMRAY_PROFILER_MEMORY_LOG",
                given: enabled,
                values: Truth,
                default: Unset("false; true in a worker where `COMPSS_WORKER_PROFILE_PATH` is set"),
                example: "true",
            }
        }

        memory_role {
            /// The role of this process in its job. It names the memory log's file.
            fn memory_role(role: MemoryRole) -> MemoryRole {
                variable: "MEMRAY_PROFILER_MEMORY_ROLE",
                given: role,
                values: Words(&[("main", MemoryRole::Main), ("worker", MemoryRole::Worker)]),
                default: Value("main"),
                example: "worker",
            }
        }

        memory {
            /// The directory of the memory log's file. It is made if it is missing. In a worker,
            /// `COMPSS_WORKER_PROFILE_PATH` overrides the default and the code.
            fn memory_dir(dir: impl Into<PathBuf>) -> PathBuf {
                variable: "MEMRAY_PROFILER_MEMORY_DIR",
                given: dir.into(),
                values: PathOf("directory"),
                default: Value("."),
                example: "/var/memory",
            }

            /// Seconds from one reading of the memory log to the next.
            fn memory_interval(interval: Duration) -> Duration {
                variable: "MEMRAY_PROFILER_MEMORY_INTERVAL",
                given: interval,
                values: Seconds(Duration::from_millis(10)..=Duration::from_secs(3600)),
                default: Value("0.1"),
                example: "0.5",
            }

            /// Child processes and their own children in the memory log: left out with `none`. With `include` they count
            /// into `MEM`, as with `mprof run --include-children`. With `each` every child has `CHLD` lines of its own, as
            /// with `--multiprocess`. With `both` it does both, as PyCOMPSs runs it.
            fn memory_children(children: MemoryChildren) -> MemoryChildren {
                variable: "MEMRAY_PROFILER_MEMORY_CHILDREN",
                given: children,
                values: Words(&[
                    ("none", MemoryChildren::None),
                    ("include", MemoryChildren::Include),
                    ("each", MemoryChildren::Each),
                    ("both", MemoryChildren::Both),
                ]),
                default: Value("each"),
                example: "both",
            }

            /// The measure of the memory log: resident memory (`rss`), with each shared page divided by the number of
            /// processes that have it (`pss`), or without shared pages (`uss`).
            fn memory_metric(metric: MemoryMetric) -> MemoryMetric {
                variable: "MEMRAY_PROFILER_MEMORY_METRIC",
                given: metric,
                values: Words(&[
                    ("rss", MemoryMetric::Rss),
                    ("pss", MemoryMetric::Pss),
                    ("uss", MemoryMetric::Uss),
                ]),
                default: Value("rss"),
                example: "pss",
            }

            /// Bytes above which the memory log is thinned out: from its beginning on, it then has half as many readings a
            /// second. 64 MiB are two days at 0.1 s.
            fn memory_limit(bytes: u64) -> u64 {
                variable: "MEMRAY_PROFILER_MEMORY_LIMIT",
                given: bytes,
                // A shorter file would show nothing.
                values: Sizes(64 << 10..),
                default: Value("64 MiB"),
                example: "16 MiB",
            }
        }
    } };
}

pub(crate) use every_setting;
