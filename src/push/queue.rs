//! Profiles that wait for the server, oldest first: files, so that they outlive the process. Bounded: the oldest is dropped.
//!
//! Where nothing can be written, the last few wait in memory.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::owner::{self, Owner};
use super::profile::PushedProfile;
use crate::os::unique::life;

/// The folder in the profiler's directory.
pub(crate) const FOLDER: &str = "push";
/// Most profiles that wait in memory.
const IN_MEMORY: usize = 4;
/// Longest file that is read.
const LONGEST: u64 = 64 << 20;
/// Most files that are looked at, so that it takes bounded time.
const LOOKED_AT: usize = 10_000;

/// The profiles.
#[derive(Debug)]
pub(super) struct Queue {
    folder: PathBuf,
    most_bytes: u64,
    owner: Option<Owner>,
    waiting: VecDeque<Waiting>,
    bytes: u64,
    /// Files that were made, for their names.
    made: u64,
}

#[derive(Debug)]
struct Waiting {
    taken_ms: u64,
    bytes: u64,
    place: Place,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    Memory(Box<PushedProfile>),
}

impl Queue {
    /// Returns an empty queue in `directory`. Creates nothing.
    pub(super) fn new(directory: &Path, most_bytes: u64) -> Queue {
        Queue {
            folder: directory.join(FOLDER),
            most_bytes,
            owner: None,
            waiting: VecDeque::new(),
            bytes: 0,
            made: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Has `profile` wait. Returns how many were dropped for it.
    pub(super) fn put(&mut self, profile: PushedProfile) -> u64 {
        let taken_ms = profile.head.taken_ms;
        let content = profile.to_bytes();
        let bytes = content.len() as u64;
        let mut dropped = self.make_room(bytes);
        if bytes > self.most_bytes {
            return dropped + 1;
        }
        let place = match self.write(taken_ms, &content) {
            Ok(path) => Place::File(path),
            Err(error) => {
                tracing::debug!(%error, "a profile waits in memory, because it cannot be written to disk");
                dropped += self.make_room_in_memory();
                Place::Memory(Box::new(profile))
            }
        };
        self.enter(Waiting {
            taken_ms,
            bytes,
            place,
        });
        dropped
    }

    /// Returns the oldest profile. Files that are gone or damaged are dropped; their number comes with it.
    pub(super) fn first(&mut self) -> (Option<PushedProfile>, u64) {
        let mut dropped = 0;
        while let Some(first) = self.waiting.front() {
            match &first.place {
                Place::Memory(profile) => return (Some((**profile).clone()), dropped),
                Place::File(path) => match read(path) {
                    Some(profile) => return (Some(profile), dropped),
                    None => {
                        self.remove_first();
                        dropped += 1;
                    }
                },
            }
        }
        (None, dropped)
    }

    /// Removes the oldest profile.
    pub(super) fn remove_first(&mut self) {
        if let Some(first) = self.waiting.pop_front() {
            self.left(&first);
        }
    }

    /// Takes over the profiles of processes that live no more. Returns how many were dropped, because there are too many.
    pub(super) fn adopt(&mut self) -> u64 {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return 0;
        };
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        let names: Vec<String> = names.take(LOOKED_AT).collect();
        let lives: HashSet<u64> = names
            .iter()
            .filter_map(|name| owner::parts(name))
            .map(|(life, _)| life)
            .collect();
        for other in lives.into_iter().filter(|&other| other != life()) {
            if owner::is_dead(&self.folder, other) {
                let of_it =
                    |name: &&String| owner::parts(name).is_some_and(|(life, _)| life == other);
                names
                    .iter()
                    .filter(of_it)
                    .for_each(|name| self.take_over(name));
            }
        }
        self.make_room(0)
    }

    fn take_over(&mut self, name: &str) {
        let path = self.folder.join(name);
        if name.ends_with(owner::DRAFT) {
            let _ = fs::remove_file(path);
            return;
        }
        let Some(taken_ms) = owner::taken_ms(name) else {
            return;
        };
        let Ok(bytes) = fs::symlink_metadata(&path).map(|found| found.len()) else {
            return;
        };
        if self.own().is_err() {
            return;
        }
        let own = self.new_path(taken_ms);
        // Of two processes at once, one renames the file.
        if fs::rename(path, &own).is_ok() {
            self.enter(Waiting {
                taken_ms,
                bytes,
                place: Place::File(own),
            });
        }
    }

    /// Makes the folder and this process's lock if they are missing.
    fn own(&mut self) -> io::Result<()> {
        if self.owner.is_none() {
            let mut builder = DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.recursive(true).create(&self.folder)?;
            self.owner = Some(Owner::take(&self.folder, life())?);
        }
        Ok(())
    }

    fn new_path(&mut self, taken_ms: u64) -> PathBuf {
        self.made += 1;
        let name = owner::profile_name(life(), taken_ms, self.made);
        self.folder.join(name)
    }

    fn write(&mut self, taken_ms: u64, content: &[u8]) -> io::Result<PathBuf> {
        self.own()?;
        let path = self.new_path(taken_ms);
        let draft = path.with_extension(&owner::DRAFT[1..]);
        let written = fs::write(&draft, content).and_then(|()| fs::rename(&draft, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(draft);
            // Somebody may have removed the folder: the next profile makes it again.
            self.owner = None;
            return Err(error);
        }
        Ok(path)
    }

    fn enter(&mut self, entry: Waiting) {
        self.bytes += entry.bytes;
        let later = |other: &Waiting| other.taken_ms <= entry.taken_ms;
        let at = self.waiting.partition_point(later);
        self.waiting.insert(at, entry);
    }

    fn left(&mut self, entry: &Waiting) {
        self.bytes -= entry.bytes;
        if let Place::File(path) = &entry.place {
            // A file that cannot be removed is pushed twice, after a restart.
            let _ = fs::remove_file(path);
        }
    }

    /// Drops the oldest until `bytes` more may wait. Returns how many.
    fn make_room(&mut self, bytes: u64) -> u64 {
        let mut dropped = 0;
        while self.bytes.saturating_add(bytes) > self.most_bytes && !self.is_empty() {
            self.remove_first();
            dropped += 1;
        }
        dropped
    }

    fn make_room_in_memory(&mut self) -> u64 {
        let in_memory = |entry: &Waiting| matches!(entry.place, Place::Memory(_));
        let all = self.waiting.iter().filter(|entry| in_memory(entry)).count();
        if all < IN_MEMORY {
            return 0;
        }
        let oldest = self.waiting.iter().position(in_memory);
        let entry = oldest.and_then(|at| self.waiting.remove(at));
        entry.map_or(0, |entry| {
            self.left(&entry);
            1
        })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            drop(owner);
            // Fails if something is in it.
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

fn read(path: &Path) -> Option<PushedProfile> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > LONGEST {
        return None;
    }
    let mut content = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(LONGEST).read_to_end(&mut content).ok()?;
    PushedProfile::from_bytes(&content)
}

#[cfg(test)]
mod tests {
    use super::super::profile::tests::profile;
    use super::*;
    use crate::os::unique::unique;

    fn directory() -> PathBuf {
        let path = std::env::temp_dir().join(format!("heapray-push-{:016x}", unique()));
        fs::create_dir(&path).unwrap();
        path
    }

    fn at(taken_ms: u64) -> PushedProfile {
        let mut profile = profile();
        profile.head.taken_ms = taken_ms;
        // All files are of the same length.
        profile.head.id = 1;
        profile
    }

    fn order(queue: &mut Queue) -> Vec<u64> {
        let mut order = Vec::new();
        while let (Some(profile), 0) = queue.first() {
            order.push(profile.head.taken_ms);
            queue.remove_first();
        }
        order
    }

    #[test]
    fn the_oldest_is_first_and_the_first_to_be_dropped() {
        let directory = directory();
        let bytes = at(1).to_bytes().len() as u64;
        let mut queue = Queue::new(&directory, 3 * bytes);
        assert_eq!([2, 1, 3].map(|ms| queue.put(at(ms))), [0, 0, 0]);
        assert_eq!((queue.len(), queue.bytes()), (3, 3 * bytes));
        assert_eq!(queue.put(at(4)), 1);
        assert_eq!(order(&mut queue), [2, 3, 4]);
        assert_eq!(queue.bytes(), 0);
        drop(queue);
        assert!(!directory.join(FOLDER).exists());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn what_a_dead_process_has_left_is_taken_over_and_a_living_ones_is_not() {
        let directory = directory();
        let mut queue = Queue::new(&directory, 1 << 20);
        assert_eq!(queue.put(at(5)), 0);
        let folder = directory.join(FOLDER);
        let living = Owner::take(&folder, 7).unwrap();
        for (life, taken) in [(7, 1), (8, 2), (8, 9)] {
            let path = folder.join(owner::profile_name(life, taken, 1));
            fs::write(path, at(taken).to_bytes()).unwrap();
        }
        fs::write(folder.join("push-0000000000000008-1-1.draft"), "x").unwrap();
        fs::write(folder.join("somebody's"), "x").unwrap();
        assert_eq!(queue.adopt(), 0);
        assert_eq!(order(&mut queue), [2, 5, 9]);
        drop(living);
        queue.adopt();
        assert_eq!(order(&mut queue), [1]);
        let left: Vec<_> = fs::read_dir(&folder).unwrap().flatten().collect();
        assert_eq!(left.len(), 2, "{left:?}");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_damaged_file_is_dropped_and_counted() {
        let directory = directory();
        let mut queue = Queue::new(&directory, 1 << 20);
        queue.put(at(1));
        queue.put(at(2));
        let Place::File(path) = &queue.waiting[0].place else {
            panic!("it is on disk")
        };
        fs::write(path, "not a profile").unwrap();
        let (first, dropped) = queue.first();
        assert_eq!((first.unwrap().head.taken_ms, dropped), (2, 1));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn where_nothing_can_be_written_the_last_few_wait_in_memory() {
        let directory = directory();
        fs::write(directory.join(FOLDER), "a file in its place").unwrap();
        let mut queue = Queue::new(&directory, 1 << 20);
        let dropped: u64 = (1..=6).map(|ms| queue.put(at(ms))).sum();
        assert_eq!(dropped, 2);
        assert_eq!(order(&mut queue), [3, 4, 5, 6]);
        fs::remove_dir_all(directory).unwrap();
    }
}
