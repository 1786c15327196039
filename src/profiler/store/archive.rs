//! The kept reports: those of the last few sessions, and those that the flight recorder wrote. They outlive a restart of the
//! service if its directory does.
//!
//! ```text
//! heapray-reports/1795252380250.bin     the report: a hard link to the session's own, where the file system has those
//! heapray-reports/1795252380250.note    what a list shows of it; written after it
//! ```
//!
//! Directory and files belong to this user alone; files that do not are not read. Other processes may use the directory at
//! the same time, so nothing is cached here.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::directory::{is_ours_alone, is_private, private};
use super::disk::LOOKED_AT;
use super::file::{Label, Output, Stored, is_same, open};
use super::note::{LONGEST, Note, millis};
use super::written::WrittenReports;
use super::{OutputKey, OutputKind, ReportId, name};
use crate::os::held;
use crate::profiler::lock::{Lock, Rank};
#[cfg(feature = "store")]
use crate::profiler::worker::Worker;

/// Name of the folder in the profiler's directory.
pub(super) const REPORTS: &str = "heapray-reports";

/// The kept reports.
#[derive(Debug)]
pub(crate) struct Archive {
    /// The profiler's directory.
    pub(super) directory: PathBuf,
    path: PathBuf,
    pub(super) keep: usize,
    /// Bytes that heapray may have on disk in the directory.
    pub(super) keep_bytes: u64,
    /// How many of the flight recorder's reports are kept: so many of the latest and so many of the largest. As many of
    /// killed processes.
    pub(super) keep_triggered: usize,
    written: WrittenReports,
    /// While a report or its note is replaced. A panic leaves at worst a report without a note, which is cleared away.
    pub(super) replacing: Lock<()>,
    /// The thread that copies kept reports.
    #[cfg(feature = "store")]
    pub(super) copier: std::sync::OnceLock<Worker>,
}

/// A report that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) id: ReportId,
    pub(crate) note: Note,
}

impl Archive {
    /// Returns the archive in `directory`. Creates nothing.
    pub(crate) fn new(
        directory: &Path,
        keep: u32,
        keep_bytes: u64,
        keep_triggered: u32,
    ) -> Archive {
        Archive {
            keep_triggered: usize::try_from(keep_triggered).unwrap_or(usize::MAX),
            directory: directory.to_owned(),
            path: directory.join(REPORTS),
            keep: usize::try_from(keep).unwrap_or(usize::MAX),
            keep_bytes,
            written: WrittenReports::default(),
            replacing: Lock::new(Rank::KeptReports, ()),
            #[cfg(feature = "store")]
            copier: std::sync::OnceLock::new(),
        }
    }

    /// Returns the archive in `directory`, without a bound.
    pub(super) fn in_directory(directory: &Path) -> Archive {
        Archive::new(directory, u32::MAX, u64::MAX, u32::MAX)
    }

    /// Keeps `report`, which is at `path` unless another process has put its own there, and deletes others that there is no
    /// room for. Returns `None` if there is no room for this one. A report of the same session replaces the former one.
    pub(crate) fn keep(
        &self,
        path: &Path,
        report: &Output,
        note: &Note,
    ) -> io::Result<Option<ReportId>> {
        let kept = self.keep_if_there_is_room(path, report, note)?;
        let trigger = note.trigger.as_ref().map(|trigger| trigger.kind);
        // The report of a stopped session is there even if none is kept.
        if kept.is_some() || trigger.is_none() {
            self.written.count(trigger);
        }
        Ok(kept)
    }

    /// Returns how many reports this process has written.
    pub(crate) fn written(&self) -> &WrittenReports {
        &self.written
    }

    /// Recalls when the kept reports were written, for what asks when the last one was. A report that was written just before
    /// the process was killed is seen by nobody until the next one runs.
    pub(crate) fn recall_earlier_reports(&self) {
        for Kept { note, .. } in self.list() {
            let trigger = note.trigger.as_ref().map(|trigger| trigger.kind);
            self.written.recall(trigger, note.ended);
        }
    }

    fn keep_if_there_is_room(
        &self,
        path: &Path,
        report: &Output,
        note: &Note,
    ) -> io::Result<Option<ReportId>> {
        let keep = if note.trigger.is_some() {
            self.keep_triggered
        } else {
            self.keep
        };
        if keep == 0 || note.len > self.keep_bytes {
            return Ok(None);
        }
        private(&self.path)?;
        let replacing = self.replacing.lock();
        let (id, _held) = self.place(path, report, note)?;
        self.write_note(id, note)?;
        drop(replacing);
        self.make_room(0, note.trigger.is_some());
        #[cfg(feature = "store")]
        self.wake_copier();
        Ok(Some(id))
    }

