//! Figures for tables and plot, each a comparison with the unprofiled run of the same program.

use std::collections::BTreeMap;

use crate::runs::Runs;

/// The figures of one contender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures<'a> {
    pub(crate) runs: &'a Runs,
    pub(crate) id: &'a str,
    pub(crate) against: &'a str,
}

/// Returns the CPU time of the process and of the peer's helper process.
pub(crate) fn cpu(values: &BTreeMap<String, f64>) -> Option<f64> {
    Some(values.get("cpu_ns")? + values.get("helper_cpu_ns").unwrap_or(&0.0))
}

impl<'a> Figures<'a> {
    pub(crate) fn of(runs: &'a Runs, id: &'a str) -> Figures<'a> {
        let against = runs.about(id).map_or(id, |about| about.against.as_str());
        Figures { runs, id, against }
    }

    pub(crate) fn is_profiled(&self) -> bool {
        self.id != self.against
    }

    /// Returns this contender's median and that of the unprofiled run.
    fn both(
        &self,
        case: &str,
        of: impl Fn(&BTreeMap<String, f64>) -> Option<f64> + Copy,
    ) -> Option<(f64, f64)> {
        let case = self.runs.case(case)?;
        let own = self.runs.median_of(case, self.id, of)?;
        Some((own, self.runs.median_of(case, self.against, of)?))
    }

    pub(crate) fn value(&self, case: &str, name: &str) -> Option<f64> {
        self.runs.median(self.runs.case(case)?, self.id, name)
    }

    /// Returns the median of what `of` makes of a run's values.
    pub(crate) fn median(
        &self,
        case: &str,
        of: impl Fn(&BTreeMap<String, f64>) -> Option<f64>,
    ) -> Option<f64> {
        self.runs.median_of(self.runs.case(case)?, self.id, of)
    }

    /// Returns the time until the page is on disk, of those rounds in which one was made: some peers make one in the first
    /// round only.
    pub(crate) fn until_page(&self, case: &str) -> Option<f64> {
        self.runs
            .median_of(self.runs.case(case)?, self.id, |values| {
                values.get("page_bytes")?;
                values.get("finish_ns").copied()
            })
    }

    /// Returns the ratio of CPU time, including the helper's.
    pub(crate) fn cpu_ratio(&self, case: &str) -> Option<f64> {
        self.both(case, cpu).map(|(own, off)| own / off)
    }

    pub(crate) fn ratio(&self, case: &str, name: &str) -> Option<f64> {
        self.both(case, |values| values.get(name).copied())
            .map(|(own, off)| own / off)
    }

    /// Returns the ratio of what `of` makes of a run's values.
    pub(crate) fn ratio_of(
        &self,
        case: &str,
        of: impl Fn(&BTreeMap<String, f64>) -> Option<f64> + Copy,
    ) -> Option<f64> {
        self.both(case, of).map(|(own, off)| own / off)
    }

    /// Returns the nanoseconds of CPU time per pair.
    pub(crate) fn pair(&self, case: &str) -> Option<f64> {
        self.runs
            .median_of(self.runs.case(case)?, self.id, |values| {
                Some(cpu(values)? / values.get("pairs")?)
            })
    }

    /// Returns the nanoseconds of CPU time that the profiler adds to a pair, on any thread.
    pub(crate) fn added(&self, case: &str) -> Option<f64> {
        self.both(case, |values| Some(cpu(values)? / values.get("pairs")?))
            .map(|(own, off)| own - off)
    }

    /// Returns what the profiler adds to what `of` makes of a run's values.
    pub(crate) fn added_of(
        &self,
        case: &str,
        of: impl Fn(&BTreeMap<String, f64>) -> Option<f64> + Copy,
    ) -> Option<f64> {
        self.both(case, of).map(|(own, off)| own - off)
    }

    /// Returns the part of them on the thread that makes the pairs.
    pub(crate) fn added_on_thread(&self, case: &str) -> Option<f64> {
        self.both(case, |values| {
            Some(values.get("thread_cpu_ns")? / values.get("pairs")?)
        })
        .map(|(own, off)| own - off)
    }

    /// Returns the bytes of memory per live block that the unprofiled run does not have.
    pub(crate) fn bytes_a_block(&self) -> Option<f64> {
        let (own, off) = self.both("live", |values| values.get("rss_live").copied())?;
        Some((own - off) / self.value("live", "blocks")?)
    }
}
