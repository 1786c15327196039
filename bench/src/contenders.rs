//! The contenders: heapray in each of its ways, and its peers, how each is switched on, and which are missing here.

use std::path::{Path, PathBuf};
use std::process::Command;

use heapray_bench_workloads::Result;

use crate::machine::first_line;
use crate::programs::Programs;

/// Profiler in one of its settings, in one program.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    pub(crate) id: &'static str,
    pub(crate) title: String,
    /// The contender without a profiler that it is compared with.
    pub(crate) against: &'static str,
    /// Version of the profiler.
    pub(crate) version: String,
    /// Program that is run.
    pub(crate) program: PathBuf,
    pub(crate) setup: Setup,
}

/// Way in which a program is profiled.
#[derive(Debug, Clone)]
pub(crate) enum Setup {
    /// Environment variables; `@` stands for the run's directory, `{sink}` and `{interval}` for where to push profiles to and
    /// how often, in seconds.
    Variables(Vec<(&'static str, String)>),
    /// Preloaded, with its interpreter and zstd at the other end of a pipe, as in its own script.
    Heaptrack(HeaptrackFiles),
    /// Called by Python, without and with memray.
    Python { python: PathBuf, memray: bool },
}

impl Contender {
    /// Returns the contender with `values` in its variables, instead of their names.
    pub(crate) fn with(&self, values: &[(&str, String)]) -> Contender {
        let mut contender = self.clone();
        if let Setup::Variables(variables) = &mut contender.setup {
            for (_, variable) in variables {
                for (name, value) in values {
                    *variable = variable.replace(name, value);
                }
            }
        }
        contender
    }

    /// Returns the contender with one more variable.
    pub(crate) fn also(&self, name: &'static str, value: &str) -> Contender {
        let mut contender = self.clone();
        if let Setup::Variables(variables) = &mut contender.setup {
            variables.push((name, value.to_owned()));
        }
        contender
    }

    /// Returns whether it pushes profiles.
    pub(crate) fn pushes(&self) -> bool {
        matches!(&self.setup, Setup::Variables(variables)
            if variables.iter().any(|(_, value)| value.contains("{sink}")))
    }
}

/// Files of an installed heaptrack.
#[derive(Debug, Clone)]
pub(crate) struct HeaptrackFiles {
    pub(crate) library: PathBuf,
    /// `None` if it cannot be used for a Rust program: 1.4 takes all available memory to read debug information.
    pub(crate) interpreter: Option<PathBuf>,
    pub(crate) print: PathBuf,
}

/// Returns the contenders that can be measured here, and notes about the others.
pub(crate) fn all(programs: &Programs) -> Result<(Vec<Contender>, Vec<String>)> {
    let mut all = Vec::new();
    let mut missing = Vec::new();
    heapray(programs, &mut all);
    match &programs.peers {
        Some(peers) => linked(peers, &mut all, &mut missing)?,
        None => missing.push("heapscope, dhat, jemalloc: bench/peers could not be built".into()),
    }
    heaptracks(programs, &mut all, &mut missing);
    bytehound(programs, &mut all, &mut missing);
    if let Some(peers) = &programs.peers {
        gperftools(peers, &mut all, &mut missing);
        memray(peers, &mut all, &mut missing);
    }
    Ok((all, missing))
}

fn heapray(programs: &Programs, all: &mut Vec<Contender>) {
    let version = first_line("git", &["describe", "--always", "--dirty"]);
    let on = |more: &[(&'static str, &str)]| {
        let mut variables = vec![
            ("MEMRAY_PROFILER", "true".to_owned()),
            ("MEMRAY_PROFILER_DIR", "@".to_owned()),
        ];
        variables.extend(more.iter().map(|&(name, value)| (name, value.to_owned())));
        variables
    };
    let no_log = on(&[("MEMRAY_PROFILER_LOG_LIMIT", "0")]);
    let stopped = on(&[("HEAPRAY_BENCH_STOPPED", "1")]);
    let sampling = on(&[("MEMRAY_PROFILER_SAMPLE", "512KiB")]);
    let by_route = ("MEMRAY_PROFILER_BY_ROUTE", "true");
    let every_by_route = on(&[by_route]);
    let sampling_by_route = on(&[("MEMRAY_PROFILER_SAMPLE", "512KiB"), by_route]);
    let continuous = on(&[("MEMRAY_PROFILER_CONTINUOUS", "true")]);
    let pushing = on(&[
        ("MEMRAY_PROFILER_CONTINUOUS", "true"),
        ("MEMRAY_PROFILER_PUSH", "pyroscope+http://{sink}"),
        ("MEMRAY_PROFILER_PUSH_INTERVAL", "{interval}"),
    ]);
    let ways = [
        ("off", "got", "unprofiled", Vec::new()),
        ("stopped", "got", "heapray, stopped", stopped.clone()),
        ("got", "got", "heapray, every allocation", on(&[])),
        (
            "got-no-log",
            "got",
            "heapray, every allocation, no event log",
            no_log.clone(),
        ),
        (
            "got-sampling",
            "got",
            "heapray, sampling at 512 KiB",
            sampling.clone(),
        ),
        (
            "got-by-route",
            "got",
            "heapray, every allocation, by route",
            every_by_route,
        ),
        (
            "got-sampling-by-route",
            "got",
            "heapray, sampling at 512 KiB, by route",
            sampling_by_route,
        ),
        (
            "got-continuous",
            "got",
            "heapray, in the background",
            continuous,
        ),
        (
            "got-pushing",
            "got",
            "heapray, in the background, pushing",
            pushing,
        ),
        (
            "global-off",
            "global",
            "unprofiled, with the wrapper `Alloc`",
            Vec::new(),
        ),
        (
            "global-stopped",
            "global",
            "heapray `global`, stopped",
            stopped,
        ),
        (
            "global",
            "global",
            "heapray `global`, every allocation",
            on(&[]),
        ),
        (
            "global-no-log",
            "global",
            "heapray `global`, every allocation, no event log",
            no_log,
        ),
        (
            "global-sampling",
            "global",
            "heapray `global`, sampling at 512 KiB",
            sampling,
        ),
    ];
    for (id, way, title, variables) in ways {
        all.push(Contender {
            id,
            title: title.into(),
            // The wrapper's cost is heapray's in any state, so all are compared with a program without it.
            against: "off",
            version: version.clone(),
            program: programs.subject.join(format!("subject-{way}")),
            setup: Setup::Variables(variables),
        });
    }
}

fn linked(peers: &Path, all: &mut Vec<Contender>, missing: &mut Vec<String>) -> Result<()> {
    let lock =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/Cargo.lock"))?;
    let locked = |name: &str| {
        let after = lock.split_once(&format!("name = \"{name}\"\nversion = \""));
        let version = after.and_then(|(_, rest)| rest.split_once('"'));
        version.map_or(String::new(), |(version, _)| version.to_owned())
    };
    let one = |name: &'static str, value: &str| vec![(name, value.to_owned())];
    // Sampling: jemalloc's default, 512 KiB.
    let sampling = "prof:true,lg_prof_sample:19,prof_accum:true";
    let every = "prof:true,lg_prof_sample:0,prof_accum:true";
    // What pyroscope-rs asks for.
    let live = "prof:true,prof_active:true,lg_prof_sample:19";
    let pushing = vec![
        ("MALLOC_CONF", live.to_owned()),
        ("HEAPRAY_BENCH_PUSH", "http://{sink}".to_owned()),
        ("HEAPRAY_BENCH_PUSH_INTERVAL", "{interval}".to_owned()),
    ];
    let list = [
        (
            "plain",
            "plain",
            "unprofiled, frame pointers",
            "plain",
            "",
            Vec::new(),
        ),
        (
            "heapscope",
            "heapscope",
            "heapscope, every allocation",
            "plain",
            "heapscope",
            Vec::new(),
        ),
        (
            "heapscope-sampling",
            "heapscope",
            "heapscope, sampling at 512 KiB",
            "plain",
            "heapscope",
            one("HEAPSCOPE_SAMPLE", "524288"),
        ),
        (
            "dhat",
            "dhat",
            "dhat, every allocation",
            "plain",
            "dhat",
            one("DHAT_FILE", "@/dhat.json"),
        ),
        (
            "counters",
            "counters",
            "stats_alloc, shared counters alone, no stacks",
            "plain",
            "stats_alloc",
            Vec::new(),
        ),
        (
            "jemalloc-off",
            "jemalloc",
            "jemalloc, unprofiled",
            "jemalloc-off",
            "tikv-jemallocator",
            one("MALLOC_CONF", "prof:false"),
        ),
        (
            "jemalloc-sampling",
            "jemalloc",
            "jemalloc, sampling at 512 KiB",
            "jemalloc-off",
            "tikv-jemallocator",
            one("MALLOC_CONF", sampling),
        ),
        (
            "jemalloc-every",
            "jemalloc",
            "jemalloc, every allocation",
            "jemalloc-off",
            "tikv-jemallocator",
            one("MALLOC_CONF", every),
        ),
        (
            "jemalloc-live",
            "jemalloc",
            "jemalloc, sampling at 512 KiB, live blocks only",
            "jemalloc-off",
            "tikv-jemallocator",
            one("MALLOC_CONF", live),
        ),
        (
            "pyroscope-rs",
            "pyroscope",
            "pyroscope-rs with jemalloc, pushing",
            "jemalloc-off",
            "pyroscope",
            pushing,
        ),
    ];
    for (id, program, title, against, package, variables) in list {
        let program = peers.join(program);
        if !program.exists() {
            missing.push(format!("{id}: {} could not be built", program.display()));
            continue;
        }
        all.push(Contender {
            id,
            title: title.into(),
            against,
            version: locked(package),
            program,
            setup: Setup::Variables(variables),
        });
    }
    Ok(())
}

fn heaptracks(programs: &Programs, all: &mut Vec<Contender>, missing: &mut Vec<String>) {
    let other = std::env::var_os("HEAPRAY_BENCH_HEAPTRACK").map(PathBuf::from);
    let installed = [
        ("heaptrack", Some(PathBuf::from("/usr"))),
        ("heaptrack-other", other),
    ];
    for (id, prefix) in installed {
        let Some(prefix) = prefix else {
            missing.push(format!(
                "{id}: HEAPRAY_BENCH_HEAPTRACK is not set to where it is installed"
            ));
            continue;
        };
        let library = prefix.join("lib/heaptrack/libheaptrack_preload.so");
        if !library.exists() {
            missing.push(format!(
                "{id}: no {} (apt-get install heaptrack)",
                library.display()
            ));
            continue;
        }
        let print = prefix.join("bin/heaptrack_print");
        let version = first_line(&print.to_string_lossy(), &["--version"]);
        let version = version.replace("heaptrack_print ", "");
        let is_old = ["1.0", "1.1", "1.2", "1.3", "1.4"]
            .iter()
            .any(|old| version.starts_with(old));
        all.push(Contender {
            id,
            title: format!("heaptrack {version}{}", if is_old { ", raw" } else { "" }),
            against: "off",
            version,
            program: programs.subject.join("subject-got"),
            setup: Setup::Heaptrack(HeaptrackFiles {
                interpreter: (!is_old)
                    .then(|| prefix.join("lib/heaptrack/libexec/heaptrack_interpret")),
                library,
                print,
            }),
        });
    }
}

fn bytehound(programs: &Programs, all: &mut Vec<Contender>, missing: &mut Vec<String>) {
    let Some(library) = std::env::var_os("HEAPRAY_BENCH_BYTEHOUND").map(PathBuf::from) else {
        missing.push("bytehound: HEAPRAY_BENCH_BYTEHOUND is not set to its libbytehound.so".into());
        return;
    };
    all.push(Contender {
        id: "bytehound",
        title: "bytehound, every allocation".into(),
        against: "off",
        version: "0.11.0".into(),
        program: programs.subject.join("subject-got"),
        setup: Setup::Variables(vec![
            ("LD_PRELOAD", library.display().to_string()),
            ("MEMORY_PROFILER_OUTPUT", "@/bytehound.dat".into()),
            ("MEMORY_PROFILER_LOG", "off".into()),
        ]),
    });
}

fn gperftools(peers: &Path, all: &mut Vec<Contender>, missing: &mut Vec<String>) {
    let library = "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4";
    if !Path::new(library).exists() {
        missing.push(format!(
            "gperftools: no {library} (apt-get install libgoogle-perftools-dev)"
        ));
        return;
    }
    let version = first_line(
        "dpkg-query",
        &["-W", "-f", "${Version}", "libgoogle-perftools4"],
    );
    let preloaded = || vec![("LD_PRELOAD", library.to_owned())];
    // One dump at the end; by default there are more, which cost time.
    let profiled = || {
        let mut variables = preloaded();
        for (name, value) in [
            ("HEAPPROFILE", "@/gperftools"),
            ("HEAP_PROFILE_ALLOCATION_INTERVAL", "0"),
            ("HEAP_PROFILE_INUSE_INTERVAL", "0"),
        ] {
            variables.push((name, value.to_owned()));
        }
        variables
    };
    let mut frame_pointers = profiled();
    frame_pointers.push(("TCMALLOC_STACKTRACE_METHOD", "generic_fp".into()));
    for (id, title, variables) in [
        ("tcmalloc", "tcmalloc, unprofiled", preloaded()),
        ("gperftools", "gperftools, every allocation", profiled()),
        (
            "gperftools-fp",
            "gperftools with `generic_fp`, no stacks",
            frame_pointers,
        ),
    ] {
        all.push(Contender {
            id,
            title: title.into(),
            against: "tcmalloc",
            version: version.clone(),
            program: peers.join("plain"),
            setup: Setup::Variables(variables),
        });
    }
}

fn memray(peers: &Path, all: &mut Vec<Contender>, missing: &mut Vec<String>) {
    let python = std::env::var_os("HEAPRAY_BENCH_PYTHON").map_or_else(
        || peers.join("../../tools/python/bin/python"),
        PathBuf::from,
    );
    let asked = Command::new(&python)
        .args(["-c", "import memray; print(memray.__version__)"])
        .output();
    let version = match asked {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => {
            missing.push(format!(
                "memray: {} has none (scripts/install-test-tools, or HEAPRAY_BENCH_PYTHON)",
                python.display()
            ));
            return;
        }
    };
    for (id, title, memray) in [
        ("python", "Python, unprofiled", false),
        ("memray", "memray `--native`", true),
    ] {
        all.push(Contender {
            id,
            title: title.into(),
            against: "python",
            version: version.clone(),
            program: peers.join("libheapray_bench_python.so"),
            setup: Setup::Python {
                python: python.clone(),
                memray,
            },
        });
    }
}
