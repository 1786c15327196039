//! The figures of each replica, and which of them stand out.

use serde_json::Value;

use super::live::State;

/// Shortest part of a curve that growth is told from: what a service does in its first seconds does not go on.
const LEAST_MS: u64 = 60_000;
/// Fewest replicas among which one can stand out.
const FEWEST: usize = 3;
/// A replica stands out if it differs from the median by so many standard deviations, estimated from the median difference
/// (which is 0.6745 of one in a normal distribution), by half the median, and by so many bytes.
const DEVIATIONS: f64 = 5.0 / 0.6745;
const LEAST_DIFFERENCE: f64 = 1_048_576.0;

/// A replica that has answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Replica {
    /// Its name among the targets.
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) pid: u64,
    /// The job and its version, or else the program.
    pub(crate) build: String,
    /// The profiler's state, such as `recording`.
    pub(crate) state: String,
    /// Whether the figures are estimates, since it samples.
    pub(crate) estimated: bool,
    pub(crate) live: u64,
    /// Resident bytes, if they are known.
    pub(crate) rss: Option<u64>,
    /// Growth of the live bytes in an hour, if it has recorded for long enough.
    pub(crate) growth_per_hour: Option<i64>,
    /// The line that holds the most.
    pub(crate) top: Option<Line>,
}

/// A line, and its live bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) function: String,
    pub(crate) file: String,
    pub(crate) line: u64,
    pub(crate) live: u64,
}

impl Replica {
    pub(super) fn of(name: String, state: &State) -> Replica {
        let State { status, curve, top } = state;
        let text = |of: &str| status[of].as_str().unwrap_or_default();
        let job = [text("job_name"), text("job_version")];
        let job = job.map(str::trim).join(" ");
        let build = if job.trim().is_empty() {
            text("program")
        } else {
            job.trim()
        };
        let rows: Vec<[u64; 3]> = curve["points"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|row| Some([row[0].as_u64()?, row[1].as_u64()?, row[2].as_u64()?]))
            .collect();
        let heap: Vec<(u64, u64)> = rows.iter().map(|[at, _, heap]| (*at, *heap)).collect();
        Replica {
            name,
            host: text("host").to_owned(),
            pid: status["pid"].as_u64().unwrap_or(0),
            build: build.to_owned(),
            state: text("state").to_owned(),
            estimated: !status["sampling"].is_null(),
            live: status["live"]["bytes"].as_u64().unwrap_or(0),
            rss: rows.last().map(|[_, rss, _]| *rss).filter(|rss| *rss > 0),
            growth_per_hour: growth_per_hour(&heap),
            top: line(&top["lines"][0]),
        }
    }

    /// Returns whether it has a report of a session.
    pub(crate) fn has_session(&self) -> bool {
        self.is_running() || self.rss.is_some()
    }

    /// Returns whether a session runs.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state.as_str(), "recording" | "background")
    }
}

fn line(line: &Value) -> Option<Line> {
    Some(Line {
        function: line["function"].as_str()?.to_owned(),
        file: line["file"].as_str().unwrap_or_default().to_owned(),
        line: line["line"].as_u64().unwrap_or(0),
        live: line["live"]["bytes"].as_u64().unwrap_or(0),
    })
}

/// Returns the slope of a line through the later half of the curve (least squares), since services warm up in the first one.
fn growth_per_hour(curve: &[(u64, u64)]) -> Option<i64> {
    let (first, _) = curve.first()?;
    let (last, _) = curve.last()?;
    let middle = first + (last - first) / 2;
    let later: Vec<(f64, f64)> = curve
        .iter()
        .filter(|(at, _)| *at >= middle)
        .map(|(at, bytes)| (*at as f64, *bytes as f64))
        .collect();
    if last - first < LEAST_MS || later.len() < 2 {
        return None;
    }
    let count = later.len() as f64;
    let mean_at = later.iter().map(|(at, _)| at).sum::<f64>() / count;
    let mean_bytes = later.iter().map(|(_, bytes)| bytes).sum::<f64>() / count;
    let (mut both, mut squares) = (0.0, 0.0);
    for (at, bytes) in later {
        both += (at - mean_at) * (bytes - mean_bytes);
        squares += (at - mean_at) * (at - mean_at);
    }
    (squares > 0.0).then(|| (both / squares * 3_600_000.0).round() as i64)
}

