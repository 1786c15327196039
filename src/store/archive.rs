//! The reports of the last few sessions, kept when a new one begins, and over a restart of the service where its
//! directory outlives it; and those that were written while a session went on.
//!
//! ```text
//! heapray-reports/1795252380250.bin     the report: another name of the one that the session left, where links can be
//! heapray-reports/1795252380250.note    what is told of it in a list, written after it
//! ```
//!
//! The directory is for this user alone, and so are its files; what does not look so is not read. Other processes may
//! use it at the same time: nothing is remembered here that is not looked at again.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::directory::{is_ours_alone, is_private, private};
use super::file::{Label, Stored, create_draft, open};
use super::note::{LONGEST, Note, millis};
use super::{OutputKey, OutputKind, ReportId};

/// Its name in the profiler's directory.
const NAME: &str = "heapray-reports";

/// The kept reports.
#[derive(Debug)]
pub(crate) struct Archive {
    path: PathBuf,
    keep: usize,
    keep_bytes: u64,
    /// Of those that the flight recorder wrote: so many of the last, and of the worst.
    keep_triggered: usize,
}

/// A report that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) id: ReportId,
    pub(crate) note: Note,
}

/// Files that are looked at in the directory: whatever else is there, a list takes bounded time.
const LOOKED_AT: usize = 10_000;

impl Archive {
    /// The archive in `directory`. Creates nothing.
    pub(crate) fn new(
        directory: &Path,
        keep: u32,
        keep_bytes: u64,
        keep_triggered: u32,
    ) -> Archive {
        Archive {
            keep_triggered: usize::try_from(keep_triggered).unwrap_or(usize::MAX),
            path: directory.join(NAME),
            keep: usize::try_from(keep).unwrap_or(usize::MAX),
            keep_bytes,
        }
    }

    /// Keeps the report at `path`, and no more of the others than there is room for. `None` if there is no room for
    /// this one. A report of the same session replaces the former one.
    pub(crate) fn keep(&self, path: &Path, note: &Note) -> io::Result<Option<ReportId>> {
        let keep = if note.trigger.is_some() {
            self.keep_triggered
        } else {
            self.keep
        };
        if keep == 0 || note.len > self.keep_bytes {
            return Ok(None);
        }
        private(&self.path)?;
        let id = self.free_id(note);
        let draft = self.path.join(format!(".{id}-{}", std::process::id()));
        let _ = fs::remove_file(&draft);
        // A second name costs nothing; where the file system has none, a copy does.
        let linked = fs::hard_link(path, &draft).or_else(|_| copy(path, &draft));
        let placed = linked.and_then(|()| fs::rename(&draft, self.report(id)));
        placed.inspect_err(|_| drop(fs::remove_file(&draft)))?;
        let mut file = create_draft(&draft)?;
        let written = file
            .write_all(note.write().as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&draft, self.note(id)));
        written.inspect_err(|_| drop(fs::remove_file(&draft)))?;
        self.prune(note.trigger.is_some());
        Ok(Some(id))
    }

    /// The kept reports, the latest session's first. None where there is no directory, or where others may write to it.
    pub(crate) fn list(&self) -> Vec<Kept> {
        if is_private(&self.path).is_err() {
            return Vec::new();
        }
        let entries = fs::read_dir(&self.path).into_iter().flatten();
        let mut kept: Vec<Kept> = entries
            .take(LOOKED_AT)
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name();
                self.find(ReportId::parse(name.to_str()?.strip_suffix(".note")?)?)
            })
            .collect();
        kept.sort_by_key(|kept| std::cmp::Reverse(kept.id));
        kept
    }

    /// The kept report of that number.
    pub(crate) fn find(&self, id: ReportId) -> Option<Kept> {
        is_private(&self.path).ok()?;
        let mut text = String::new();
        let file = open_ours(&self.note(id)).ok()?;
        file.take(LONGEST).read_to_string(&mut text).ok()?;
        let note = Note::read(&text)?;
        let report = fs::symlink_metadata(self.report(id)).ok()?;
        let sound = report.is_file() && is_ours_alone(&report) && report.len() == note.len;
        sound.then_some(Kept { id, note })
    }

    /// The report's file, to be opened and verified.
    pub(crate) fn stored(&self, kept: &Kept) -> Stored {
        let label = Label {
            key: OutputKey::new(OutputKind::Report),
            taken: kept.note.ended,
            snapshot: false,
        };
        Stored::noted(self.report(kept.id), label, kept.note.len, kept.note.hash)
    }

    /// Deletes the report of that number. Whether there was one.
    pub(crate) fn remove(&self, id: ReportId) -> io::Result<bool> {
        if is_private(&self.path).is_err() {
            return Ok(false);
        }
        // The note first: without one, a report is a leftover.
        let noted = remove_if_there(&self.note(id))?;
        let stored = remove_if_there(&self.report(id))?;
        Ok(noted || stored)
    }

    /// Removes the directory if nothing is in it.
    pub(crate) fn remove_if_empty(&self) {
        // Not empty, or never made: it stays as it is.
        let _ = fs::remove_dir(&self.path);
    }

    /// The number for a report: that of its session's start, or the next one where another process has that. Of one that
    /// was written while its session went on, the moment is its own.
    fn free_id(&self, note: &Note) -> ReportId {
        let goes_on = |note: &Note| note.trigger.as_ref().is_some_and(|trigger| !trigger.at_end);
        let moment = if goes_on(note) {
            note.ended
        } else {
            note.started
        };
        let mut id = ReportId(millis(moment));
        while let Some(other) = self.find(id) {
            let same = (other.note.pid, other.note.session, other.note.started)
                == (note.pid, note.session, note.started);
            if same && !goes_on(note) && !goes_on(&other.note) {
                break;
            }
            id.0 += 1;
        }
        id
    }

    /// Deletes the oldest reports until the others are within both bounds. Those of the flight recorder have bounds of
    /// their own: the worst ones, which held the most, stay longer. `silently`: a thread that has the log's lock may wait
    /// for this.
    fn prune(&self, silently: bool) {
        let list = self.list();
        let mut triggered: Vec<&Kept> = list
            .iter()
            .filter(|kept| kept.note.trigger.is_some())
            .collect();
        let mut staying: Vec<ReportId> = Vec::new();
        staying.extend(
            triggered
                .iter()
                .take(self.keep_triggered)
                .map(|kept| kept.id),
        );
        triggered.sort_by_key(|kept| std::cmp::Reverse((kept.note.live.bytes, kept.id)));
        staying.extend(
            triggered
                .iter()
                .take(self.keep_triggered)
                .map(|kept| kept.id),
        );
        let (mut bytes, mut sessions) = (0_u64, 0);
        for kept in &list {
            let stays = if kept.note.trigger.is_some() {
                staying.contains(&kept.id)
            } else {
                sessions += 1;
                sessions <= self.keep
            };
            if stays {
                bytes = bytes.saturating_add(kept.note.len);
            }
            if !stays || bytes > self.keep_bytes {
                if !silently {
                    tracing::info!(id = %kept.id, "deleting the report of an old session");
                }
                // One that cannot be deleted is tried again with the next report.
                let _ = self.remove(kept.id);
            }
        }
    }

    fn report(&self, id: ReportId) -> PathBuf {
        self.path.join(format!("{id}.bin"))
    }

    fn note(&self, id: ReportId) -> PathBuf {
        self.path.join(format!("{id}.note"))
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = create_draft(to)?;
    io::copy(&mut open_ours(from)?, &mut file)?;
    file.sync_all()
}

