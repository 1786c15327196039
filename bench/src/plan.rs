//! The plan: each workload with its parameters.

use heapray_bench_workloads::Options;

/// The workload `server`, for long enough to push profiles.
pub(crate) const ALWAYS_ON: &str = "always-on";
/// Its contenders besides the unprofiled programs. They have no part in other cases: what is different about them takes
/// tens of seconds to show.
const ALWAYS_ON_CONTENDERS: [&str; 4] = [
    "got-continuous",
    "got-pushing",
    "jemalloc-live",
    "pyroscope-rs",
];

/// The workload `pairs` on ever more threads.
pub(crate) const CROWD: &str = "crowd";
/// Contenders in the workloads that show how the cost grows with one quantity: some sizes take the others minutes.
const SCALE_CONTENDERS: [&str; 7] = [
    "off",
    "got",
    "got-sampling",
    "plain",
    "heapscope",
    "heaptrack",
    "heaptrack-other",
];

/// Words for a measured program that makes a report at its end.
const FINISH: [&str; 1] = ["finish"];
/// The same for one that also measures the memory of that.
const FINISH_WATCHED: [&str; 2] = ["finish", "watch=1"];

/// Contenders that record by route, which only a service has.
const BY_ROUTE: [&str; 2] = ["got-by-route", "got-sampling-by-route"];

/// Returns whether a contender has a part in cases of this workload.
pub(crate) fn is_measured(workload: &str, contender: &str) -> bool {
    if BY_ROUTE.contains(&contender) {
        return workload == "server";
    }
    let is_always_on = ALWAYS_ON_CONTENDERS.contains(&contender);
    if workload == ALWAYS_ON {
        is_always_on || ["off", "jemalloc-off"].contains(&contender)
    } else {
        !is_always_on
    }
}

/// Workload with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) workload: &'static str,
    pub(crate) parameters: Vec<(&'static str, String)>,
    /// [`FINISH`] or [`FINISH_WATCHED`], if a report is made at the end, and timed.
    pub(crate) finish: &'static [&'static str],
    /// A contender that has spent this many seconds on it gets no further rounds.
    pub(crate) enough_seconds: f64,
    /// Contenders that have a part in it, if not all have.
    pub(crate) only: Option<&'static [&'static str]>,
}

impl Case {
    fn new(workload: &'static str, parameters: &[(&'static str, &str)]) -> Case {
        let owned = |&(name, value): &(&'static str, &str)| (name, value.to_owned());
        Case {
            workload,
            parameters: parameters.iter().map(owned).collect(),
            finish: &[],
            enough_seconds: 45.0,
            only: None,
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

    /// Returns the service that pushes profiles, loaded for several of them.
    fn always_on(seconds: u64, interval: u64) -> Case {
        let (seconds, interval) = (seconds.to_string(), interval.to_string());
        let mut case = Case::new(ALWAYS_ON, &[("seconds", &seconds), ("interval", &interval)]);
        // Three rounds.
        case.enough_seconds = 100.0;
        case
    }

    /// Returns the cases that show how the cost grows: live blocks, call sites and threads, from few to many.
    fn scale(quick: bool) -> Vec<Case> {
        let largest = |quickly: u32, whole: u32| if quick { quickly } else { whole };
        let powers = |workload, from: u32, to: u32| {
            (from..=to)
                .map(move |power| Case::new(workload, &[("count", &10_u64.pow(power).to_string())]))
        };
        let mut sites: Vec<Case> = powers("sites", 2, largest(5, 6)).collect();
        for case in &mut sites {
            case.finish = &FINISH_WATCHED;
        }
        let threads = [1, 2, 4, 8, 16, 32, 64];
        let crowd = threads.into_iter().map(|threads| {
            let mut case = Case::pairs("warm", 60, threads, largest(50, 100));
            case.workload = CROWD;
            case
        });
        let blocks = powers("blocks", 4, largest(6, 8));
        let mut cases: Vec<Case> = blocks.chain(sites).chain(crowd).collect();
        for case in &mut cases {
            case.only = Some(&SCALE_CONTENDERS);
        }
        cases
    }

    /// Returns whether a contender has a part in it.
    pub(crate) fn has(&self, contender: &str) -> bool {
        self.only.is_none_or(|only| only.contains(&contender))
            && is_measured(self.workload, contender)
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
        live.finish = &FINISH;
        cases.push(live);
        cases.push(Case::new("server", &[("seconds", seconds)]));
        cases.push(if quick {
            Case::always_on(15, 5)
        } else {
            Case::always_on(30, 10)
        });
        cases.push(Case::new("threads", &[("count", threads)]));
        cases.push(Case::new("cpp", &[("threads", "8"), ("words", words)]));
        cases.extend(Case::scale(quick));
        if quick {
            for case in &mut cases {
                case.enough_seconds = case.enough_seconds.min(10.0);
            }
        }
        Plan {
            cases,
            rounds: if quick { 1 } else { 5 },
            instructions: if quick {
                &[("warm", 1), ("warm", 8)]
            } else {
                &[("warm", 1), ("warm", 8), ("cold", 1), ("scattered", 1)]
            },
            check: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALWAYS_ON, CROWD, Plan, is_measured};

    #[test]
    fn sizes_are_measured_for_some_contenders() {
        for workload in ["blocks", "sites", CROWD] {
            let cases = Plan::new(true).cases;
            let case = cases.iter().find(|case| case.workload == workload);
            let case = case.unwrap();
            assert!(case.has("off") && case.has("heapscope"));
            assert!(!case.has("dhat") && !case.has("got-by-route"));
        }
    }

    #[test]
    fn what_is_always_on_is_measured_beside_the_unprofiled_programs_alone() {
        assert!(is_measured(ALWAYS_ON, "off") && is_measured(ALWAYS_ON, "pyroscope-rs"));
        assert!(!is_measured(ALWAYS_ON, "dhat"));
        assert!(is_measured("server", "off") && is_measured("server", "dhat"));
        assert!(!is_measured("server", "pyroscope-rs"));
    }

    #[test]
    fn routes_are_measured_in_the_service_alone() {
        assert!(is_measured("server", "got-by-route"));
        assert!(!is_measured("live", "got-by-route") && !is_measured(ALWAYS_ON, "got-by-route"));
    }
}