/// Returns the index of the replica with the middle number of live bytes (of the lower two, if two are in the middle), and
/// that of the one with the most. `None` if there are not two.
pub(crate) fn median_and_worst(replicas: &[&Replica]) -> Option<(usize, usize)> {
    let mut order: Vec<usize> = (0..replicas.len())
        .filter(|at| replicas[*at].has_session())
        .collect();
    order.sort_by_key(|at| replicas[*at].live);
    let (median, worst) = (*order.get(order.len().checked_sub(1)? / 2)?, *order.last()?);
    (median != worst).then_some((median, worst))
}

/// Returns for each value whether it is far above the others'.
pub(crate) fn stand_out(values: &[Option<u64>]) -> Vec<bool> {
    let known: Vec<f64> = values.iter().flatten().map(|value| *value as f64).collect();
    let median_value = median(&known);
    let differences: Vec<f64> = known
        .iter()
        .map(|value| (value - median_value).abs())
        .collect();
    let allowed = (DEVIATIONS * median(&differences))
        .max(median_value / 2.0)
        .max(LEAST_DIFFERENCE);
    let stands_out = |value: u64| known.len() >= FEWEST && value as f64 - median_value > allowed;
    values
        .iter()
        .map(|value| value.is_some_and(stands_out))
        .collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let lower = sorted
        .get(sorted.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0.0);
    f64::midpoint(lower, upper)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(in crate::fleet) fn replica(name: &str, live: u64) -> Replica {
        let state = State {
            status: json!({ "job_name": "shop", "job_version": "1.2", "host": "h", "pid": 7, "state": "background", "sampling": {}, "live": { "bytes": live } }),
            curve: json!({ "points": [[0, live, 0, 0], [60_000, live * 2, live / 2, 0], [120_000, live * 2, live, 0]] }),
            top: json!({ "lines": [{ "function": "shop::cart", "file": "src/cart.rs", "line": 9, "live": { "bytes": live, "count": 1 } }] }),
        };
        Replica::of(name.to_owned(), &state)
    }

    #[test]
    fn a_replica_is_what_its_live_page_shows() {
        let of = replica("a", 12_000_000);
        assert_eq!(
            (of.build.as_str(), of.pid, of.rss),
            ("shop 1.2", 7, Some(24_000_000))
        );
        assert_eq!(of.growth_per_hour, Some(360_000_000));
        assert_eq!(of.top.unwrap().line, 9);
        assert!(of.estimated);
        let empty = State {
            status: json!({ "program": "x", "sampling": null }),
            curve: json!({ "points": [] }),
            top: json!(null),
        };
        let of = Replica::of("b".into(), &empty);
        assert_eq!(
            (of.build.as_str(), of.rss, of.growth_per_hour),
            ("x", None, None)
        );
        assert!(!of.has_session() && of.top.is_none() && !of.estimated);
    }

    #[test]
    fn growth_needs_a_minute_and_is_of_the_later_half() {
        assert_eq!(growth_per_hour(&[(0, 0), (59_999, 100)]), None);
        assert_eq!(growth_per_hour(&[(0, 0)]), None);
        let warmed_up = [(0, 0), (10_000, 5_000), (60_000, 5_000), (120_000, 5_000)];
        assert_eq!(growth_per_hour(&warmed_up), Some(0));
        let shrinking = [(0, 9_000), (60_000, 5_000), (120_000, 4_000)];
        assert_eq!(growth_per_hour(&shrinking), Some(-60_000));
    }

    #[test]
    fn only_what_is_far_above_the_others_stands_out() {
        const MIB: u64 = 1 << 20;
        let found = |values: &[u64]| {
            let values: Vec<_> = values.iter().map(|value| Some(*value)).collect();
            stand_out(&values)
        };
        assert_eq!(
            found(&[100 * MIB, 101 * MIB, 310 * MIB]),
            [false, false, true]
        );
        assert_eq!(
            found(&[100 * MIB, 310 * MIB]),
            [false, false],
            "which of two?"
        );
        assert_eq!(found(&[100, 110, 9_000]), [false; 3], "a few kilobytes");
        assert_eq!(
            found(&[100 * MIB, 120 * MIB, 140 * MIB, 160 * MIB]),
            [false; 4]
        );
        assert_eq!(stand_out(&[None, None]), [false, false]);
    }

    #[test]
    fn the_median_is_a_replica() {
        let of = |lives: &[u64]| {
            let replicas: Vec<_> = lives.iter().map(|live| replica("r", *live)).collect();
            median_and_worst(&replicas.iter().collect::<Vec<_>>())
        };
        assert_eq!(of(&[30, 10, 20]), Some((2, 0)));
        assert_eq!(of(&[30, 10]), Some((1, 0)));
        assert_eq!(of(&[30]), None);
        assert_eq!(of(&[]), None);
    }
}
