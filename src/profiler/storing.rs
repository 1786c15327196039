//! Copies of the kept reports in an object storage, for when the pod and its disk are gone: put on a thread of its own, the
//! latest report first.
//!
//! The kept reports are the queue. The note of a report says where its copy is, so that a restart puts what is missing and
//! nothing else. A report that is deleted here stays in the storage.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use heapray_report::error_chain;

use super::flight::is_short_of_address_space;
use super::lock::{Lock, Rank};
use super::reports::describe;
use super::status::StoreStatus;
use super::store::{Kept, ReportId, Store};
use super::worker::Worker;
use crate::bucket::{Bucket, BucketError, Content, ObjectName, StoreCounts};
use crate::client::{Backoff, Published};
use crate::config::Config;
use crate::config::store::StoreTarget;
use crate::os::command_line;

/// From one look for reports of other processes to the next.
const LOOK: Duration = Duration::from_secs(60);
/// From one look to the next while address space is short.
const SHORT: Duration = Duration::from_secs(1);
/// Longest time that `shutdown` waits for what is put last.
const LAST: Duration = Duration::from_secs(4);
/// Most characters of a failure that are shown.
const LONGEST_REASON: usize = 500;

/// The thread that puts reports.
#[derive(Debug)]
pub(crate) struct Storing {
    thread: Worker,
    state: Arc<Lock<State>>,
    counts: Arc<Published<StoreCounts>>,
    target: String,
}

#[derive(Debug)]
struct State {
    /// The thread ends with it.
    store: Weak<Store>,
    target: StoreTarget,
    service: String,
    /// Opened when the first report is put.
    bucket: Option<Bucket>,
    /// Reports that wait, and how often each has failed.
    waiting: HashMap<ReportId, u32>,
    /// Reports that cannot be read.
    given_up: HashSet<ReportId>,
    backoff: Backoff,
    /// Not before this.
    retry_at: Option<Instant>,
    counts: Arc<Published<StoreCounts>>,
}

/// Why a report was not put.
enum Failure {
    /// It is not there any more, or not whole.
    Damaged(String),
    Bucket(BucketError),
}

impl From<BucketError> for Failure {
    fn from(error: BucketError) -> Failure {
        Failure::Bucket(error)
    }
}

impl Storing {
    /// Starts the thread, if reports are to be put into an object storage.
    ///
    /// # Errors
    ///
    /// There can be no more threads.
    pub(super) fn start(
        config: &Config,
        store: &Arc<Store>,
    ) -> std::io::Result<Option<Arc<Storing>>> {
        let Some(target) = config.store.clone() else {
            return Ok(None);
        };
        let counts = Arc::new(Published::default());
        let state = State {
            store: Arc::downgrade(store),
            target: target.clone(),
            service: command_line::service(config.service.clone()),
            bucket: None,
            waiting: HashMap::new(),
            given_up: HashSet::new(),
            backoff: Backoff::default(),
            retry_at: None,
            counts: Arc::clone(&counts),
        };
        // A panic in between leaves at worst a report that is put again.
        let state = Arc::new(Lock::new(Rank::Storing, state));
        let looked_at = Arc::clone(&state);
        let thread = Worker::spawn_with("heapray-store", move || {
            let looked = catch_unwind(AssertUnwindSafe(|| looked_at.lock().look()));
            looked.unwrap_or(Some(LOOK))
        })?;
        store.archive.wake_when_kept(thread.clone());
        tracing::info!(%target, "kept reports are copied to an object storage");
        Ok(Some(Arc::new(Storing {
            thread,
            state,
            counts,
            target: target.to_string(),
        })))
    }

    /// Puts what waits until `deadline`, but not for longer than a few seconds: the service ends. What is not put is on disk.
    pub(super) fn finish_until(&self, deadline: Instant) {
        let deadline = deadline.min(Instant::now() + LAST);
        let state = Arc::clone(&self.state);
        let put = self.thread.run_until(deadline, move || {
            let mut state = state.lock();
            // A try that is due later would come too late.
            state.retry_at = None;
            while Instant::now() < deadline && state.look() == Some(Duration::ZERO) {}
        });
        if put.is_none() {
            tracing::warn!(
                "the service ends while a report is copied to the object storage: it is copied after the next start with the same MEMRAY_PROFILER_DIR"
            );
        }
    }

    /// Returns what became of the reports so far.
    pub(super) fn status(&self) -> StoreStatus {
        StoreStatus::of(self.target.clone(), self.counts.read())
    }
}

impl State {
    /// Puts a report, if one waits and may be tried. Returns the time until this should be called again, `None` once there are
    /// no more reports.
    fn look(&mut self) -> Option<Duration> {
        let store = self.store.upgrade()?;
        let mut waiting = self.find_waiting(&store);
        let now = Instant::now();
        if let Some(at) = self.retry_at.filter(|at| now < *at) {
            return Some((at - now).min(LOOK));
        }
        if waiting.is_empty() {
            return Some(LOOK);
        }
        if is_short_of_address_space() {
            return Some(SHORT);
        }
        // One that the storage does not take must not keep the others waiting.
        waiting.sort_by_key(|kept| (self.waiting.get(&kept.id), Reverse(kept.id)));
        self.put_and_count(&store, &waiting[0]);
        let pause = self
            .retry_at
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        Some(pause.min(LOOK))
    }

