//! One bound for everything that heapray has on disk in a directory (`MEMRAY_PROFILER_KEEP_BYTES`), over restarts and for all
//! processes that use the directory.
//!
//! Half of it is for the event log of the running session ([`Archive::log_limit`]); everything else must fit into the other
//! half when a session begins. If there is too little room, files are deleted in this order:
//!
//! ```text
//! 1  finished outputs of dead processes: a report among them is kept as well, under its number
//! 2  event logs that are left for `heapray recover`, the oldest first
//! 3  kept reports, the lowest ranks first: of each sort (sessions, the flight recorder's, killed processes'; the last ones
//!    and the worst ones, which held the most) the first has rank 0, the next 1, and so on. A crash loop, which leaves
//!    reports of one sort, does not drive out the others
//! 4  event logs of dead processes that wait to be recovered, the oldest first
//! ```
//!
//! Files of a living process are never deleted.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;

use super::disk::{self, Found, Sum, What};
use super::name::Passing;
use super::{Archive, Kept, ReportId};
use crate::os::held;
use crate::session::log_name::LogName;

impl Archive {
    /// Returns how many bytes the event log of a session may have.
    pub(crate) fn log_limit(&self) -> u64 {
        self.keep_bytes / 2
    }

    /// Returns how many bytes everything may have together.
    pub(crate) fn bound(&self) -> u64 {
        self.keep_bytes
    }

    /// Returns how many bytes are left of the bound.
    pub(crate) fn left(&self) -> u64 {
        self.keep_bytes.saturating_sub(disk::bytes(&self.directory))
    }

    /// Deletes kept reports beyond the numbers that may be kept, and other files in the order above until the rest and
    /// `reserve` more bytes are within the bound. `silently`: logs nothing, since a thread that holds the lock of the
    /// service's log may wait for this.
    pub(crate) fn make_room(&self, reserve: u64, silently: bool) {
        self.clear(reserve, silently, |_| true);
    }

    /// Does what [`make_room`](Self::make_room) does for a report that may also be written shorter: the first report of each
    /// sort stays, and so do logs that wait to be recovered.
    pub(crate) fn make_way(&self, reserve: u64) {
        self.clear(reserve, false, |order| order < (3, u32::MAX));
    }

    fn clear(&self, reserve: u64, silently: bool, goes: impl Fn((u32, u32)) -> bool) {
        // One list for both: a report that another process keeps meanwhile has no rank yet, and stays.
        let list = self.list();
        let ranks = self.ranks(&list);
        for kept in &list {
            if !ranks.contains_key(&kept.id) {
                self.drop_kept(kept.id, silently);
            }
        }
        let bound = self.keep_bytes.saturating_sub(reserve);
        let found = disk::scan(&self.directory);
        let mut sum = Sum::of(&found);
        if sum.bytes <= bound {
            return;
        }
        let mut candidates: Vec<((u32, u32), &Found)> = found
            .iter()
            .filter_map(|file| Some((order(file, &ranks)?, file)))
            .filter(|(order, _)| goes(*order))
            .collect();
        candidates.sort_by_key(|(order, file)| (*order, file.modified, file.path.as_path()));
        for (_, file) in candidates {
            if sum.bytes <= bound {
                break;
            }
            match file.what {
                What::Report(id) => {
                    // Its other link would take as much.
                    if sum.is_last(file) {
                        self.drop_kept(id, silently);
                        sum.remove(file);
                        let note = file.path.with_extension("note");
                        if let Some(note) = found.iter().find(|found| found.path == note) {
                            sum.remove(note);
                        }
                    }
                }
                _ => {
                    if let Some(_claimed) = held::claim(&file.path)
                        && fs::remove_file(&file.path).is_ok()
                    {
                        sum.remove(file);
                        if !silently && file.what != What::Output {
                            let path = file.path.display();
                            tracing::warn!(%path, "an event log that was not recovered is deleted: there is no room for it");
                        }
                    }
                }
            }
        }
    }

    fn drop_kept(&self, id: ReportId, silently: bool) {
        if !silently {
            tracing::info!(%id, "deleting a kept report: there are newer or worse ones");
        }
        // A file that cannot be deleted is tried again with the next report.
        let _ = self.remove(id);
    }

    /// Returns the reports that may stay, with their ranks: rank 0 is deleted last.
    fn ranks(&self, list: &[Kept]) -> HashMap<ReportId, u32> {
        let (mut sessions, mut killed, mut flight) = (Vec::new(), Vec::new(), Vec::new());
        for kept in list {
            match &kept.note.trigger {
                None => sessions.push(kept),
                Some(trigger) if trigger.kind.is_recovered() => killed.push(kept),
                Some(_) => flight.push(kept),
            }
        }
        let mut ranks = HashMap::new();
        rank(&mut ranks, &sessions, self.keep);
        for mut sort in [flight, killed] {
            rank(&mut ranks, &sort, self.keep_triggered);
            sort.sort_by_key(|kept| Reverse((kept.note.live.bytes, kept.id)));
            rank(&mut ranks, &sort, self.keep_triggered);
        }
        ranks
    }
}

