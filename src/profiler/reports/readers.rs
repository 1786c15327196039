//! Clients that read an output piece by piece. A client that takes nothing for long loses a file that nobody else could
//! remove.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::profiler::lock::{Lock, LockGuard, Rank};
use crate::profiler::store::Output;

/// A reader of an output without a name that takes nothing for so long loses it. What the system holds for a connection,
/// up to some megabytes, counts as taken: a reader at 64 KiB a second is not in danger.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Time from one check of the readers to the next, while there are any.
const EVERY: Duration = Duration::from_secs(5);
/// Where the room is needed for others, a reader has to take so many bytes a second on average, after [`FIRST`].
const SLOWEST: u64 = 64 << 10;
const FIRST: Duration = Duration::from_secs(10);

/// All readers.
#[derive(Debug)]
pub(crate) struct Readers {
    list: Lock<Vec<Weak<Reader>>>,
    checked: Lock<Option<Instant>>,
}

/// A client that reads an output.
#[derive(Debug)]
pub(crate) struct Reader {
    /// `None`: it was taken away.
    output: Lock<Option<Output>>,
    since: Instant,
    /// When the reader last asked for bytes, in milliseconds from `since`, and how many it has got.
    asked: AtomicU64,
    taken: AtomicU64,
}

impl Readers {
    pub(super) fn new() -> Readers {
        Readers {
            list: Lock::new(Rank::Readers, Vec::new()),
            checked: Lock::new(Rank::ReaderCheck, None),
        }
    }

    fn lock(&self) -> LockGuard<'_, Vec<Weak<Reader>>> {
        self.list.lock()
    }

    /// Adds a reader of `output`.
    pub(crate) fn open(&self, output: Output) -> Arc<Reader> {
        let reader = Arc::new(Reader {
            output: Lock::new(Rank::Reader, Some(output)),
            since: Instant::now(),
            asked: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        });
        self.lock().push(Arc::downgrade(&reader));
        reader
    }

    /// Takes the output away from idle readers. To be called again after the time that it returns, or before.
    pub(super) fn check(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut checked = self.checked.lock();
        let due = checked.is_none_or(|last| now.duration_since(last) >= EVERY);
        if due {
            *checked = Some(now);
            self.cut(now, false);
        }
        (!self.lock().is_empty()).then_some(EVERY)
    }

    /// Takes the output away from slow readers: others need the disk space.
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
    /// Returns what is read; `None` if that took too long.
    pub(crate) fn output(&self) -> Option<Output> {
        let output = self.output.lock();
        output.clone()
    }

    /// Notes that the client has taken all that it was sent, and that `bytes` more are on their way.
    pub(crate) fn takes(&self, bytes: u64) {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.asked.store(now, Ordering::Relaxed);
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    fn lose(&self, now: Instant, room_is_needed: bool) -> Option<Output> {
        let reads_for = now.saturating_duration_since(self.since);
        let asked = Duration::from_millis(self.asked.load(Ordering::Relaxed));
        let is_idle = reads_for.saturating_sub(asked) >= LONGEST_PAUSE;
        let due = SLOWEST.saturating_mul(reads_for.as_secs());
        let is_slow = reads_for >= FIRST && self.taken.load(Ordering::Relaxed) < due;
        if !(is_idle || room_is_needed && is_slow) {
            return None;
        }
        let mut output = self.output.lock();
        // One that has a name takes no room of its own.
        output.take_if(|output| output.nameless().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST, LONGEST_PAUSE, Readers, SLOWEST};
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
    fn a_reader_that_takes_nothing_for_long_loses_what_has_no_name() {
        let readers = Readers::new();
        let reader = readers.open(snapshot());
        let named = std::env::temp_dir().join(format!("readers-{}", std::process::id()));
        std::fs::write(&named, "x").unwrap();
        let file = std::fs::File::open(&named).unwrap();
        let of_named = readers.open(snapshot().of_file(file));
        let start = Instant::now();
        readers.cut(start + LONGEST_PAUSE - Duration::from_secs(1), false);
        assert!(reader.output().is_some());
        readers.cut(start + LONGEST_PAUSE + Duration::from_secs(1), false);
        assert!(reader.output().is_none());
        assert!(of_named.output().is_some());
        std::fs::remove_file(&named).unwrap();
        readers.cut(start + LONGEST_PAUSE + Duration::from_secs(1), false);
        assert!(of_named.output().is_none(), "its name is gone by now");
    }

    #[test]
    fn a_slow_reader_loses_its_output_to_others_only() {
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
    fn without_readers_no_check_is_due() {
        let readers = Readers::new();
        let reader = readers.open(snapshot());
        assert!(readers.check().is_some());
        drop(reader);
        readers.cut(Instant::now(), false);
        assert_eq!(readers.check(), None);
    }
}
