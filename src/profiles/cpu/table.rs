//! The table as text, as `pstats` prints it.

use std::fmt;
use std::io::{self, Write};

use super::{Function, SortBy, Stats};

impl Stats {
    /// Prints the table to the standard output. Prints nothing if that is closed.
    pub fn print(&self) {
        self.print_top(usize::MAX);
    }

    /// Does what [`print`](Stats::print) does, for at most the first `limit` functions.
    pub fn print_top(&self, limit: usize) {
        let _ = write!(io::stdout().lock(), "{}", self.top(limit));
    }

    /// Returns the table of at most the first `limit` functions.
    pub fn top(&self, limit: usize) -> impl fmt::Display + '_ {
        Top { stats: self, limit }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.top(usize::MAX).fmt(f)
    }
}

struct Top<'s> {
    stats: &'s Stats,
    limit: usize,
}

impl fmt::Display for Top<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats;
        if let Some(error) = stats.error {
            return writeln!(f, "         no samples: {error}");
        }
        let (samples, seconds) = (stats.total.samples, stats.cpu_time().as_secs_f64());
        let plural = if samples == 1 { "" } else { "s" };
        writeln!(
            f,
            "         {samples} sample{plural} in {seconds:.3} seconds of CPU time"
        )?;
        if stats.lost > 0 {
            writeln!(
                f,
                "         {} more for which there was no memory",
                stats.lost
            )?;
        }
        let order = match stats.sorted_by {
            SortBy::Cumulative => "cumulative time",
            SortBy::Own => "internal time",
            SortBy::Samples => "samples",
            SortBy::Name => "function name",
            SortBy::File => "file name",
        };
        writeln!(f, "\n   Ordered by: {order}")?;
        let all = stats.order.len();
        if self.limit < all {
            let limit = self.limit;
            writeln!(
                f,
                "   List reduced from {all} to {limit} due to restriction <{limit}>"
            )?;
        }
        writeln!(
            f,
            "\n  samples  tottime  percall  cumtime  percall filename:lineno(function)"
        )?;
        for function in stats.functions().take(self.limit) {
            let each = |ns: u64, samples: u64| seconds_of(ns) / samples.max(1) as f64;
            let (own, cumulative) = (function.own, function.cumulative);
            writeln!(
                f,
                "{:>9} {:>8.3} {:>8.3} {:>8.3} {:>8.3} {}",
                cumulative.samples,
                seconds_of(own.ns),
                each(own.ns, cumulative.samples),
                seconds_of(cumulative.ns),
                each(cumulative.ns, cumulative.samples),
                Name(function),
            )?;
        }
        writeln!(f, "\n")
    }
}

/// Name of a function as `pstats` prints it.
struct Name<'f>(&'f Function);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Function {
            name, file, line, ..
        } = self.0;
        match file.as_str() {
            "" => write!(f, "{{{name}}}"),
            file => write!(f, "{file}:{line}({name})"),
        }
    }
}

pub(super) fn seconds_of(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::super::stats::tests::scripted;
    use super::*;

    #[test]
    fn the_table_is_the_one_of_pstats_with_samples_for_calls() {
        let mut stats = scripted(&[
            ("main:3;alpha:40", 250, 1000),
            ("main:3;beta:9", 1, 4),
            ("main:3", 2, 8),
        ])
        .strip_dirs()
        .sort_by(SortBy::Own);
        stats.cpu_ns = 1_014_000_000;
        assert_eq!(
            stats.top(2).to_string(),
            "         253 samples in 1.014 seconds of CPU time

   Ordered by: internal time
   List reduced from 3 to 2 due to restriction <2>

  samples  tottime  percall  cumtime  percall filename:lineno(function)
      250    1.000    0.004    1.000    0.004 a.rs:40(alpha)
      253    0.008    0.000    1.012    0.004 m.rs:3(main)


"
        );
    }
}
