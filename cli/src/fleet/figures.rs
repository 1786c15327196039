//! The figures of each replica, and which of them stand out.

use super::live::{State, Status, TopLine};

/// Shortest part of a curve that growth is told from: what a service does in its first seconds does not go on.
const LEAST_MS: u64 = 60_000;
/// Fewest replicas among which one can stand out.
const FEWEST: usize = 3;
/// A replica stands out if it differs from the median by so many standard deviations, estimated from the median difference
/// (which is 0.6745 of one in a normal distribution), by half the median, and by so many bytes.
const DEVIATIONS: f64 = 5.0 / 0.6745;
const LEAST_DIFFERENCE: f64 = 1_048_576.0;
/// Most characters of a text that are kept: a replica may send anything.
const LONGEST: usize = 300;

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
    /// Bytes that are live, or were when the last session ended. `None` if there was none.
    pub(crate) live: Option<u64>,
    /// Resident bytes, if they are known.
    pub(crate) rss: Option<u64>,
    /// Growth of the live bytes in an hour, if it has recorded for long enough.
    pub(crate) growth_per_hour: Option<i64>,
    /// The line that holds the most.
    pub(crate) top: Option<Line>,
    /// Whether there is a report: of the session that runs, or of the one that ended last.
    pub(crate) has_report: bool,
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
        let job = [&status.job_name, &status.job_version];
        let job = job.map(|text| text.trim()).join(" ");
        let build = match job.trim() {
            "" => &status.program,
            job => job,
        };
        let rows = curve.points.iter();
        let rows: Vec<[u64; 3]> = rows.filter_map(|row| row.first_chunk().copied()).collect();
        let heap: Vec<(u64, u64)> = rows.iter().map(|[at, _, heap]| (*at, *heap)).collect();
        let has_report = status.is_running() || status.report.is_some();
        Replica {
            name,
            host: cut(&status.host),
            pid: status.pid,
            build: cut(build),
            state: cut(&status.state),
            estimated: status.sampling.is_some(),
            live: has_report.then_some(status.live.bytes),
            rss: rows.last().map(|[_, rss, _]| *rss).filter(|rss| *rss > 0),
            growth_per_hour: growth_per_hour(&heap),
            top: top.as_ref().and_then(|top| top.lines.first()).map(line),
            has_report,
        }
    }

    /// Returns whether a session runs.
    pub(crate) fn is_running(&self) -> bool {
        is_running(&self.state)
    }
}

impl Status {
    fn is_running(&self) -> bool {
        is_running(&self.state)
    }
}

fn is_running(state: &str) -> bool {
    matches!(state, "recording" | "background")
}

fn line(line: &TopLine) -> Line {
    Line {
        function: cut(&line.function),
        file: cut(&line.file),
        line: line.line.unwrap_or(0),
        live: line.live.bytes,
    }
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// Returns the slope of a line through the later half of the curve (least squares), since services warm up in the first one.
fn growth_per_hour(curve: &[(u64, u64)]) -> Option<i64> {
    let (first, _) = curve.first()?;
    let (last, _) = curve.last()?;
    // A curve that goes back in time has no growth.
    let length = last.checked_sub(*first)?;
    let middle = first + length / 2;
    let later: Vec<(f64, f64)> = curve
        .iter()
        .filter(|(at, _)| *at >= middle)
        .map(|(at, bytes)| (*at as f64, *bytes as f64))
        .collect();
    if length < LEAST_MS || later.len() < 2 {
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
        .filter(|at| replicas[*at].has_report)
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
    use serde_json::{Value, json};

    fn state(status: Value, points: Value, top: Value) -> State {
        State {
            status: serde_json::from_value(status).unwrap(),
            curve: serde_json::from_value(json!({ "points": points })).unwrap(),
            top: serde_json::from_value(top).unwrap(),
        }
    }

    pub(in crate::fleet) fn replica(name: &str, live: u64) -> Replica {
        let state = state(
            json!({ "job_name": "shop", "job_version": "1.2", "host": "h", "pid": 7, "state": "background", "sampling": {}, "live": { "bytes": live } }),
            json!([
                [0, live, 0, 0],
                [60_000, live * 2, live / 2, 0],
                [120_000, live * 2, live, 0]
            ]),
            json!({ "lines": [{ "function": "shop::cart", "file": "src/cart.rs", "line": 9, "live": { "bytes": live, "count": 1 } }] }),
        );
        Replica::of(name.to_owned(), &state)
    }

    /// Returns a replica that has recorded nothing.
    pub(in crate::fleet) fn idle(name: &str) -> Replica {
        let status = json!({ "program": "x", "state": "stopped", "sampling": null, "report": null, "live": { "bytes": 0 } });
        Replica::of(name.into(), &state(status, json!([]), json!(null)))
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
        assert!(of.estimated && of.has_report);
        let of = idle("b");
        assert_eq!(
            (of.build.as_str(), of.live, of.rss, of.growth_per_hour),
            ("x", None, None, None)
        );
        assert!(!of.has_report && of.top.is_none() && !of.estimated);
    }

    #[test]
    fn texts_of_any_length_are_cut() {
        let long = "é".repeat(1 << 20);
        let status =
            json!({ "job_name": long, "host": long, "state": long, "live": { "bytes": 1 } });
        let top = json!({ "lines": [{ "function": long, "file": long, "line": 1, "live": { "bytes": 1 } }] });
        let of = Replica::of("a".into(), &state(status, json!([[], [1]]), top));
        let line = of.top.unwrap();
        for text in [of.build, of.host, of.state, line.function, line.file] {
            assert_eq!(text.chars().count(), LONGEST);
        }
    }

    #[test]
    fn growth_needs_a_minute_and_is_of_the_later_half() {
        assert_eq!(growth_per_hour(&[(0, 0), (59_999, 100)]), None);
        assert_eq!(growth_per_hour(&[(0, 0)]), None);
        let warmed_up = [(0, 0), (10_000, 5_000), (60_000, 5_000), (120_000, 5_000)];
        assert_eq!(growth_per_hour(&warmed_up), Some(0));
        let shrinking = [(0, 9_000), (60_000, 5_000), (120_000, 4_000)];
        assert_eq!(growth_per_hour(&shrinking), Some(-60_000));
        let backwards = [(100_000, 1), (0, 2)];
        assert_eq!(growth_per_hour(&backwards), None);
        let enormous = [(0, u64::MAX), (u64::MAX / 2, 0), (u64::MAX, u64::MAX)];
        assert!(growth_per_hour(&enormous).is_some());
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
