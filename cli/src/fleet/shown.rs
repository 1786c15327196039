//! The result as text and as JSON.

use std::fmt::Write;

use heapray_report::memray::in_one_line;
use heapray_report::units::{counted, rounded_size as size};
use heapray_report::views::short_path;
use serde_json::{Value, json};

use super::compare::{Comparison, Grown};
use super::figures::{Replica, stand_out};

/// Most characters of a name in the table: that of a pod has 63.
const NAME: usize = 63;
/// Fewest characters of the last column, however narrow the terminal is.
const LEAST_ROOM: usize = 40;

/// What was found out about all replicas.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    /// Those that have answered, the one with the most live bytes first.
    pub(crate) replicas: Vec<Replica>,
    /// Names of the others, and why they have not.
    pub(crate) silent: Vec<Silent>,
    pub(crate) comparison: Option<Comparison>,
    /// Why there is no comparison, if it failed.
    pub(crate) no_comparison: Option<String>,
    /// Those whose reports are missing in the merged capture.
    pub(crate) not_merged: Vec<Silent>,
}

/// A replica without an answer, or without a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Silent {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) why: String,
}

impl Silent {
    /// Returns its name and its address.
    pub(crate) fn of_whom(&self) -> String {
        let Silent { name, url, .. } = self;
        if url.contains(name.as_str()) || name.contains(url.as_str()) {
            return name.clone();
        }
        format!("{name} ({url})")
    }
}

/// Which figures of a replica stand out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outlier {
    pub(crate) rss: bool,
    pub(crate) live: bool,
    pub(crate) growth: bool,
}

impl Outlier {
    fn is_any(self) -> bool {
        self.rss || self.live || self.growth
    }
}

impl Fleet {
    /// Returns which figures stand out, for each replica.
    pub(crate) fn outliers(&self) -> Vec<Outlier> {
        let of = |figure: fn(&Replica) -> Option<u64>| {
            let values: Vec<_> = self.replicas.iter().map(figure).collect();
            stand_out(&values)
        };
        let rss = of(|replica| replica.rss);
        let live = of(|replica| replica.live);
        let growth = of(|replica| Some(u64::try_from(replica.growth_per_hour?).unwrap_or(0)));
        rss.into_iter()
            .zip(live)
            .zip(growth)
            .map(|((rss, live), growth)| Outlier { rss, live, growth })
            .collect()
    }

    /// Returns how many have answered.
    pub(crate) fn answered(&self) -> String {
        let all = self.replicas.len() + self.silent.len();
        format!(
            "{} of {} answered",
            self.replicas.len(),
            counted(all as u64, "replica")
        )
    }

    /// Returns the table, the difference, and who has not answered, in lines of `width` if that is possible.
    pub(crate) fn as_text(&self, width: usize) -> String {
        let mut rows = vec![
            [
                "",
                "replica",
                "build",
                "RSS",
                "live",
                "growth/h",
                "line that holds the most",
            ]
            .map(String::from),
        ];
        for (replica, outlier) in self.replicas.iter().zip(self.outliers()) {
            let star = |marked: bool| if marked { "*" } else { "" };
            rows.push([
                if outlier.is_any() { "!" } else { "" }.to_owned(),
                end_of(&in_one_line(&replica.name), NAME),
                end_of(&in_one_line(&replica.build), NAME),
                replica.rss.map_or("–".into(), size) + star(outlier.rss),
                live(replica, "~") + star(outlier.live),
                growth(replica.growth_per_hour) + star(outlier.growth),
                String::new(),
            ]);
        }
        let widths = widths(&rows);
        let others: usize = widths.iter().map(|width| width + 2).sum();
        let room = width.saturating_sub(others).max(LEAST_ROOM);
        for (row, replica) in rows.iter_mut().skip(1).zip(&self.replicas) {
            row[6] = top(replica, room);
        }
        let mut text = String::new();
        if !self.replicas.is_empty() {
            text = columns(&rows, widths);
            text.push('\n');
        }
        let _ = writeln!(text, "{}.", self.answered());
        if self.outliers().into_iter().any(Outlier::is_any) {
            text.push_str("! and *: far above the median of all.\n");
        }
        for sentence in self.sentences() {
            let _ = writeln!(text, "{sentence}");
        }
        if let Some(why) = &self.no_comparison {
            let _ = writeln!(text, "No comparison: {}", in_one_line(why));
        }
        for (what, who) in [
            ("No answer", &self.silent),
            ("Not merged", &self.not_merged),
        ] {
            for of in who {
                let (of_whom, why) = (of.of_whom(), in_one_line(&of.why));
                let _ = writeln!(text, "{what}: {}: {why}", in_one_line(&of_whom));
            }
        }
        text
    }