    /// Links or copies the report's file into the folder. A copy is returned with its lock, since a process that clears up
    /// takes an unlocked report without a note for a dead process's. A link has the lock of `report`.
    fn place(
        &self,
        path: &Path,
        report: &Output,
        note: &Note,
    ) -> io::Result<(ReportId, Option<File>)> {
        let (mut id, replaces) = self.free_id(note);
        if replaces {
            // Without a note it does not count as a report, until it has its own.
            remove_if_there(&self.note(id))?;
            remove_if_there(&self.report(id))?;
        }
        loop {
            let named = self.report(id);
            // A link costs nothing; where the file system has no links, it is a copy. Either fails if another process has
            // just put its own file there.
            let placed = match fs::hard_link(path, &named) {
                Ok(()) if is_file(&named, report.file()) => Ok(None),
                Ok(()) => fs::remove_file(&named).and_then(|()| copy(report, &named).map(Some)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                Err(_) => copy(report, &named).map(Some),
            };
            match placed {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => id.0 += 1,
                placed => return placed.map(|held| (id, held)),
            }
        }
    }

    fn write_note(&self, id: ReportId, note: &Note) -> io::Result<()> {
        self.replace_note(id, note)
            .inspect_err(|_| drop(fs::remove_file(self.report(id))))
    }

    pub(super) fn replace_note(&self, id: ReportId, note: &Note) -> io::Result<()> {
        let (draft, mut file) = held::create(&self.path, name::draft)?;
        let written = file
            .write_all(note.write().as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&draft, self.note(id)));
        written.inspect_err(|_| drop(fs::remove_file(&draft)))
    }

    /// Moves the kept reports of another archive, whose process is dead, into this one.
    pub(super) fn take_over(&self, other: &Archive) -> io::Result<()> {
        for kept in other.list() {
            private(&self.path)?;
            let stored = other.report(kept.id);
            // Held until it has its note here.
            let _held = held::claim(&stored);
            let report = other.stored(&kept).open_unchecked()?;
            let (id, _copy) = self.place(&stored, &report, &kept.note)?;
            self.write_note(id, &kept.note)?;
            other.remove(kept.id)?;
        }
        Ok(())
    }

    /// Returns whether the report that was made at the end of that session of that process is kept.
    pub(crate) fn has_session(&self, life: u64, started: std::time::SystemTime) -> bool {
        let same = |note: &Note| (note.life, millis(note.started)) == (life, millis(started));
        let at_end = |note: &Note| note.trigger.as_ref().is_none_or(|trigger| trigger.at_end);
        let list = self.list();
        life != 0
            && list
                .iter()
                .any(|kept| same(&kept.note) && at_end(&kept.note))
    }

    /// Returns the kept reports, the latest session's first. Empty if there is no folder, or if others may write to it.
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

    /// Returns the kept report of that number.
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

    /// Returns the report's file, to be opened and verified.
    pub(crate) fn stored(&self, kept: &Kept) -> Stored {
        let label = Label {
            key: OutputKey::new(OutputKind::Report),
            taken: kept.note.ended,
            snapshot: false,
        };
        Stored::noted(self.report(kept.id), label, kept.note.len, kept.note.hash)
    }

    /// Deletes the report of that number. Returns whether there was one.
    pub(crate) fn remove(&self, id: ReportId) -> io::Result<bool> {
        if is_private(&self.path).is_err() {
            return Ok(false);
        }
        // The note first: a report without one is cleared away.
        let noted = remove_if_there(&self.note(id))?;
        let stored = remove_if_there(&self.report(id))?;
        Ok(noted || stored)
    }

    /// Removes the directory if nothing is in it.
    pub(crate) fn remove_if_empty(&self) {
        // Fails if it is not empty or was never made.
        let _ = fs::remove_dir(&self.path);
    }

