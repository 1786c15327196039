//! The plan: each workload with its parameters.

use heapray_bench_workloads::Options;

/// Workload with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) workload: &'static str,
    pub(crate) parameters: Vec<(&'static str, String)>,
    /// Set if a report is made at the end, and timed.
    pub(crate) finish: bool,
}

impl Case {
    fn new(workload: &'static str, parameters: &[(&'static str, &str)]) -> Case {
        let owned = |&(name, value): &(&'static str, &str)| (name, value.to_owned());
        Case {
            workload,
            parameters: parameters.iter().map(owned).collect(),
            finish: false,
        }
    }

    /// Returns a case with as many pairs of one shape as there is time for.
    fn pairs(shape: &str, depth: u32, threads: u32, ms: u32) -> Case {
        let (depth, threads, ms) = (depth.to_string(), threads.to_string(), ms.to_string());
        Case::new(
            "pairs",
            &[
                ("shape", shape),
                ("depth", &depth),
                ("threads", &threads),
                ("ms", &ms),
            ],
        )
    }

    /// Returns a case with a fixed number of pairs, 60 frames deep.
    pub(crate) fn counted_pairs(shape: &str, threads: u32, count: u64) -> Case {
        let (threads, count) = (threads.to_string(), count.to_string());
        Case::new(
            "pairs",
            &[
                ("shape", shape),
                ("depth", "60"),
                ("threads", &threads),
                ("count", &count),
            ],
        )
    }

    /// Returns the parameters as arguments of the measured program.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let parameters = self.parameters.iter();
        let named = parameters.map(|(name, value)| format!("{name}={value}"));
        std::iter::once(self.workload.to_owned())
            .chain(named)
            .collect()
    }

    /// Returns the key of its runs: all parameters except the time.
    pub(crate) fn key(&self) -> String {
        let kept = |word: &String| !word.starts_with("ms=");
        let words: Vec<String> = self.arguments().into_iter().filter(kept).collect();
        words.join(" ")
    }

    /// Returns the parameters for look-up.
    pub(crate) fn options(&self) -> Options {
        Options::parse(&self.arguments()[1..]).unwrap_or_default()
    }
}

/// All cases.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) cases: Vec<Case>,
    pub(crate) rounds: u32,
    /// A contender that has spent this many seconds on a case gets no further rounds.
    pub(crate) enough_seconds: f64,
    /// Shapes of `pairs` whose instructions are counted, with the number of threads.
    pub(crate) instructions: &'static [(&'static str, u32)],
    pub(crate) check: bool,
}

impl Plan {
    pub(crate) fn new(quick: bool) -> Plan {
        let ms = if quick { 100 } else { 200 };
        let mut cases = Vec::new();
        for shape in ["warm", "cold"] {
            for depth in [10, 30, 60] {
                for threads in [1, 2, 4, 8] {
                    if !quick || (depth == 60 && threads < 4) {
                        cases.push(Case::pairs(shape, depth, threads, ms));
                    }
                }
            }
            cases.push(Case::pairs(shape, 500, 1, ms));
        }
        cases.push(Case::pairs("scattered", 60, 1, ms));
        let (blocks, threads, words, seconds) = if quick {
            ("200000", "10000", "20000", "0.5")
        } else {
            ("2000000", "100000", "200000", "2")
        };
        let mut live = Case::new("live", &[("blocks", blocks)]);
        live.finish = true;
        cases.push(live);
        cases.push(Case::new("server", &[("seconds", seconds)]));
        cases.push(Case::new("threads", &[("count", threads)]));
        cases.push(Case::new("cpp", &[("threads", "8"), ("words", words)]));
        Plan {
            cases,
            rounds: if quick { 1 } else { 5 },
            enough_seconds: if quick { 10.0 } else { 45.0 },
            instructions: if quick {
                &[("warm", 1), ("warm", 8)]
            } else {
                &[("warm", 1), ("warm", 8), ("cold", 1), ("scattered", 1)]
            },
            check: true,
        }
    }
}
