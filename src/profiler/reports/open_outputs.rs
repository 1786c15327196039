//! Outputs that somebody has open: those without a name take disk space that no listing shows, as long as they are read.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use super::OutputSpec;
use crate::profiler::lock::{Lock, LockGuard, Rank};
use crate::profiler::store::{Output, WeakOutput};

/// Bytes that outputs without a name may have together for another one to be made. 512 MiB: an event log's limit.
const NAMELESS: u64 = 512 << 20;
/// Where there is no room for another one, a request for the same gets one that is not older than this.
const SHARED_FOR: Duration = Duration::from_secs(60);

/// Outputs that were given to clients and are still open.
#[derive(Debug)]
pub(super) struct OpenOutputs {
    list: Lock<Vec<(OutputSpec, WeakOutput)>>,
}

impl OpenOutputs {
    pub(super) fn new() -> OpenOutputs {
        OpenOutputs {
            list: Lock::new(Rank::OpenOutputs, Vec::new()),
        }
    }

    fn lock(&self) -> LockGuard<'_, Vec<(OutputSpec, WeakOutput)>> {
        self.list.lock()
    }

    /// Remembers `output`, which is about to be given to a client.
    pub(super) fn remember(&self, spec: OutputSpec, output: &Output) {
        let mut list = self.lock();
        list.retain(|(_, output)| !output.is_gone());
        list.push((spec, output.downgrade()));
    }

    /// Returns whether there is room for another output without a name.
    pub(super) fn has_room(&self) -> bool {
        let mut seen = HashSet::new();
        let mut bytes = 0_u64;
        for (_, output) in &*self.lock() {
            let Some(output) = output.upgrade() else {
                continue;
            };
            // One that is read by several is there once.
            if output.nameless().is_some_and(|file| seen.insert(file)) {
                bytes = bytes.saturating_add(output.len());
            }
        }
        bytes < NAMELESS
    }

    /// Returns the latest one that was made for `spec`, if it is not old.
    pub(super) fn latest(&self, spec: OutputSpec) -> Option<Output> {
        let list = self.lock();
        let same = list.iter().rev().filter(|(other, _)| *other == spec);
        let latest = same.filter_map(|(_, output)| output.upgrade()).next()?;
        let age = SystemTime::now().duration_since(latest.taken());
        (age.ok()? < SHARED_FOR).then_some(latest)
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMELESS, OpenOutputs, OutputSpec};
    use crate::profiler::reports::Origin;
    use crate::profiler::store::{Draft, Label, Output, OutputKey, OutputKind};
    use std::fs::File;
    use std::io::Write;
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    const SPEC: OutputSpec = OutputSpec {
        origin: Origin::Session {
            number: 1,
            recording: true,
        },
        key: OutputKey::new(OutputKind::Report),
    };

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path =
                std::env::temp_dir().join(format!("open-outputs-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        /// A snapshot that claims to be half of what there may be.
        fn snapshot(&self, taken: SystemTime) -> Output {
            let mut draft = Draft::new(&self.0).unwrap();
            draft.write_all(b"x").unwrap();
            let label = Label {
                key: SPEC.key,
                taken,
                snapshot: true,
            };
            draft.detach(label).unwrap().claiming(NAMELESS / 2)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn open_outputs_without_a_name_count_once_and_until_they_are_closed() {
        let folder = Folder::new("count");
        let open = OpenOutputs::new();
        let now = SystemTime::now();
        let one = folder.snapshot(now);
        for _ in 0..3 {
            open.remember(SPEC, &one);
        }
        assert!(open.has_room());
        let two = folder.snapshot(now);
        open.remember(SPEC, &two);
        let clone = two.clone();
        drop(two);
        assert!(!open.has_room(), "somebody still reads it");
        drop(clone);
        assert!(open.has_room());
    }

    #[test]
    fn a_file_counts_when_its_name_is_taken_away() {
        let folder = Folder::new("name");
        let open = OpenOutputs::new();
        let path = folder.0.join("named");
        std::fs::write(&path, "x").unwrap();
        let mut output = folder.snapshot(SystemTime::now()).claiming(NAMELESS);
        output = output.of_file(File::open(&path).unwrap());
        open.remember(SPEC, &output);
        assert!(open.has_room());
        std::fs::remove_file(&path).unwrap();
        assert!(!open.has_room());
    }

    #[test]
    fn a_recent_one_of_the_same_kind_is_found() {
        let folder = Folder::new("share");
        let open = OpenOutputs::new();
        let now = SystemTime::now();
        let old = folder.snapshot(now - Duration::from_secs(3600));
        open.remember(SPEC, &old);
        assert!(open.latest(SPEC).is_none());
        let new = folder.snapshot(now);
        open.remember(SPEC, &new);
        assert_eq!(open.latest(SPEC).map(|found| found.taken()), Some(now));
        let key = OutputKey::new(OutputKind::Stats);
        assert!(open.latest(OutputSpec { key, ..SPEC }).is_none());
        drop((old, new));
        assert!(open.latest(SPEC).is_none());
    }
}