/// Opens a file of this user's.
fn open_ours(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    let found = file.metadata()?;
    if found.is_file() && is_ours_alone(&found) {
        Ok(file)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

fn remove_if_there(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)] // clippy knows only functions marked as tests
mod tests {
    use super::super::note::tests::note;
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// An empty directory that goes when it is dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path =
                std::env::temp_dir().join(format!("heapray-archive-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Scratch(path)
        }

        fn archive(&self, keep: u32, keep_bytes: u64) -> Archive {
            Archive::new(&self.0, keep, keep_bytes, 2)
        }

        /// A report of five bytes as a session leaves it.
        fn report(&self) -> PathBuf {
            let path = self.0.join("memray-report.bin");
            let _ = fs::remove_file(&path);
            create_draft(&path).unwrap().write_all(b"12345").unwrap();
            path
        }

        fn kept(&self, id: u64, ending: &str) -> PathBuf {
            self.0.join(NAME).join(format!("{id}.{ending}"))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn ids(archive: &Archive) -> Vec<u64> {
        archive.list().iter().map(|kept| kept.id.0).collect()
    }

    #[test]
    fn the_latest_are_kept_within_both_bounds() {
        let scratch = Scratch::new("bounds");
        for (keep, keep_bytes, left) in [
            (3, 1_000, &[60, 50, 40][..]),
            (9, 10, &[60, 50]),
            (9, 4, &[]),
            (0, 1_000, &[]),
        ] {
            let archive = scratch.archive(keep, keep_bytes);
            for old in scratch.archive(9, 1_000).list() {
                archive.remove(old.id).unwrap();
            }
            for started in [10, 20, 30, 40, 50, 60] {
                archive.keep(&scratch.report(), &note(started)).unwrap();
            }
            assert_eq!(ids(&archive), left, "{keep} {keep_bytes}");
            let files = fs::read_dir(scratch.0.join(NAME)).unwrap().count();
            assert_eq!(files, 2 * left.len());
        }
    }

    #[test]
    fn the_last_and_the_worst_of_the_flight_recorder_are_kept_beside_those_of_sessions() {
        use super::super::note::Triggered;
        let scratch = Scratch::new("worst");
        let archive = scratch.archive(1, 1_000);
        archive.keep(&scratch.report(), &note(5)).unwrap();
        archive.keep(&scratch.report(), &note(8)).unwrap();
        for (ended, live) in [
            (100, 50),
            (200, 10),
            (300, 90),
            (400, 20),
            (500, 30),
            (500, 1),
        ] {
            let mut triggered = note(8);
            triggered.ended = std::time::UNIX_EPOCH + std::time::Duration::from_millis(ended);
            triggered.live.bytes = live;
            triggered.trigger = Some(Triggered {
                kind: crate::flight_recorder::TriggerKind::Step,
                reason: String::new(),
                at_end: false,
            });
            archive.keep(&scratch.report(), &triggered).unwrap();
        }
        assert_eq!(ids(&archive), [501, 500, 300, 100, 8]);
        // The session's own replaces its own.
        archive.keep(&scratch.report(), &note(8)).unwrap();
        assert_eq!(ids(&archive), [501, 500, 300, 100, 8]);
    }

    #[test]
    fn a_report_of_the_same_session_replaces_the_former_and_another_of_that_moment_does_not() {
        let scratch = Scratch::new("same");
        let archive = scratch.archive(5, 1_000);
        archive.keep(&scratch.report(), &note(10)).unwrap();
        archive.keep(&scratch.report(), &note(10)).unwrap();
        assert_eq!(ids(&archive), [10]);
        let other = Note { pid: 8, ..note(10) };
        archive.keep(&scratch.report(), &other).unwrap();
        assert_eq!(ids(&archive), [11, 10]);
    }

    #[test]
    fn a_kept_report_outlives_the_name_that_its_session_gave_it() {
        let scratch = Scratch::new("outlives");
        let archive = scratch.archive(5, 1_000);
        archive.keep(&scratch.report(), &note(10)).unwrap();
        fs::remove_file(scratch.0.join("memray-report.bin")).unwrap();
        assert_eq!(fs::read(scratch.kept(10, "bin")).unwrap(), b"12345");
        let id = ids(&archive)[0];
        assert!(archive.remove(ReportId(id)).unwrap());
        assert!(!archive.remove(ReportId(id)).unwrap(), "there is none now");
        archive.remove_if_empty();
        assert!(!scratch.0.join(NAME).exists());
    }

    #[test]
    fn what_others_could_have_put_there_is_not_trusted() {
        let scratch = Scratch::new("trust");
        let archive = scratch.archive(5, 1_000);
        let fresh = || {
            let _ = fs::remove_dir_all(scratch.0.join(NAME));
            archive.keep(&scratch.report(), &note(10)).unwrap();
            assert_eq!(ids(&archive), [10]);
        };
        let open_to_others =
            |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
        let link = |path: &Path| {
            let aside = scratch.0.join("aside");
            fs::rename(path, &aside).unwrap();
            symlink(&aside, path).unwrap();
        };
        for (what, strike) in [
            (
                "the note is a link",
                &(|| link(&scratch.kept(10, "note"))) as &dyn Fn(),
            ),
            ("the report is a link", &|| link(&scratch.kept(10, "bin"))),
            ("the note is open", &|| {
                open_to_others(&scratch.kept(10, "note"))
            }),
            ("the report is open", &|| {
                open_to_others(&scratch.kept(10, "bin"))
            }),
            ("the report is shorter", &|| {
                fs::write(scratch.kept(10, "bin"), "1").unwrap()
            }),
            ("the note is damaged", &|| {
                fs::write(scratch.kept(10, "note"), "1").unwrap()
            }),
            ("the directory is open", &|| {
                let mode = fs::Permissions::from_mode(0o777);
                fs::set_permissions(scratch.0.join(NAME), mode).unwrap();
            }),
            ("the directory is a link", &|| link(&scratch.0.join(NAME))),
        ] {
            let _ = fs::remove_file(scratch.0.join("aside"));
            fresh();
            strike();
            assert!(ids(&archive).is_empty(), "{what}");
            assert!(archive.find(ReportId(10)).is_none(), "{what}");
            if what == "the directory is a link" {
                fs::remove_file(scratch.0.join(NAME)).unwrap();
                assert!(!archive.remove(ReportId(10)).unwrap());
            }
        }
    }

    #[test]
    fn a_report_that_goes_by_number_takes_no_room_from_another() {
        use super::super::note::Triggered;
        let scratch = Scratch::new("room");
        let archive = scratch.archive(1, 10);
        let mut triggered = note(10);
        triggered.trigger = Some(Triggered {
            kind: crate::flight_recorder::TriggerKind::Step,
            reason: String::new(),
            at_end: false,
        });
        archive.keep(&scratch.report(), &triggered).unwrap();
        let list = ids(&archive);
        archive.keep(&scratch.report(), &note(2000)).unwrap();
        archive.keep(&scratch.report(), &note(3000)).unwrap();
        assert_eq!(ids(&archive), [3000, list[0]]);
    }
}
