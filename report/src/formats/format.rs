//! The list of all formats.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use super::{Options, collapsed, csv, gprof2dot, json, mprof, pprof, speedscope, svg};
use crate::Report;
use crate::memray::{Version, write_aggregated};

/// File format that a [`Report`] can be written in. [`Format::ALL`] lists them, [`FromStr`] parses their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Format {
    /// pprof's gzipped protobuf.
    Pprof,
    /// Collapsed stacks.
    Collapsed,
    /// speedscope's JSON.
    Speedscope,
    /// A flame graph.
    Svg,
    /// A row for each call site.
    Csv,
    /// Everything in heapray's own JSON.
    Json,
    /// gprof2dot's JSON.
    Gprof2dot,
    /// memory_profiler's record of resident memory over time.
    Mprof,
    /// memray's capture format, aggregated: opened by `memray` itself.
    Memray,
}

impl Format {
    /// All formats, in the order in which users should see them.
    pub const ALL: &'static [Format] = &[
        Format::Pprof,
        Format::Speedscope,
        Format::Collapsed,
        Format::Svg,
        Format::Csv,
        Format::Json,
        Format::Gprof2dot,
        Format::Mprof,
        Format::Memray,
    ];

    /// Returns the name on a command line and in a query.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Format::Pprof => "pprof",
            Format::Collapsed => "collapsed",
            Format::Speedscope => "speedscope",
            Format::Svg => "svg",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Gprof2dot => "gprof2dot",
            Format::Mprof => "mprof",
            Format::Memray => "memray",
        }
    }

    /// Returns the extension of its files' names, without the first dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Pprof => "pb.gz",
            Format::Collapsed => "folded",
            Format::Speedscope => "speedscope.json",
            Format::Svg => "svg",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Gprof2dot => "gprof2dot.json",
            Format::Mprof => "dat",
            Format::Memray => "bin",
        }
    }

    /// Returns its media type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::Pprof | Format::Memray => "application/octet-stream",
            Format::Collapsed | Format::Mprof => "text/plain; charset=utf-8",
            Format::Speedscope | Format::Json | Format::Gprof2dot => "application/json",
            Format::Svg => "image/svg+xml",
            Format::Csv => "text/csv; charset=utf-8",
        }
    }

    /// Returns its purpose, in one line.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Format::Pprof => "gzipped protobuf for `go tool pprof`, Pyroscope and Parca",
            Format::Collapsed => "collapsed stacks for flamegraph.pl, inferno and many more",
            Format::Speedscope => "JSON for https://www.speedscope.app",
            Format::Svg => "a flame graph as one picture",
            Format::Csv => "a row for each call site, with memray's columns first",
            Format::Json => "everything in heapray's own JSON, for scripts",
            Format::Gprof2dot => "JSON for gprof2dot, which draws call graphs",
            Format::Mprof => "resident memory over time, for `mprof plot` and `mprof peak`",
            Format::Memray => "memray's capture format, aggregated, for memray's own commands",
        }
    }

    /// Returns whether its files are UTF-8 text.
    #[must_use]
    pub const fn is_text(self) -> bool {
        !matches!(self, Format::Pprof | Format::Memray)
    }

    /// Writes `report` in this format. `out` should be buffered, because it gets small pieces.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn write(self, report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
        match self {
            Format::Pprof => {
                let mut pprof = options.pprof;
                pprof.labels.thread |= options.by_thread;
                pprof::write(report, &pprof, out)
            }
            Format::Collapsed => collapsed::write(report, options, out),
            Format::Speedscope => speedscope::write(report, options, out),
            Format::Svg => svg::write(report, options, out),
            Format::Csv => csv::write(report, options, out),
            Format::Json => json::write(report, out),
            Format::Gprof2dot => gprof2dot::write(report, options, out),
            Format::Mprof => mprof::write(report, out),
            Format::Memray => write_aggregated(report, Version::V13, out),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Format::ALL.iter().copied();
        all.find(|format| format.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// Error of a name that is not the name of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        write!(
            f,
            "unknown format {:?}: use one of {}",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for UnknownFormat {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name_and_no_two_are_alike() {
        for (index, format) in Format::ALL.iter().enumerate() {
            assert_eq!(format.to_string().parse(), Ok(*format));
            assert_eq!(format.name().to_uppercase().parse(), Ok(*format));
            for other in &Format::ALL[..index] {
                assert_ne!(format.name(), other.name());
                assert_ne!(format.extension(), other.extension());
            }
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_that_there_are() {
        let error = "pprf\n".parse::<Format>().unwrap_err().to_string();
        assert!(error.starts_with("unknown format \"pprf\\n\": use one of pprof, speedscope"));
    }
}
