//! Clients that read an output piece by piece. Who takes nothing for long loses a file that nobody else could remove.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::profiler::store::Output;

/// A reader of an output without a name that takes nothing for so long has lost it. What the system holds for a connection,
/// up to some megabytes, counts as taken: a reader at 64 KiB a second is in no danger.
const PATIENCE: Duration = Duration::from_secs(60);
/// From one look at the readers to the next, while there are any.
const EVERY: Duration = Duration::from_secs(5);
/// Where the room is needed for others, a reader has to take so many bytes a second on average, after [`FIRST`].
const SLOWEST: u64 = 64 << 10;
const FIRST: Duration = Duration::from_secs(10);

/// All who read.
#[derive(Debug)]
pub(crate) struct Readers {
    list: Mutex<Vec<Weak<Reader>>>,
    looked: Mutex<Option<Instant>>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Reader {
    /// `None`: it was taken away.
    output: Mutex<Option<Output>>,
    since: Instant,
    /// When the reader last asked for bytes, in milliseconds from `since`, and how many it has got.
    asked: AtomicU64,
    taken: AtomicU64,
}

impl Readers {
    pub(super) fn new() -> Readers {
        Readers {
            list: Mutex::default(),
            looked: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Reader>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new reader of `output`.
    pub(crate) fn open(&self, output: Output) -> Arc<Reader> {
        let reader = Arc::new(Reader {
            output: Mutex::new(Some(output)),
            since: Instant::now(),
            asked: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        });
        self.lock().push(Arc::downgrade(&reader));
        reader
    }

    /// Takes the output away from those who are idle; called now and then, at least after the time that it returns.
    pub(super) fn look(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let due = looked.is_none_or(|last| now.duration_since(last) >= EVERY);
        if due {
            *looked = Some(now);
            self.cut(now, false);
        }
        (!self.lock().is_empty()).then_some(EVERY)
    }

    /// Takes the output away from those who are slow, since others need the room.
    pub(super) fn make_room(&self) {
        self.cut(Instant::now(), true);
    }

    fn cut(&self, now: Instant, room_is_needed: bool) {
        let cut: Vec<Output> = {
            let mut list = self.lock();
            list.retain(|reader| reader.strong_count() > 0);
            let readers = list.iter().filter_map(Weak::upgrade);
            readers
                .filter_map(|reader| reader.lose(now, room_is_needed))
                .collect()
        };
        if !cut.is_empty() {
            let bytes: u64 = cut.iter().map(Output::len).sum();
            tracing::info!(
                readers = cut.len(),
                bytes,
                "left clients that had not taken what they asked for"
            );
        }
    }
}

impl Reader {
    /// What is read; `None` if that took too long.
    pub(crate) fn output(&self) -> Option<Output> {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.clone()
    }

    /// The client has taken all that it was sent, and `bytes` more are on their way.
    pub(crate) fn takes(&self, bytes: u64) {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.asked.store(now, Ordering::Relaxed);
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    fn lose(&self, now: Instant, room_is_needed: bool) -> Option<Output> {
        let reads_for = now.saturating_duration_since(self.since);
        let asked = Duration::from_millis(self.asked.load(Ordering::Relaxed));
        let is_idle = reads_for.saturating_sub(asked) >= PATIENCE;
        let due = SLOWEST.saturating_mul(reads_for.as_secs());
        let is_slow = reads_for >= FIRST && self.taken.load(Ordering::Relaxed) < due;
        if !(is_idle || room_is_needed && is_slow) {
            return None;
        }
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has a name takes no room of its own.
        output.take_if(|output| output.nameless().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST, PATIENCE, Readers, SLOWEST};
    use crate::profiler::store::{Draft, Label, Output, OutputKey, OutputKind};
    use std::io::Write;
    use std::time::{Duration, Instant, SystemTime};

    fn snapshot() -> Output {
        let mut draft = Draft::new(&std::env::temp_dir()).unwrap();
        draft.write_all(b"x").unwrap();
        let label = Label {
            key: OutputKey::new(OutputKind::Report),
            taken: SystemTime::now(),
            snapshot: true,
        };
        draft.detach(label).unwrap()
    }

    #[test]
    fn who_takes_nothing_for_long_loses_what_has_no_name() {
        let readers = Readers::new();
        let reader = readers.open(snapshot());
        let named = std::env::temp_dir().join(format!("readers-{}", std::process::id()));
        std::fs::write(&named, "x").unwrap();
        let file = std::fs::File::open(&named).unwrap();
        let of_named = readers.open(snapshot().of_file(file));
        let start = Instant::now();
        readers.cut(start + PATIENCE - Duration::from_secs(1), false);
        assert!(reader.output().is_some());
        readers.cut(start + PATIENCE + Duration::from_secs(1), false);
        assert!(reader.output().is_none());
        assert!(of_named.output().is_some());
        std::fs::remove_file(&named).unwrap();
        readers.cut(start + PATIENCE + Duration::from_secs(1), false);
        assert!(of_named.output().is_none(), "its name is gone by now");
    }

    #[test]
    fn who_is_slow_loses_it_to_others_only() {
        let readers = Readers::new();
        let (slow, quick) = (readers.open(snapshot()), readers.open(snapshot()));
        let later = FIRST + Duration::from_secs(5);
        quick.takes(SLOWEST * 20);
        slow.takes(SLOWEST);
        readers.cut(Instant::now() + later, false);
        assert!(slow.output().is_some());
        readers.cut(Instant::now() + FIRST / 2, true);
        assert!(slow.output().is_some(), "it has just begun");
        readers.cut(Instant::now() + later, true);
        assert!(slow.output().is_none());
        assert!(quick.output().is_some());
    }

    #[test]
    fn nobody_looks_where_nobody_reads() {
        let readers = Readers::new();
        let reader = readers.open(snapshot());
        assert!(readers.look().is_some());
        drop(reader);
        readers.cut(Instant::now(), false);
        assert_eq!(readers.look(), None);
    }
}
