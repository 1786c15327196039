//! Families as text: Prometheus's text format 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>) and OpenMetrics 1.0.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).

use std::fmt::{self, Display, Write as _};
use std::time::UNIX_EPOCH;

use super::family::{Bucket, Exemplar, Family, Histogram, Kind, Sample, Value};

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFormat {
    /// Text format 0.0.4, which every Prometheus and every agent reads.
    Plain,
    /// OpenMetrics 1.0.0. It says where the text ends and which unit a family has.
    #[cfg_attr(not(feature = "http"), allow(dead_code))]
    OpenMetrics,
}

impl TextFormat {
    /// Returns its media type.
    #[cfg(feature = "http")]
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            TextFormat::Plain => "text/plain; version=0.0.4; charset=utf-8",
            TextFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Returns `families` as text, without those that have no values.
pub(crate) fn text(families: &[Family], format: TextFormat) -> String {
    let mut text = String::with_capacity(8 << 10);
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        // Writing to a text does not fail.
        let _ = write_family(&mut text, family, format);
    }
    if format == TextFormat::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn write_family(text: &mut String, family: &Family, format: TextFormat) -> fmt::Result {
    let (name, ending) = (family.name, family.kind.ending());
    let (of_family, kind) = match (format, family.kind) {
        (_, Kind::Gauge) => ("", "gauge"),
        (_, Kind::Histogram) => ("", "histogram"),
        (TextFormat::OpenMetrics, Kind::Counter) => ("", "counter"),
        (TextFormat::OpenMetrics, Kind::Info) => ("", "info"),
        // The older format names the family as its samples, and does not know such information.
        (TextFormat::Plain, Kind::Counter) => (ending, "counter"),
        (TextFormat::Plain, Kind::Info) => (ending, "gauge"),
    };
    writeln!(text, "# HELP {name}{of_family} {}", Escaped(family.help))?;
    writeln!(text, "# TYPE {name}{of_family} {kind}")?;
    if let (TextFormat::OpenMetrics, Some(unit)) = (format, family.unit) {
        writeln!(text, "# UNIT {name} {}", unit.name())?;
    }
    for Sample { labels, value } in &family.samples {
        if let Value::Histogram(histogram) = value {
            write_buckets(text, name, labels, histogram, format)?;
        }
        let mut line = |ending: &str, value: &dyn Display| {
            writeln!(text, "{name}{ending}{} {value}", Labels(labels, None))
        };
        match value {
            Value::Whole(value) => line(ending, value)?,
            Value::Seconds(value) => line(ending, value)?,
            Value::Histogram(histogram) => {
                line("_sum", &histogram.sum)?;
                line("_count", &histogram.count)?;
            }
        }
    }
    Ok(())
}

fn write_buckets(
    text: &mut String,
    name: &str,
    labels: &[(&'static str, String)],
    histogram: &Histogram,
    format: TextFormat,
) -> fmt::Result {
    let mut bucket = |largest: String, count: u64, exemplar: &Option<Exemplar>| {
        let labels = Labels(labels, Some(("le", largest)));
        write!(text, "{name}_bucket{labels} {count}")?;
        // The older format has no exemplars.
        if let (TextFormat::OpenMetrics, Some(Exemplar { labels, value, at })) = (format, exemplar)
        {
            let at = at.duration_since(UNIX_EPOCH).unwrap_or_default();
            write!(
                text,
                " # {} {value}.0 {:.3}",
                Labels(labels, None),
                at.as_secs_f64()
            )?;
        }
        text.write_char('\n')
    };
    let mut below = 0;
    for Bucket {
        largest,
        count,
        exemplar,
    } in &histogram.buckets
    {
        below += count;
        bucket(format!("{largest}.0"), below, exemplar)?;
    }
    bucket("+Inf".to_owned(), histogram.count, &histogram.larger)
}

/// The labels of a sample, and one more.
struct Labels<'l>(&'l [(&'static str, String)], Option<(&'static str, String)>);

impl Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut open = '{';
        for (label, value) in self.0.iter().chain(&self.1) {
            write!(f, "{open}{label}=\"{}\"", Escaped(value))?;
            open = ',';
        }
        if open == ',' {
            f.write_char('}')
        } else {
            Ok(())
        }
    }
}

/// A text as a label's value, or in a line of help.
struct Escaped<'t>(&'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn families() -> Vec<Family> {
        let mut info = Family::new(Kind::Info, "heapray", "The version.");
        info.add([("version", "1.0".to_owned())], 1);
        let mut sites = Family::new(Kind::Gauge, "site_live_bytes", "By line.");
        let function = "<a as \"b\">::c\\d\n".to_owned();
        let labels = [("function", function), ("location", "é.rs:1".to_owned())];
        sites.add(labels, u64::MAX);
        vec![
            info,
            Family::gauge("empty_bytes", "Left out.", None::<u64>),
            Family::counter("cpu_seconds", "CPU time.", 0.25),
            sites,
        ]
    }

