//! The result as text and as JSON.

use std::fmt::Write;

use heapray_report::memray::in_one_line;
use heapray_report::units::{counted, rounded_size as size};
use heapray_report::views::short_path;
use serde_json::{Value, json};

use super::compare::{Comparison, Grown};
use super::figures::{Replica, stand_out};

/// What was found out about all replicas.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// Those that have answered, the one with the most live bytes first.
    pub(crate) replicas: Vec<Replica>,
    /// Names of the others, and why they have not.
    pub(crate) silent: Vec<(String, String)>,
    pub(crate) comparison: Option<Comparison>,
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
        let live = of(|replica| Some(replica.live));
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

    /// Returns the table, the difference, and who has not answered.
    pub(crate) fn as_text(&self) -> String {
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
            let about = if replica.estimated { "~" } else { "" };
            rows.push([
                if outlier.is_any() { "!" } else { "" }.to_owned(),
                in_one_line(&replica.name).into_owned(),
                in_one_line(&replica.build).into_owned(),
                replica.rss.map_or("–".into(), size) + star(outlier.rss),
                format!("{about}{}{}", size(replica.live), star(outlier.live)),
                growth(replica.growth_per_hour) + star(outlier.growth),
                top(replica),
            ]);
        }
        let mut text = columns(&rows);
        let _ = writeln!(text, "\n{}.", self.answered());
        if self.outliers().into_iter().any(Outlier::is_any) {
            text.push_str("! and *: far above the median of all.\n");
        }
        for sentence in self.sentences() {
            let _ = writeln!(text, "{sentence}");
        }
        for (name, why) in &self.silent {
            let _ = writeln!(
                text,
                "No answer: {}: {}",
                in_one_line(name),
                in_one_line(why)
            );
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
        let mut sentences = vec![format!(
            "{} holds {}: {:.1} times the median, {} of {}.",
            in_one_line(worst),
            size(*worst_live),
            comparison.times(),
            size(*median_live),
            in_one_line(median),
        )];
        sentences.extend(lines.iter().map(|line| {
            format!(
                "{:.0} % of the difference, {}, is {}",
                100.0 * line.share,
                size(line.more),
                place_of(line)
            )
        }));
        sentences
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
        let silent = self
            .silent
            .iter()
            .map(|(name, why)| json!({ "name": name, "why": why }));
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
                "lines": lines.collect::<Vec<_>>(),
            })
        });
        json!({
            "replicas": replicas.collect::<Vec<_>>(),
            "silent": silent.collect::<Vec<_>>(),
            "comparison": comparison,
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

fn top(replica: &Replica) -> String {
    let state = if replica.is_running() {
        String::new()
    } else {
        format!(" ({})", replica.state)
    };
    let line = replica.top.as_ref().map_or("–".to_owned(), |line| {
        format!(
            "{} {} {}",
            size(line.live),
            line.function,
            position(&line.file, line.line)
        )
    });
    in_one_line(&(line + &state)).into_owned()
}

fn place_of(line: &Grown) -> String {
    let place = format!(
        "{} {}",
        line.function,
        position(&line.file, line.line.into())
    );
    in_one_line(place.trim_end()).into_owned()
}

/// Returns a short path and its line.
pub(crate) fn position(file: &str, line: u64) -> String {
    match line {
        0 => short_path(file).to_owned(),
        line => format!("{}:{line}", short_path(file)),
    }
}

/// Aligns columns: figures to the right, texts to the left.
fn columns(rows: &[[String; 7]]) -> String {
    let width = |at: usize| {
        rows.iter()
            .map(|row| row[at].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; 7] = std::array::from_fn(width);
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
mod tests {
    use super::*;
    use crate::fleet::figures::tests::replica;

    pub(in crate::fleet) fn fleet() -> Fleet {
        Fleet {
            replicas: vec![
                replica("shop-7", 310_000_000),
                replica("shop-2", 100_000_000),
                replica("shop-1", 99_000_000),
            ],
            silent: vec![("shop-3".into(), "refused\u{1b}[2J".into())],
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
        let text = fleet().as_text();
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
            text.contains("94 % of the difference, 197 MB, is shop::cart src/cart.rs:9"),
            "{text}"
        );
        assert!(
            text.contains("3 of 4 replicas answered.")
                && text.contains("No answer: shop-3: refused"),
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
}
