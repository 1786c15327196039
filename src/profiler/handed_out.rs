//! Outputs that somebody has: those without a name take disk that no listing shows, as long as they are read.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::outputs::Trip;
use crate::profiler::store::{Faint, Output};

/// Bytes that outputs without a name may have together for another one to be made. 512 MiB: an event log's limit.
const NAMELESS: u64 = 512 << 20;
/// Where there is no room for another one, who asks for the same so soon gets that.
const SHARED_FOR: Duration = Duration::from_secs(60);

/// What was handed out and is still open.
#[derive(Debug, Default)]
pub(super) struct HandedOut {
    list: Mutex<Vec<(Trip, Faint)>>,
}

impl HandedOut {
    fn lock(&self) -> MutexGuard<'_, Vec<(Trip, Faint)>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `output` is about to be given to those who asked for it.
    pub(super) fn remember(&self, trip: Trip, output: &Output) {
        let mut list = self.lock();
        list.retain(|(_, output)| !output.is_gone());
        list.push((trip, output.downgrade()));
    }

    /// Whether there is room for another output without a name.
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

    /// The latest one that was made for `trip`, if it is not old.
    pub(super) fn latest(&self, trip: Trip) -> Option<Output> {
        let list = self.lock();
        let same = list.iter().rev().filter(|(other, _)| *other == trip);
        let latest = same.filter_map(|(_, output)| output.upgrade()).next()?;
        let age = SystemTime::now().duration_since(latest.taken());
        (age.ok()? < SHARED_FOR).then_some(latest)
    }
}

#[cfg(test)]
mod tests {
    use super::{HandedOut, NAMELESS, Trip};
    use crate::profiler::outputs::Origin;
    use crate::profiler::store::{Draft, Label, Output, OutputKey, OutputKind};
    use std::fs::File;
    use std::io::Write;
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    const TRIP: Trip = Trip {
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
                std::env::temp_dir().join(format!("handed-out-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        /// A snapshot that claims to be half of what there may be.
        fn snapshot(&self, taken: SystemTime) -> Output {
            let mut draft = Draft::new(&self.0).unwrap();
            draft.write_all(b"x").unwrap();
            let label = Label {
                key: TRIP.key,
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
        let handed = HandedOut::default();
        let now = SystemTime::now();
        let one = folder.snapshot(now);
        for _ in 0..3 {
            handed.remember(TRIP, &one);
        }
        assert!(handed.has_room());
        let two = folder.snapshot(now);
        handed.remember(TRIP, &two);
        let clone = two.clone();
        drop(two);
        assert!(!handed.has_room(), "somebody still reads it");
        drop(clone);
        assert!(handed.has_room());
    }

    #[test]
    fn a_file_counts_when_its_name_is_taken_away() {
        let folder = Folder::new("name");
        let handed = HandedOut::default();
        let path = folder.0.join("named");
        std::fs::write(&path, "x").unwrap();
        let mut output = folder.snapshot(SystemTime::now()).claiming(NAMELESS);
        output = output.of_file(File::open(&path).unwrap());
        handed.remember(TRIP, &output);
        assert!(handed.has_room());
        std::fs::remove_file(&path).unwrap();
        assert!(!handed.has_room());
    }

    #[test]
    fn a_recent_one_of_the_same_kind_is_found() {
        let folder = Folder::new("share");
        let handed = HandedOut::default();
        let now = SystemTime::now();
        let old = folder.snapshot(now - Duration::from_secs(3600));
        handed.remember(TRIP, &old);
        assert!(handed.latest(TRIP).is_none());
        let new = folder.snapshot(now);
        handed.remember(TRIP, &new);
        assert_eq!(handed.latest(TRIP).map(|found| found.taken()), Some(now));
        let key = OutputKey::new(OutputKind::Stats);
        assert!(handed.latest(Trip { key, ..TRIP }).is_none());
        drop((old, new));
        assert!(handed.latest(TRIP).is_none());
    }
}