    /// Returns a free number for a report: the millisecond at which its session began, or the next if another process has
    /// that. For a report that was written during its session, it is the millisecond of writing. Also returns whether the
    /// number is that of a report of the same session, to be replaced.
    fn free_id(&self, note: &Note) -> (ReportId, bool) {
        let goes_on = |note: &Note| note.trigger.as_ref().is_some_and(|trigger| !trigger.at_end);
        let moment = if goes_on(note) {
            note.ended
        } else {
            note.started
        };
        let mut id = ReportId(millis(moment));
        while let Some(other) = self.find(id) {
            let same = (other.note.pid, other.note.life, other.note.session)
                == (note.pid, note.life, note.session)
                && other.note.started == note.started;
            if same && !goes_on(note) && !goes_on(&other.note) {
                return (id, true);
            }
            id.0 += 1;
        }
        (id, false)
    }

    pub(super) fn report(&self, id: ReportId) -> PathBuf {
        self.path.join(format!("{id}.bin"))
    }

    pub(super) fn note(&self, id: ReportId) -> PathBuf {
        self.path.join(format!("{id}.note"))
    }
}

fn is_file(path: &Path, file: &File) -> bool {
    let (there, own) = (fs::symlink_metadata(path), file.metadata());
    there.is_ok_and(|there| own.is_ok_and(|own| is_same(&there, &own)))
}

fn copy(report: &Output, to: &Path) -> io::Result<File> {
    let (_, mut file) = held::create_at(to)?;
    let copied = io::copy(&mut report.clone(), &mut file).and_then(|_| file.sync_all());
    copied.inspect_err(|_| drop(fs::remove_file(to)))?;
    Ok(file)
}

/// Opens a file that belongs to this user.
fn open_ours(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    let found = file.metadata()?;
    if found.is_file() && is_ours_alone(&found) {
        Ok(file)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)] // clippy knows only functions marked as tests
pub(super) mod tests {
    use super::super::note::Triggered;
    use super::super::note::tests::note;
    use super::*;
    use crate::flight_recorder::TriggerKind;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// An empty directory that goes when it is dropped.
    pub(in crate::profiler::store) struct Scratch(pub(in crate::profiler::store) PathBuf);

    impl Scratch {
        pub(in crate::profiler::store) fn new(name: &str) -> Scratch {
            let path =
                std::env::temp_dir().join(format!("heapray-archive-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Scratch(path)
        }

        pub(in crate::profiler::store) fn archive(&self, keep: u32, keep_bytes: u64) -> Archive {
            Archive::new(&self.0, keep, keep_bytes, 2)
        }

        /// A report of five bytes as a session leaves it.
        pub(in crate::profiler::store) fn report(&self) -> PathBuf {
            self.report_of(5)
        }

        pub(in crate::profiler::store) fn report_of(&self, length: usize) -> PathBuf {
            let path = self.0.join("memray-report.bin");
            let _ = fs::remove_file(&path);
            let (_, mut file) = held::create_at(&path).unwrap();
            file.write_all(&b"12345".repeat(length / 5)).unwrap();
            path
        }

        /// Keeps the report at `path`.
        pub(in crate::profiler::store) fn keep(&self, archive: &Archive, path: &Path, note: &Note) {
            let mut note = note.clone();
            note.len = fs::metadata(path).unwrap().len();
            let label = Label {
                key: OutputKey::new(OutputKind::Report),
                taken: note.ended,
                snapshot: false,
            };
            let stored = Stored::noted(path.to_owned(), label, note.len, note.hash);
            let report = stored.open_unchecked().unwrap();
            archive.keep(path, &report, &note).unwrap();
        }

        pub(in crate::profiler::store) fn kept(&self, id: u64, ending: &str) -> PathBuf {
            self.0.join(REPORTS).join(format!("{id}.{ending}"))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Of a report that was written by itself.
    pub(in crate::profiler::store) fn triggered(
        kind: TriggerKind,
        started: u64,
        live: u64,
    ) -> Note {
        let mut triggered = note(started);
        triggered.live.bytes = live;
        triggered.trigger = Some(Triggered {
            kind,
            reason: String::new(),
            at_end: false,
        });
        triggered
    }

    pub(in crate::profiler::store) fn ids(archive: &Archive) -> Vec<u64> {
        archive.list().iter().map(|kept| kept.id.0).collect()
    }

    #[test]
    fn the_latest_are_kept_within_both_bounds() {
        let scratch = Scratch::new("bounds");
        let long = Note {
            len: 1_000,
            ..note(10)
        };
        let one = 1_000 + long.write().len() as u64;
        for (keep, keep_bytes, left) in [
            (3, 1_000_000, &[60, 50, 40][..]),
            (9, 2 * one, &[60, 50]),
            (9, 999, &[]),
            (0, 1_000_000, &[]),
        ] {
            let archive = scratch.archive(keep, keep_bytes);
            for old in scratch.archive(9, 1_000_000).list() {
                archive.remove(old.id).unwrap();
            }
            for started in [10, 20, 30, 40, 50, 60] {
                // A report without a name of its own counts once.
                let report = scratch.report_of(1_000);
                scratch.keep(&archive, &report, &note(started));
                // Without a process that has it, it may be gone already.
                let _ = fs::remove_file(report);
            }
            archive.make_room(0, false);
            assert_eq!(ids(&archive), left, "{keep} {keep_bytes}");
            let files = fs::read_dir(scratch.0.join(REPORTS)).unwrap().count();
            assert_eq!(files, 2 * left.len());
        }
    }

    #[test]
    fn the_last_and_the_worst_of_the_flight_recorder_are_kept_beside_those_of_sessions() {
        let scratch = Scratch::new("worst");
        let archive = scratch.archive(1, 1_000_000);
        scratch.keep(&archive, &scratch.report(), &note(5));
        scratch.keep(&archive, &scratch.report(), &note(8));
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
                kind: TriggerKind::Step,
                reason: String::new(),
                at_end: false,
            });
            scratch.keep(&archive, &scratch.report(), &triggered);
        }
        assert_eq!(ids(&archive), [501, 500, 300, 100, 8]);
        // The session's own replaces its own.
        scratch.keep(&archive, &scratch.report(), &note(8));
        assert_eq!(ids(&archive), [501, 500, 300, 100, 8]);
    }