fn rank(ranks: &mut HashMap<ReportId, u32>, sort: &[&Kept], keep: usize) {
    for (place, kept) in (0..).zip(sort.iter().take(keep)) {
        let rank = ranks.entry(kept.id).or_insert(place);
        *rank = place.min(*rank);
    }
}

/// Returns the place in the order of deletion, the least first; `None` if the file stays.
fn order(file: &Found, ranks: &HashMap<ReportId, u32>) -> Option<(u32, u32)> {
    match file.what {
        What::Output => Some((1, 0)),
        What::Passing(Passing::Log(LogName { kept: true, .. })) => Some((2, 0)),
        What::Report(id) => {
            // A report without a rank is being kept at this moment, by another process.
            let rank = ranks.get(&id)?;
            Some((3, u32::MAX - rank))
        }
        What::Passing(Passing::Log(LogName { kept: false, .. })) => Some((4, 0)),
        What::Passing(Passing::Draft) | What::Note => None,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::archive::tests::{Scratch, ids, triggered};
    use super::super::note::tests::note;
    use super::*;
    use crate::flight_recorder::TriggerKind;

    /// A report of 20,000 bytes; its note has less than 1,000.
    fn large(scratch: &Scratch) -> std::path::PathBuf {
        scratch.report_of(20_000)
    }

    #[test]
    fn a_crash_loop_drives_out_neither_the_sessions_reports_nor_the_worst() {
        let scratch = Scratch::new("loop");
        // Room for five.
        let archive = Archive::new(&scratch.0, 3, 108_000, 3);
        let path = large(&scratch);
        scratch.keep(&archive, &path, &note(5));
        let flight = triggered(TriggerKind::Host, 7, 500);
        scratch.keep(&archive, &path, &flight);
        for life in 0..100 {
            let mut killed = triggered(TriggerKind::Killed, 1_000 + life, 10 + life % 7);
            killed.trigger.as_mut().unwrap().at_end = true;
            if life == 3 {
                killed.live.bytes = 9_000;
            }
            scratch.keep(&archive, &path, &killed);
            assert!(disk::bytes(&scratch.0) <= 108_000);
        }
        // The worst of all, the last ones, the flight recorder's and the session's.
        let left = ids(&archive);
        assert!(left.len() >= 4, "{left:?}");
        for id in [1_099, 1_003, 8, 5] {
            assert!(left.contains(&id), "{id} {left:?}");
        }
    }

    #[test]
    fn what_goes_first_is_what_is_worth_least() {
        let scratch = Scratch::new("order");
        let archive = Archive::new(&scratch.0, 3, u64::MAX, 3);
        let path = large(&scratch);
        scratch.keep(&archive, &path, &note(5));
        let put = |name: &str| fs::write(scratch.0.join(name), vec![0; 20_000]).unwrap();
        put("memray-flamegraph.html");
        put("heapray-1-0123456789abcdef-1.kept.spool");
        put("heapray-1-0123456789abcdef-2.spool");
        fs::remove_file(&path).unwrap();
        let names = || {
            let mut names: Vec<_> = disk::scan(&scratch.0)
                .iter()
                .map(|found| found.path.extension().unwrap().to_owned())
                .collect();
            names.sort();
            names
        };
        for (bound, left) in [
            (90_000, &["bin", "html", "note", "spool", "spool"][..]),
            (79_000, &["bin", "note", "spool", "spool"]),
            (59_000, &["bin", "note", "spool"]),
            (39_000, &["spool"]),
            (10, &[]),
        ] {
            Archive::new(&scratch.0, 3, bound, 3).make_room(0, false);
            assert_eq!(names(), left, "{bound}");
        }
    }

    #[test]
    fn files_of_a_process_that_lives_stay_and_count() {
        let scratch = Scratch::new("lives");
        let (path, file) =
            held::create(&scratch.0, crate::session::log_name::new_names(1)).unwrap();
        file.set_len(50_000).unwrap();
        let archive = Archive::new(&scratch.0, 3, 60_000, 3);
        archive.make_room(60_000, false);
        assert!(path.exists());
        assert_eq!(archive.left(), 10_000);
        drop(file);
        archive.make_way(60_000);
        assert!(path.exists(), "it waits to be recovered");
        archive.make_room(60_000, false);
        assert!(!path.exists());
    }
}