    #[test]
    fn the_older_format_names_families_as_their_samples() {
        let expected = "\
# HELP heapray_info The version.
# TYPE heapray_info gauge
heapray_info{version=\"1.0\"} 1
# HELP cpu_seconds_total CPU time.
# TYPE cpu_seconds_total counter
cpu_seconds_total 0.25
# HELP site_live_bytes By line.
# TYPE site_live_bytes gauge
site_live_bytes{function=\"<a as \\\"b\\\">::c\\\\d\\n\",location=\"é.rs:1\"} 18446744073709551615
";
        assert_eq!(text(&families(), TextFormat::Plain), expected);
    }

    #[test]
    fn the_buckets_of_a_histogram_are_sums() {
        let mut sizes = Family::new(Kind::Histogram, "request_bytes", "By size.");
        let exemplar = |value| Exemplar {
            labels: [
                ("trace_id", "0af7".to_owned()),
                ("span_id", "b7".to_owned()),
            ],
            value,
            at: UNIX_EPOCH + Duration::from_millis(1_700_000_000_250),
        };
        let bucket = |(largest, count)| Bucket {
            largest,
            count,
            exemplar: (largest == 4096).then(|| exemplar(2000)),
        };
        let histogram = Histogram {
            buckets: [(256, 2), (1024, 0), (4096, 1)].map(bucket).to_vec(),
            larger: Some(exemplar(8000)),
            count: 4,
            sum: 10_000,
        };
        sizes.add([("route", "GET /".to_owned())], histogram);
        let expected = "\
# HELP request_bytes By size.
# TYPE request_bytes histogram
request_bytes_bucket{route=\"GET /\",le=\"256.0\"} 2
request_bytes_bucket{route=\"GET /\",le=\"1024.0\"} 2
request_bytes_bucket{route=\"GET /\",le=\"4096.0\"} 3
request_bytes_bucket{route=\"GET /\",le=\"+Inf\"} 4
request_bytes_sum{route=\"GET /\"} 10000
request_bytes_count{route=\"GET /\"} 4
";
        let sizes = [sizes];
        assert_eq!(text(&sizes, TextFormat::Plain), expected);
        let with_traces = text(&sizes, TextFormat::OpenMetrics);
        let exemplars = [
            "le=\"4096.0\"} 3 # {trace_id=\"0af7\",span_id=\"b7\"} 2000.0 1700000000.250\n",
            "le=\"+Inf\"} 4 # {trace_id=\"0af7\",span_id=\"b7\"} 8000.0 1700000000.250\n",
        ];
        for exemplar in exemplars {
            assert!(with_traces.contains(exemplar), "{with_traces}");
        }
        assert_eq!(with_traces.matches(" # {").count(), 2);
    }

    #[test]
    fn openmetrics_has_units_and_an_end() {
        let expected = "\
# HELP heapray The version.
# TYPE heapray info
heapray_info{version=\"1.0\"} 1
# HELP cpu_seconds CPU time.
# TYPE cpu_seconds counter
# UNIT cpu_seconds seconds
cpu_seconds_total 0.25
# HELP site_live_bytes By line.
# TYPE site_live_bytes gauge
# UNIT site_live_bytes bytes
site_live_bytes{function=\"<a as \\\"b\\\">::c\\\\d\\n\",location=\"é.rs:1\"} 18446744073709551615
# EOF
";
        assert_eq!(text(&families(), TextFormat::OpenMetrics), expected);
    }
}