    /// Returns the difference of the worst replica and the median as sentences.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let Some(comparison) = &self.comparison else {
            return Vec::new();
        };
        let Comparison {
            worst,
            median,
            worst_live,
            median_live,
            lines,
        } = comparison;
        let (worst, median) = (in_one_line(worst), in_one_line(median));
        let (holds, of_median) = (size(*worst_live), size(*median_live));
        let first = match comparison.times() {
            None => format!("{worst} holds {holds}, and the median, {median}, nothing."),
            Some(times) if times > 1.0 => {
                format!(
                    "{worst} holds {holds}: {times:.1} times the median, {of_median} of {median}."
                )
            }
            // Between the table and the reports, some time has passed.
            Some(_) => format!(
                "{worst} holds {holds} in its report: no more than the median, {of_median} of {median}."
            ),
        };
        let lines = lines.iter().map(|line| {
            let (share, more) = (100.0 * line.share, size(line.more));
            format!(
                "{share:.0} % of the difference, {more}, is {}.",
                place_of(line)
            )
        });
        [first].into_iter().chain(lines).collect()
    }

    /// Returns everything as JSON.
    pub(crate) fn as_json(&self) -> Value {
        let outliers = self.outliers();
        let replicas = self.replicas.iter().zip(outliers).map(|(replica, outlier)| {
            json!({
                "name": replica.name,
                "host": replica.host,
                "pid": replica.pid,
                "build": replica.build,
                "state": replica.state,
                "estimated": replica.estimated,
                "rss_bytes": replica.rss,
                "live_bytes": replica.live,
                "growth_bytes_per_hour": replica.growth_per_hour,
                "top": replica.top.as_ref().map(|line| json!({
                    "function": line.function, "file": line.file, "line": line.line, "live_bytes": line.live,
                })),
                "outlier": { "rss": outlier.rss, "live": outlier.live, "growth": outlier.growth },
            })
        });
        let without = |who: &[Silent]| -> Vec<Value> {
            let one = |of: &Silent| json!({ "name": of.name, "url": of.url, "why": of.why });
            who.iter().map(one).collect()
        };
        let comparison = self.comparison.as_ref().map(|comparison| {
            let lines = comparison.lines.iter().map(|line| {
                json!({
                    "function": line.function, "file": line.file, "line": line.line,
                    "more_bytes": line.more, "share": line.share,
                })
            });
            json!({
                "worst": comparison.worst,
                "median": comparison.median,
                "worst_live_bytes": comparison.worst_live,
                "median_live_bytes": comparison.median_live,
                "times": comparison.times(),
                "lines": lines.collect::<Vec<_>>(),
            })
        });
        json!({
            "replicas": replicas.collect::<Vec<_>>(),
            "silent": without(&self.silent),
            "comparison": comparison,
            "no_comparison": self.no_comparison,
            "not_merged": without(&self.not_merged),
        })
    }
}

/// Returns growth with its sign, or a dash where it is not known.
pub(crate) fn growth(growth: Option<i64>) -> String {
    let signed = |growth: i64| {
        let sign = if growth < 0 { '-' } else { '+' };
        format!("{sign}{}", size(growth.unsigned_abs()))
    };
    growth.map_or("–".into(), signed)
}

/// Returns the live bytes, with `about` before estimates, or a dash if nothing was recorded.
pub(crate) fn live(replica: &Replica, about: &str) -> String {
    let about = if replica.estimated { about } else { "" };
    let live = replica.live;
    live.map_or("–".into(), |live| format!("{about}{}", size(live)))
}

/// Returns the line that holds the most in at most `room` characters: of the function, as much as fits.
fn top(replica: &Replica, room: usize) -> String {
    let state = if replica.is_running() {
        String::new()
    } else {
        format!(" ({})", in_one_line(&replica.state))
    };
    let Some(line) = &replica.top else {
        return format!("–{state}");
    };
    let position = position(&line.file, line.line);
    let (size, position) = (size(line.live), in_one_line(&position));
    let others = size.chars().count() + position.chars().count() + state.chars().count() + 2;
    let function = in_one_line(&line.function);
    let function = end_of(&function, room.saturating_sub(others).max(LEAST_ROOM / 2));
    format!("{size} {function} {position}{state}")
}

/// Returns at most `most` characters of `text`, the last ones: they tell replicas and functions apart.
fn end_of(text: &str, most: usize) -> String {
    let cut = text.chars().count().saturating_sub(most);
    if cut == 0 {
        return text.to_owned();
    }
    let end: String = text.chars().skip(cut + 1).collect();
    format!("…{end}")
}

fn place_of(line: &Grown) -> String {
    let function = in_one_line(&line.function);
    match &*in_one_line(&position(&line.file, line.line.into())) {
        "" => function.into_owned(),
        position => format!("{function} at {position}"),
    }
}