    /// Returns the kept reports without a copy, and counts those that were deleted without one.
    fn find_waiting(&mut self, store: &Store) -> Vec<Kept> {
        let prefix = format!("{}/", self.target.url);
        let kept = store.archive.list();
        let is_there = |kept: &Kept| {
            let stored = kept.note.stored.as_ref();
            stored.is_some_and(|address| address.starts_with(&prefix))
        };
        let there: HashSet<ReportId> = kept
            .iter()
            .filter(|kept| is_there(kept))
            .map(|kept| kept.id)
            .collect();
        self.given_up
            .retain(|id| kept.iter().any(|kept| kept.id == *id));
        let waits = |kept: &Kept| !there.contains(&kept.id) && !self.given_up.contains(&kept.id);
        let waiting: Vec<Kept> = kept.into_iter().filter(waits).collect();
        let before = std::mem::take(&mut self.waiting);
        let gone = |id: &ReportId| {
            !there.contains(id)
                && waiting.iter().all(|kept| kept.id != *id)
                && !self.given_up.contains(id)
        };
        let dropped = before.keys().filter(|id| gone(id)).count();
        for kept in &waiting {
            let failures = before.get(&kept.id).copied().unwrap_or_default();
            self.waiting.insert(kept.id, failures);
        }
        self.counts.change(|counts| {
            counts.dropped += dropped as u64;
            counts.waiting = waiting.len() as u64;
            counts.waiting_bytes = waiting.iter().map(|kept| kept.note.len).sum();
        });
        waiting
    }

    fn put_and_count(&mut self, store: &Store, kept: &Kept) {
        let id = kept.id;
        match self.put(store, kept) {
            Ok(address) => {
                self.backoff.succeed();
                self.retry_at = None;
                tracing::info!(%id, %address, "a report was copied to the object storage");
                if let Err(error) = store.archive.note_copy(kept, address) {
                    // Without the note it would be put again and again.
                    self.given_up.insert(id);
                    tracing::warn!(%id, %error, "a report is in the object storage, but its note cannot say so: it is put there again after the next start");
                }
                self.waiting.remove(&id);
                self.counts.change(|counts| {
                    counts.stored += 1;
                    counts.last_stored = Some(SystemTime::now());
                    counts.trouble = None;
                    counts.waiting = counts.waiting.saturating_sub(1);
                    counts.waiting_bytes = counts.waiting_bytes.saturating_sub(kept.note.len);
                });
            }
            Err(Failure::Damaged(reason)) => {
                tracing::warn!(%id, %reason, "a report is not copied to the object storage");
                self.given_up.insert(id);
                self.waiting.remove(&id);
                self.counts.change(|counts| counts.dropped += 1);
            }
            Err(Failure::Bucket(error)) => {
                let reason = shown(&error_chain(&error).to_string());
                self.retry_at = Some(Instant::now() + self.backoff.fail(None));
                *self.waiting.entry(id).or_default() += 1;
                if self.counts.read().trouble.is_none() {
                    // Once, and again when it has worked meanwhile: a storage may be out of reach for days.
                    tracing::warn!(%id, %reason, "a report was not copied to the object storage: it waits, and is tried again");
                }
                self.counts.change(|counts| {
                    counts.failures += 1;
                    counts.trouble = Some(reason);
                });
            }
        }
    }

    /// Puts a report and then its note, so that a note in the storage says that the report is whole. Returns the report's
    /// address.
    fn put(&mut self, store: &Store, kept: &Kept) -> Result<String, Failure> {
        let opened = store.archive.stored(kept).open_and_verify();
        let opened = opened.map_err(|error| Failure::Damaged(error.to_string()))?;
        let mut report = opened.ok_or_else(|| Failure::Damaged("its file is damaged".into()))?;
        let bucket = match &mut self.bucket {
            Some(bucket) => bucket,
            none => none.insert(Bucket::open(&self.target)?),
        };
        let note = &kept.note;
        let id = kept.id.to_string();
        let name = ObjectName::of(&self.service, &id, &note.host, note.life, note.started);
        let address = bucket.put(&name, Content::Report, &mut report, note.len)?;
        let about = about(kept.clone(), &self.service, &address);
        bucket.put(
            &name,
            Content::Note,
            &mut about.as_bytes(),
            about.len() as u64,
        )?;
        Ok(address)
    }
}

/// Returns what a list shows of a report, as JSON.
fn about(kept: Kept, service: &str, address: &str) -> String {
    let mut described = describe(kept, None);
    described.stored = Some(address.to_owned());
    let mut about = serde_json::to_value(described).unwrap_or_default();
    if let Some(facts) = about.as_object_mut() {
        // It is of a moment.
        facts.remove("present");
        facts.insert("service".into(), service.into());
        facts.insert("heapray".into(), env!("CARGO_PKG_VERSION").into());
    }
    format!("{about:#}\n")
}

/// Returns a failure as one line that is not too long.
fn shown(reason: &str) -> String {
    let words: Vec<&str> = reason.split_whitespace().collect();
    let line = words.join(" ");
    let plain = line.chars().filter(|c| !c.is_control());
    plain.take(LONGEST_REASON).collect()
}
