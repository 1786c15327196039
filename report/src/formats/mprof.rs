//! memory_profiler's `.dat` file: resident memory over time, for `mprof plot` and `mprof peak`.
//!
//! A line for each reading: `MEM`, resident memory in MiB, seconds since the Unix epoch. Call sites are not in the file, so
//! no option applies. mprof treats a line without a blank, or an empty line, as an error, so the file has none.

use std::io::{self, Write};

use crate::Report;
use crate::memory_log::{Line, Reading};
use crate::memray::in_one_line;

/// Writes the memory of `report` over time.
///
/// # Errors
/// If `out` fails.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let about = &report.about;
    let command = in_one_line(&about.command_line);
    let command = command.trim();
    if !command.is_empty() {
        writeln!(out, "{}", Line::Command(command))?;
    }
    for moment in &report.timeline {
        let at_ms = about.start_ms.saturating_add_unsigned(moment.at_ms);
        let reading = Reading::of_bytes(moment.rss, at_ms as f64 / 1000.0);
        writeln!(out, "{}", Line::Memory(reading))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Moment;

    #[test]
    fn readings_are_mebibytes_at_seconds_and_no_line_is_empty() {
        let mut report = Report::default();
        report.about.command_line = "/srv/app\n--port 1".to_owned();
        report.about.start_ms = 1_795_278_525_762;
        report.timeline = [(0, 1 << 20), (10, 3_407_872)]
            .map(|(at_ms, rss)| Moment {
                at_ms,
                rss,
                ..Moment::default()
            })
            .to_vec();
        let mut out = Vec::new();
        write(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "CMDLINE /srv/app --port 1\n\
             MEM 1.000000 1795278525.7620\n\
             MEM 3.250000 1795278525.7720\n"
        );
    }
}