/// Returns a short path and its line.
pub(crate) fn position(file: &str, line: u64) -> String {
    match line {
        0 => short_path(file).to_owned(),
        line => format!("{}:{line}", short_path(file)),
    }
}

fn widths(rows: &[[String; 7]]) -> [usize; 7] {
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.max().unwrap_or(0)
    };
    let mut widths: [usize; 7] = std::array::from_fn(width);
    // Nothing comes after it.
    widths[6] = 0;
    widths
}

/// Aligns columns: figures to the right, texts to the left.
fn columns(rows: &[[String; 7]], widths: [usize; 7]) -> String {
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(at, (cell, width))| match at {
                3..=5 => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            });
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fleet::figures::tests::{idle, replica};

    pub(in crate::fleet) fn silent(name: &str, why: &str) -> Silent {
        let url = "http://10.0.0.3:7000".into();
        let [name, why] = [name, why].map(String::from);
        Silent { name, url, why }
    }

    pub(in crate::fleet) fn fleet() -> Fleet {
        Fleet {
            replicas: vec![
                replica("shop-7", 310_000_000),
                replica("shop-2", 100_000_000),
                replica("shop-1", 99_000_000),
            ],
            silent: vec![silent("shop-3", "refused\u{1b}[2J")],
            no_comparison: None,
            not_merged: Vec::new(),
            comparison: Some(Comparison {
                worst: "shop-7".into(),
                median: "shop-2".into(),
                worst_live: 310_000_000,
                median_live: 100_000_000,
                lines: vec![Grown {
                    function: "shop::cart".into(),
                    file: "src/cart.rs".into(),
                    line: 9,
                    more: 197_400_000,
                    share: 0.94,
                }],
            }),
        }
    }

    #[test]
    fn the_text_says_who_stands_out_and_why() {
        let text = fleet().as_text(200);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].starts_with("!  shop-7") && lines[1].contains("310 MB*"),
            "{text}"
        );
        assert!(lines[2].starts_with("   shop-2"), "{text}");
        assert!(
            text.contains("shop-7 holds 310 MB: 3.1 times the median, 100 MB of shop-2."),
            "{text}"
        );
        assert!(
            text.contains("94 % of the difference, 197 MB, is shop::cart at src/cart.rs:9."),
            "{text}"
        );
        assert!(
            text.contains("3 of 4 replicas answered.")
                && text.contains("No answer: shop-3 (http://10.0.0.3:7000): refused"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn the_json_has_the_same() {
        let json = fleet().as_json();
        assert_eq!(json["replicas"][0]["outlier"]["live"], true);
        assert_eq!(json["comparison"]["lines"][0]["share"], 0.94);
        assert_eq!(json["silent"][0]["name"], "shop-3");
    }

    #[test]
    fn a_median_of_nothing_and_a_worst_that_holds_less_are_said_so() {
        let first = |worst, median| {
            let mut fleet = fleet();
            let comparison = fleet.comparison.as_mut().unwrap();
            (comparison.worst_live, comparison.median_live) = (worst, median);
            comparison.lines.clear();
            fleet.sentences().join(" ")
        };
        assert_eq!(
            first(5_000_000, 0),
            "shop-7 holds 5.00 MB, and the median, shop-2, nothing."
        );
        assert_eq!(
            first(5_000_000, 6_000_000),
            "shop-7 holds 5.00 MB in its report: no more than the median, 6.00 MB of shop-2."
        );
    }

    #[test]
    fn a_replica_that_records_nothing_has_dashes_and_no_part_in_the_median() {
        let mut fleet = fleet();
        fleet.replicas.extend(["a", "b", "c"].map(idle));
        let text = fleet.as_text(200);
        let row = text.lines().find(|row| row.starts_with("   a ")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["a", "x", "–", "–", "–", "–", "(stopped)"]);
        let marked = fleet.outliers().into_iter().map(|outlier| outlier.live);
        assert_eq!(
            marked.collect::<Vec<_>>(),
            [true, false, false, false, false, false]
        );
        assert!(fleet.as_json()["replicas"][3]["live_bytes"].is_null());
    }

    #[test]
    fn long_names_do_not_blow_up_the_table() {
        let mut fleet = fleet();
        let line = fleet.replicas[0].top.as_mut().unwrap();
        line.function = "f".repeat(300);
        fleet.replicas[1].build = "b".repeat(300);
        fleet.replicas[2].name = "n".repeat(100_000);
        let rows = fleet.as_text(200);
        let rows: Vec<&str> = rows.lines().take(4).collect();
        assert!(
            rows.iter().all(|row| row.chars().count() <= 300),
            "{rows:?}"
        );
        assert!(rows[1].ends_with("f src/cart.rs:9"), "{rows:?}");
    }
}
