//! Joins reports that come one after another, without holding all of them.

use super::agree_on_names;
use super::merge::{add_notes, summed};
use crate::Report;

/// Adds up reports as [`merged`](super::merged) does, and holds little more than their sum. Marks keep their names, and
/// functions get one name in all builds ([`agree_on_names`]).
///
/// Two sums of equally many reports are added up at once, as in a binary counter. So each report is copied as many times as
/// their number has binary digits, and not once for each report after it.
#[derive(Debug, Default)]
pub struct Merger {
    /// Sums, and of how many reports: fewer from one to the next.
    sums: Vec<(usize, Report)>,
}

impl Merger {
    /// Adds a report.
    pub fn add(&mut self, report: Report) {
        let mut sum = (1, report);
        while let Some(before) = self.sums.pop_if(|(number, _)| *number == sum.0) {
            sum = both(before, sum);
        }
        self.sums.push(sum);
    }

    /// Returns the number of reports that were added.
    #[must_use]
    pub fn number(&self) -> usize {
        self.sums.iter().map(|(number, _)| number).sum()
    }

    /// Returns the sum of all reports.
    #[must_use]
    pub fn finish(mut self) -> Report {
        let Some(mut sum) = self.sums.pop() else {
            return Report::default();
        };
        while let Some(before) = self.sums.pop() {
            sum = both(before, sum);
        }
        let (number, mut report) = sum;
        if number > 1 {
            add_notes(&mut report, number);
        }
        report
    }
}

fn both(before: (usize, Report), after: (usize, Report)) -> (usize, Report) {
    let mut reports = [before.1, after.1];
    agree_on_names(&mut reports);
    let sum = summed(&reports, |_, name| name.to_owned());
    (before.0 + after.0, sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Mark, Moment};

    fn report(rss: &[(u64, u64)], still_recording: bool) -> Report {
        let mut report = Report::default();
        let moment = |&(at_ms, rss)| Moment {
            at_ms,
            rss,
            ..Moment::default()
        };
        report.timeline = rss.iter().map(moment).collect();
        report.conditions.still_recording = still_recording;
        report
    }

    #[test]
    fn a_process_that_still_runs_is_in_the_sum_until_the_end() {
        let sums = |still_recording| {
            let mut merger = Merger::default();
            merger.add(report(&[(0, 10), (50, 20)], still_recording));
            merger.add(report(&[(0, 1), (100, 2)], still_recording));
            merger.add(report(&[(0, 100)], still_recording));
            let timeline = merger.finish().timeline;
            timeline.iter().map(|it| it.rss).collect::<Vec<_>>()
        };
        assert_eq!(sums(true), [111, 121, 122]);
        assert_eq!(sums(false), [111, 21, 2], "ended ones are gone");
    }

    #[test]
    fn marks_keep_their_names_and_there_is_one_note_of_all() {
        let mut merger = Merger::default();
        for number in 0..7u64 {
            let mut report = report(&[], true);
            report.conditions.hooks = ["got", "global"][number as usize % 2].into();
            report.marks.push(Mark {
                name: format!("{number}/deploy"),
                at_ms: number,
                ..Mark::default()
            });
            merger.add(report);
        }
        assert_eq!(merger.number(), 7);
        let merged = merger.finish();
        let marks: Vec<_> = merged.marks.iter().map(|mark| &*mark.name).collect();
        let expected: Vec<_> = (0..7).map(|number| format!("{number}/deploy")).collect();
        assert_eq!(marks, expected);
        assert_eq!(merged.conditions.hooks, "got, global");
        assert_eq!(merged.conditions.notes.len(), 1);
        assert!(merged.conditions.notes[0].contains("from 7 captures"));
    }
}
