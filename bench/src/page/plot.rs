//! The main figures as bars, in one SVG without scripts, readable on light and dark pages.

use std::fmt::Write as _;

use super::figures::Figures;
use crate::runs::Runs;

const WIDTH: f64 = 860.0;
const ROW: f64 = 20.0;
/// Start of the bars, and their largest length.
const LEFT: f64 = 330.0;
const LONGEST: f64 = 430.0;

/// Group of bars.
struct Panel<'a> {
    title: &'a str,
    of: &'a dyn Fn(&Figures) -> Option<f64>,
    print: &'a dyn Fn(f64) -> String,
    /// Smallest drawn value; the logarithmic axis begins here.
    least: f64,
    /// Set if the axis is linear, up to 1.
    linear: bool,
}

/// Returns the picture.
pub(crate) fn svg(runs: &Runs) -> String {
    let panels = [
        Panel {
            title: "live: CPU time against the unprofiled run (logarithmic)",
            of: &|one| one.cpu_ratio("live"),
            print: &|value| format!("{value:.1}×"),
            least: 1.0,
            linear: false,
        },
        Panel {
            title: "pairs, warm, 60 frames, 1 thread: nanoseconds of CPU added to a pair (logarithmic)",
            of: &|one| one.added("pairs shape=warm depth=60 threads=1"),
            print: &|value| format!("{value:+.0} ns"),
            least: 1.0,
            linear: false,
        },
        Panel {
            title: "server: requests a second, of the unprofiled service's",
            of: &|one| one.ratio("server", "requests_per_second"),
            print: &|value| format!("{:.0} %", 100.0 * value),
            least: 0.0,
            linear: true,
        },
    ];
    let mut body = String::new();
    let mut y = 10.0;
    for panel in panels {
        y = draw(runs, &panel, y, &mut body);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y}\" width=\"{WIDTH}\" height=\"{y}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

/// Draws a panel from `y` on. Returns where the next one begins.
fn draw(runs: &Runs, panel: &Panel, mut y: f64, out: &mut String) -> f64 {
    let mut bars: Vec<(&str, &str, f64)> = Vec::new();
    for about in &runs.contenders {
        let figures = Figures::of(runs, &about.id);
        if figures.is_profiled()
            && let Some(value) = (panel.of)(&figures)
        {
            bars.push((&about.id, &about.title, value));
        }
    }
    if bars.is_empty() {
        return y;
    }
    bars.sort_by(|one, other| one.2.total_cmp(&other.2));
    if panel.linear {
        bars.reverse();
    }
    let most = bars.iter().map(|bar| bar.2).fold(panel.least, f64::max);
    let _ = writeln!(
        out,
        "<text x=\"10\" y=\"{}\" font-weight=\"bold\" fill=\"#222\">{}</text>",
        y + 14.0,
        escaped(panel.title)
    );
    y += 24.0;
    for (id, title, value) in bars {
        let part = if panel.linear {
            value / most.max(1.0)
        } else {
            value.max(panel.least).log10() / most.max(10.0).log10()
        };
        let length = (LONGEST * part.clamp(0.0, 1.0)).max(2.0);
        let is_ours = title.starts_with("heapray") || id == "global-off";
        let colour = if is_ours { "#c2410c" } else { "#64748b" };
        let middle = y + 13.0;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\" fill=\"#222\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{}\" width=\"{length:.1}\" height=\"{}\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{middle}\" fill=\"#222\">{}</text>",
            LEFT - 8.0,
            escaped(&title.replace('`', "")),
            y + 2.0,
            ROW - 5.0,
            LEFT + length + 6.0,
            escaped(&(panel.print)(value)),
        );
        y += ROW;
    }
    y + 16.0
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use crate::machine::Machine;
    use crate::runs::{About, Run, Runs};

    #[test]
    fn the_plot_has_a_bar_for_each_profiler_and_none_for_the_unprofiled_run() {
        let run = |contender: &str, cpu: f64| Run {
            case: "live blocks=10".to_owned(),
            contender: contender.to_owned(),
            round: 0,
            values: [("cpu_ns".to_owned(), cpu)].into(),
            failed: None,
        };
        let about = |id: &str, title: &str| About {
            id: id.to_owned(),
            title: title.to_owned(),
            against: "off".to_owned(),
            version: String::new(),
        };
        let runs = Runs {
            machine: Machine::look().unwrap(),
            quick: true,
            contenders: vec![about("off", "unprofiled"), about("peer", "a <peer>")],
            missing: Vec::new(),
            runs: vec![run("off", 2.0), run("peer", 5.0)],
        };
        let svg = super::svg(&runs);
        assert!(
            svg.contains("a &lt;peer&gt;") && svg.contains("2.5×"),
            "{svg}"
        );
        assert!(!svg.contains("unprofiled<"), "{svg}");
    }
}