    #[test]
    fn a_report_of_the_same_session_replaces_the_former_and_another_of_that_moment_does_not() {
        let scratch = Scratch::new("same");
        let archive = scratch.archive(5, 1_000_000);
        scratch.keep(&archive, &scratch.report(), &note(10));
        scratch.keep(&archive, &scratch.report(), &note(10));
        assert_eq!(ids(&archive), [10]);
        let other = Note {
            life: 8,
            ..note(10)
        };
        scratch.keep(&archive, &scratch.report(), &other);
        assert_eq!(ids(&archive), [11, 10]);
    }

    #[test]
    fn a_kept_report_outlives_the_name_that_its_session_gave_it() {
        let scratch = Scratch::new("outlives");
        let archive = scratch.archive(5, 1_000_000);
        scratch.keep(&archive, &scratch.report(), &note(10));
        fs::remove_file(scratch.0.join("memray-report.bin")).unwrap();
        assert_eq!(fs::read(scratch.kept(10, "bin")).unwrap(), b"12345");
        let id = ids(&archive)[0];
        assert!(archive.remove(ReportId(id)).unwrap());
        assert!(!archive.remove(ReportId(id)).unwrap(), "there is none now");
        archive.remove_if_empty();
        assert!(!scratch.0.join(REPORTS).exists());
    }

    #[test]
    fn what_others_could_have_put_there_is_not_trusted() {
        let scratch = Scratch::new("trust");
        let archive = scratch.archive(5, 1_000_000);
        let fresh = || {
            let _ = fs::remove_dir_all(scratch.0.join(REPORTS));
            scratch.keep(&archive, &scratch.report(), &note(10));
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
                fs::set_permissions(scratch.0.join(REPORTS), mode).unwrap();
            }),
            ("the directory is a link", &|| {
                link(&scratch.0.join(REPORTS))
            }),
        ] {
            let _ = fs::remove_file(scratch.0.join("aside"));
            fresh();
            strike();
            assert!(ids(&archive).is_empty(), "{what}");
            assert!(archive.find(ReportId(10)).is_none(), "{what}");
            if what == "the directory is a link" {
                fs::remove_file(scratch.0.join(REPORTS)).unwrap();
                assert!(!archive.remove(ReportId(10)).unwrap());
            }
        }
    }

    #[test]
    fn a_report_that_goes_by_number_takes_no_room_from_another() {
        let scratch = Scratch::new("room");
        let archive = scratch.archive(1, 10_000);
        let mut triggered = note(10);
        triggered.trigger = Some(Triggered {
            kind: TriggerKind::Step,
            reason: String::new(),
            at_end: false,
        });
        scratch.keep(&archive, &scratch.report(), &triggered);
        let list = ids(&archive);
        scratch.keep(&archive, &scratch.report(), &note(2000));
        scratch.keep(&archive, &scratch.report(), &note(3000));
        assert_eq!(ids(&archive), [3000, list[0]]);
    }
}
