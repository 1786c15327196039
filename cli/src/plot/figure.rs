//! The content of a plot: curves, functions, trends and peaks, in seconds since the first reading and MiB.

use std::collections::HashMap;

use heapray_report::memory_log::{Function, MemoryLog, Reading};

use super::{colour, labels, scale};

/// File and its name.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) log: MemoryLog,
}

/// Options of a plot.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) flame: bool,
    pub(crate) slope: bool,
    pub(crate) title: Option<String>,
    pub(crate) window: Option<(f64, f64)>,
    /// Set to show functions, and lines at the peak.
    pub(crate) functions: bool,
}

pub(crate) type Point = (f64, f64);

/// Content of a plot; see the module.
#[derive(Debug, Default)]
pub(crate) struct Figure {
    pub(super) title: String,
    pub(super) curves: Vec<Curve>,
    /// Functions, if they are shown.
    pub(super) calls: Vec<Call>,
    /// Number of levels of functions; 0 unless they are flames.
    pub(super) levels: u32,
    /// Points at which dashed lines cross.
    pub(super) peaks: Vec<Point>,
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
}

/// Curve of a process.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) label: String,
    pub(super) colour: &'static str,
    pub(super) points: Vec<Point>,
    pub(super) trend: Option<Trend>,
    /// Set for a descendant of the process.
    pub(super) is_child: bool,
}

/// Least squares: MiB per second, and MiB at second 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trend {
    pub(super) slope: f64,
    pub(super) offset: f64,
}

/// Call of a function.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) label: String,
    pub(super) colour: String,
    pub(super) from: Point,
    pub(super) to: Point,
    pub(super) level: u32,
}

impl Figure {
    pub(crate) fn of(sources: &[Source], options: &Options) -> Figure {
        let mut figure = Figure::default();
        for (index, source) in sources.iter().enumerate() {
            figure.add(index, source, sources.len() > 1, options);
        }
        figure.title = match (&options.title, sources) {
            (Some(title), _) => title.clone(),
            (None, [only]) => only
                .log
                .command
                .clone()
                .unwrap_or_default()
                .trim()
                .to_owned(),
            (None, _) => String::new(),
        };
        let points = || figure.curves.iter().flat_map(|curve| &curve.points);
        figure.x = options
            .window
            .unwrap_or_else(|| scale::limits(points().map(|point| point.0)));
        figure.y = scale::limits(points().map(|point| point.1));
        if figure.levels == 0 && !figure.calls.is_empty() {
            // Brackets extend above and below their points.
            let more = (figure.y.1 - figure.y.0) / 25.0;
            figure.y = (figure.y.0 - more, figure.y.1 + more);
        }
        figure
    }

    fn add(&mut self, index: usize, source: &Source, several: bool, options: &Options) {
        let log = &source.log;
        // As in mprof, the ends of calls are readings too.
        let ends = log.functions.iter().flat_map(|call| [call.from, call.to]);
        let mut readings: Vec<Reading> = log.memory.iter().copied().chain(ends).collect();
        readings.sort_by(|a, b| a.at.total_cmp(&b.at));
        let start = readings.first().map_or(0.0, |reading| reading.at);
        let point = |reading: &Reading| (reading.at - start, reading.mib);
        let mut label = labels::start(start);
        if several {
            label = format!("{}: {label}", source.name);
        }
        let own: Vec<Point> = readings.iter().map(point).collect();
        if options.functions {
            self.peaks.extend(peak(&own));
        }
        self.curve(label, index, own, false, options);
        let mut highest: Option<Point> = None;
        for (number, child) in log.children.iter().enumerate() {
            let mut points: Vec<Point> = child.readings.iter().map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            highest = [highest, peak(&points)]
                .into_iter()
                .flatten()
                .reduce(higher);
            self.curve(
                format!("child {}", child.id),
                number + 1,
                points,
                true,
                options,
            );
        }
        self.peaks.extend(highest);
        if options.functions {
            self.functions(&log.functions, point, options.flame);
        }
    }

    fn curve(
        &mut self,
        label: String,
        colour: usize,
        points: Vec<Point>,
        is_child: bool,
        options: &Options,
    ) {
        let trend = options.slope.then(|| trend(&points)).flatten();
        let label = match trend {
            Some(Trend { slope, .. }) => format!("{label} slope {slope:.5}"),
            None => label,
        };
        self.curves.push(Curve {
            label,
            colour: colour::CURVES[colour % colour::CURVES.len()],
            points,
            trend,
            is_child,
        });
    }

    fn functions(&mut self, calls: &[Function], point: impl Fn(&Reading) -> Point, flame: bool) {
        let short = labels::functions(calls.iter().map(|call| call.name.as_str()));
        let level = |call: &Function| call.level.unwrap_or_default();
        if flame {
            self.levels = calls
                .iter()
                .map(|call| level(call).saturating_add(1))
                .max()
                .unwrap_or(0);
        }
        // Colours by function; flames alternate on each level.
        let (mut numbers, mut turns) = (HashMap::new(), HashMap::new());
        for call in calls {
            let next = numbers.len();
            let number = *numbers.entry(&call.name).or_insert(next);
            let turn = turns.entry(level(call)).or_insert(0_usize);
            *turn += 1;
            self.calls.push(Call {
                label: short[call.name.as_str()].to_owned(),
                colour: if flame {
                    colour::flame(level(call), self.levels, *turn - 1)
                } else {
                    colour::FUNCTIONS[number % colour::FUNCTIONS.len()].to_owned()
                },
                from: point(&call.from),
                to: point(&call.to),
                level: level(call),
            });
        }
    }
}

/// Returns the first of the highest points.
fn peak(points: &[Point]) -> Option<Point> {
    points.iter().copied().reduce(higher)
}

fn higher(one: Point, two: Point) -> Point {
    if two.1 > one.1 { two } else { one }
}

/// Returns the straight line nearest to all points, or `None` if all are of one moment.
fn trend(points: &[Point]) -> Option<Trend> {
    let count = points.len() as f64;
    let mean = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = both / square;
    slope.is_finite().then_some(Trend {
        slope,
        offset: y - slope * x,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_what_mprof_draws() {
        let text = "CMDLINE ./job\nMEM 10 100\nMEM 30 102\nMEM 20 104\nCHLD 7 5 101\nCHLD 7 9 103\n\
                    FUNC a.f 10 100.5 35 101.5 0\nFUNC a.g 12 101 13 101.2 1\n";
        let log = MemoryLog::read(text.as_bytes()).unwrap();
        let sources = [Source {
            name: "x.dat".into(),
            log,
        }];
        let options = Options {
            functions: true,
            slope: true,
            ..Options::default()
        };
        let figure = Figure::of(&sources, &options);
        assert_eq!(figure.title, "./job");
        let [own, child] = &figure.curves[..] else {
            panic!()
        };
        assert_eq!(own.points.len(), 7, "calls' ends are readings");
        assert_eq!((own.colour, child.colour), ("#000000", "#0000ff"));
        assert!(
            child.label.starts_with("child 7 slope 2.00000"),
            "{}",
            child.label
        );
        assert_eq!(
            child.trend,
            Some(Trend {
                slope: 2.0,
                offset: 3.0
            })
        );
        assert_eq!(figure.peaks, [(1.5, 35.0), (3.0, 9.0)]);
        let calls: Vec<_> = figure
            .calls
            .iter()
            .map(|call| (call.label.as_str(), call.level))
            .collect();
        assert_eq!(calls, [("f", 0), ("g", 1)]);
        assert_eq!(figure.x, (-0.2, 4.2));
    }
}
