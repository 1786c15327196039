//! The table of what a profiler costs that is always on and pushes profiles.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::figures::Figures;
use super::tables::{mib, micro, percent, table};
use crate::plan::ALWAYS_ON;
use crate::runs::Runs;

/// Writes the section, if there are runs for it.
pub(super) fn section(runs: &Runs, out: &mut String) {
    let Some(case) = runs.case(ALWAYS_ON) else {
        return;
    };
    let option = |name: &str| {
        case.split(' ')
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or("?")
    };
    let _ = writeln!(
        out,
        "## Always on: what it costs\n\nThe service of `server`, loaded for {} seconds. Profilers that push send a \
         profile each {} seconds to a server on loopback that keeps nothing. The first one is before that time, \
         because it costs more where names are kept for the others. CPU is all of a request: the service's threads, \
         the profiler's, and helper processes that have ended. RSS is the service's, at the end and at its most \
         since the start. Anonymous memory is what no file backs. \
         The CPU time of a profile is that of helper processes and of the profiler's threads, without heapray's \
         collector.\n",
        option("seconds"),
        option("interval"),
    );
    let value = |name: &'static str| move |one: &Figures| one.value(ALWAYS_ON, name);
    let above_none = |name: &'static str| {
        move |one: &Figures| one.value(ALWAYS_ON, name).filter(|&value| value > 0.0)
    };
    let (end, anonymous, most, requests) = (
        value("rss_end"),
        value("rss_anonymous"),
        value("rss_most"),
        value("requests_per_second"),
    );
    let (profiler, children, memory) = (
        above_none("profiler_ns"),
        above_none("children_ns"),
        above_none("children_most"),
    );
    table(
        runs,
        out,
        true,
        &[
            ("requests/s", &|one| {
                requests(one).map(|n| format!("{n:.0}"))
            }),
            ("of unprofiled", &|one| {
                percent(one.ratio(ALWAYS_ON, "requests_per_second"))
            }),
            ("CPU a request", &|one| micro(one.median(ALWAYS_ON, cpu))),
            ("of unprofiled", &|one| {
                percent(one.ratio_of(ALWAYS_ON, cpu))
            }),
            ("of it: profiler's threads", &|one| micro(profiler(one))),
            ("of it: helper processes", &|one| micro(children(one))),
            ("RSS", &|one| mib(end(one))),
            ("of it anonymous", &|one| mib(anonymous(one))),
            ("RSS at its most", &|one| mib(most(one))),
            ("helper's anonymous memory", &|one| mib(memory(one))),
            ("profiles pushed", &|one| {
                one.value(ALWAYS_ON, "pushed").map(|n| format!("{n:.0}"))
            }),
            ("bytes each", &|one| {
                one.value(ALWAYS_ON, "push_bytes")
                    .map(|bytes| format!("{:.0} KiB", bytes / 1024.0))
            }),
            ("CPU each", &|one| {
                one.value(ALWAYS_ON, "push_cpu_ns")
                    .map(|ns| format!("{:.0} ms", ns / 1e6))
            }),
        ],
    );
}

/// Returns all CPU time of a request.
fn cpu(values: &BTreeMap<String, f64>) -> Option<f64> {
    let names = ["service_ns", "profiler_ns", "children_ns"];
    names.iter().map(|name| values.get(*name)).sum()
}

#[cfg(test)]
mod tests {
    use crate::runs::{Run, Runs};

    #[test]
    fn cpu_is_that_of_all_processes_and_pushes_are_shown() {
        let run = |contender: &str, children: f64, pushed: Option<f64>| {
            let mut values = vec![
                ("service_ns", 10_000.0),
                ("profiler_ns", 0.0),
                ("children_ns", children),
                ("requests_per_second", 1000.0),
            ];
            values.extend(pushed.map(|pushed| ("pushed", pushed)));
            let owned = |(name, value): (&str, f64)| (name.to_owned(), value);
            Run {
                case: "always-on seconds=20 interval=10".to_owned(),
                contender: contender.to_owned(),
                round: 0,
                values: values.into_iter().map(owned).collect(),
                failed: None,
            }
        };
        let measured = vec![run("off", 0.0, None), run("peer", 2_500.0, Some(3.0))];
        let runs = Runs::of(&["off", "peer"], measured);
        let mut page = String::new();
        super::section(&runs, &mut page);
        assert!(page.contains("loaded for 20 seconds"), "{page}");
        assert!(page.contains("profile each 10 seconds"), "{page}");
        let row = "| peer | 1000 | 100 % | 12.5 µs | 125 % |  | 2.5 µs |  |  |  |  | 3 |  |  |";
        assert!(page.contains(row), "{page}");
    }
}
