//! Copies of kept reports in an object storage: the thread that makes them, and the notes that say where they are.

use std::fs;
use std::io;
use std::time::Instant;

use super::archive::remove_if_there;
use super::{Archive, Kept, Note};
use crate::profiler::worker::Worker;

impl Archive {
    /// Wakes `copier` from now on whenever a report is kept.
    pub(crate) fn wake_when_kept(&self, copier: Worker) {
        // It is called once.
        let _ = self.copier.set(copier);
    }

    pub(super) fn wake_copier(&self) {
        if let Some(copier) = self.copier.get() {
            copier.submit(|| ());
        }
    }

    /// Waits until `deadline` for the thread that copies kept reports to have tried to copy the latest one, if there is such
    /// a thread: the process ends.
    pub(crate) fn wait_for_copy(&self, deadline: Instant) {
        if let Some(copier) = self.copier.get() {
            // It looks for new reports before each job.
            copier.run_until(deadline, || ());
        }
    }

    /// Notes that there is a copy of a kept report at `address`. Does nothing if the report is not the kept one any more.
    pub(crate) fn note_copy(&self, kept: &Kept, address: String) -> io::Result<()> {
        let _replacing = self.replacing.lock();
        if self.find(kept.id).is_none_or(|now| now.note != kept.note) {
            return Ok(());
        }
        let note = Note {
            stored: Some(address),
            ..kept.note.clone()
        };
        self.replace_note(kept.id, &note)?;
        // Another thread or process may have deleted the report meanwhile.
        if fs::symlink_metadata(self.report(kept.id)).is_err() {
            remove_if_there(&self.note(kept.id))?;
        }
        Ok(())
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)] // clippy knows only functions marked as tests
mod tests {
    use super::super::ReportId;
    use super::super::archive::tests::Scratch;
    use super::super::note::tests::note;

    #[test]
    fn a_copy_is_noted_for_the_report_that_was_copied_and_for_no_other() {
        let scratch = Scratch::new("copies");
        let archive = scratch.archive(9, u64::MAX);
        scratch.keep(&archive, &scratch.report(), &note(10));
        let copied = archive.find(ReportId(10)).unwrap();
        archive.note_copy(&copied, "s3://b/10.bin".into()).unwrap();
        let noted = archive.find(ReportId(10)).unwrap();
        assert_eq!(noted.note.stored.as_deref(), Some("s3://b/10.bin"));
        // The session's report was made again while the former one was copied.
        scratch.keep(&archive, &scratch.report_of(10), &note(10));
        archive.note_copy(&noted, "s3://b/other".into()).unwrap();
        let again = archive.find(ReportId(10)).unwrap();
        assert_eq!((again.note.stored, again.note.len), (None, 10));
        archive.remove(ReportId(10)).unwrap();
        archive.note_copy(&noted, "s3://b/10.bin".into()).unwrap();
        assert!(archive.list().is_empty() && !scratch.kept(10, "note").exists());
    }
}
