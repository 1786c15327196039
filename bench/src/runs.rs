//! The measurements as JSON: every run, with the machine and the versions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use heapray_bench_workloads::Result;
use serde::{Deserialize, Serialize};

use crate::contenders::Contender;
use crate::machine::Machine;

/// Measured process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Workload with its parameters.
    pub(crate) case: String,
    pub(crate) contender: String,
    pub(crate) round: u32,
    pub(crate) values: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
}

/// Facts about a contender.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) id: String,
    pub(crate) title: String,
    /// The contender that it is compared with.
    pub(crate) against: String,
    pub(crate) version: String,
}

/// All runs of a benchmark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Runs {
    pub(crate) machine: Machine,
    pub(crate) quick: bool,
    pub(crate) contenders: Vec<About>,
    pub(crate) missing: Vec<String>,
    pub(crate) runs: Vec<Run>,
}

/// Measurements of one time that a page is made from.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) machine: Machine,
    pub(crate) quick: bool,
    /// Names of workloads.
    pub(crate) workloads: BTreeSet<String>,
}

impl Runs {
    pub(crate) fn new(contenders: &[Contender], missing: Vec<String>, quick: bool) -> Result<Runs> {
        let about = |contender: &Contender| About {
            id: contender.id.to_owned(),
            title: contender.title.clone(),
            against: contender.against.to_owned(),
            version: contender.version.clone(),
        };
        Ok(Runs {
            machine: Machine::look()?,
            quick,
            contenders: contenders.iter().map(about).collect(),
            missing,
            runs: Vec::new(),
        })
    }

    pub(crate) fn read(file: &Path) -> Result<Runs> {
        Ok(serde_json::from_slice(&std::fs::read(file)?)?)
    }

    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        Ok(std::fs::write(file, serde_json::to_vec_pretty(self)?)?)
    }

    /// Replaces cases by those of `later` with the same name: contenders are compared within a case, and all runs of a case
    /// must be of one time.
    pub(crate) fn replace(&mut self, later: Runs) {
        let replaced: BTreeSet<&str> = later.runs.iter().map(|run| run.case.as_str()).collect();
        self.runs
            .retain(|run| !replaced.contains(run.case.as_str()));
        for about in later.contenders {
            match self.contenders.iter_mut().find(|one| one.id == about.id) {
                Some(one) => *one = about,
                None => self.contenders.push(about),
            }
        }
        self.runs.extend(later.runs);
    }

    /// Returns when and where all of it was measured.
    pub(crate) fn part(&self) -> Part {
        let workload = |run: &Run| run.case.split(' ').next().unwrap_or_default().to_owned();
        Part {
            machine: self.machine.clone(),
            quick: self.quick,
            workloads: self.runs.iter().map(workload).collect(),
        }
    }

    /// Returns the median of a value over the rounds, if there is one.
    pub(crate) fn median(&self, case: &str, contender: &str, value: &str) -> Option<f64> {
        self.median_of(case, contender, |values| values.get(value).copied())
    }

    /// Returns the median of `of` over each run's values.
    pub(crate) fn median_of(
        &self,
        case: &str,
        contender: &str,
        of: impl Fn(&BTreeMap<String, f64>) -> Option<f64>,
    ) -> Option<f64> {
        let of_case = self
            .runs
            .iter()
            .filter(|run| run.case == case && run.contender == contender);
        let values: Vec<f64> = of_case.filter_map(|run| of(&run.values)).collect();
        (!values.is_empty()).then(|| median(values))
    }

    /// Returns the reason why there is no figure.
    pub(crate) fn failure(&self, case: &str, contender: &str) -> Option<&str> {
        let of_case = self
            .runs
            .iter()
            .filter(|run| run.case == case && run.contender == contender);
        of_case.filter_map(|run| run.failed.as_deref()).next()
    }

    /// Returns the full name of the case that begins with `beginning`: sizes differ between a quick benchmark and a whole
    /// one.
    pub(crate) fn case(&self, beginning: &str) -> Option<&str> {
        let mut cases = self.runs.iter().map(|run| run.case.as_str());
        cases.find(|case| {
            case.strip_prefix(beginning)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    }

    pub(crate) fn about(&self, id: &str) -> Option<&About> {
        self.contenders.iter().find(|about| about.id == id)
    }
}

/// Returns the middle value; of an even number, the mean of the two middle values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (below, above) = (values.len().saturating_sub(1) / 2, values.len() / 2);
    match (values.get(below), values.get(above)) {
        (Some(below), Some(above)) => (below + above) / 2.0,
        _ => f64::NAN,
    }
}

#[cfg(test)]
impl Runs {
    /// Returns `runs` of contenders that have their ids as titles and are compared with `off`.
    pub(crate) fn of(contenders: &[&str], runs: Vec<Run>) -> Runs {
        let about = |id: &&str| About {
            id: (*id).to_owned(),
            title: (*id).to_owned(),
            against: "off".to_owned(),
            version: String::new(),
        };
        Runs {
            machine: Machine::default(),
            quick: false,
            contenders: contenders.iter().map(about).collect(),
            missing: Vec::new(),
            runs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Run, Runs, median};
    use crate::machine::Machine;

    fn runs(heapray: &str, cases: &[(&str, f64)]) -> Runs {
        let run = |&(case, cpu): &(&str, f64)| Run {
            case: case.into(),
            contender: "off".into(),
            round: 0,
            values: [("cpu_ns".to_owned(), cpu)].into(),
            failed: None,
        };
        Runs {
            machine: Machine {
                heapray: heapray.into(),
                ..Machine::default()
            },
            ..Runs::of(&[], cases.iter().map(run).collect())
        }
    }

    #[test]
    fn what_was_measured_anew_takes_the_place_of_what_was_measured_before() {
        let mut all = runs("a", &[("live blocks=9", 1.0), ("pairs depth=1", 2.0)]);
        all.replace(runs("b", &[("live blocks=9", 3.0)]));
        assert_eq!(all.median("live blocks=9", "off", "cpu_ns"), Some(3.0));
        assert_eq!(all.median("pairs depth=1", "off", "cpu_ns"), Some(2.0));
        assert!(all.part().workloads.into_iter().eq(["live", "pairs"]));
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(vec![]).is_nan());
    }
}
