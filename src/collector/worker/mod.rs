//! The collector's thread: it merges rings, applies events, reads the clock and the resident size, and answers requests.

mod request;
mod scopes;

use std::fs::File;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::bound::{Bound, Holdings};
use super::clock::Clock;
use super::entries::Bounds;
use super::export::Export;
use super::figures::{Publisher, Running, Sums};
use super::log::{LogWriter, Process};
use super::merge::{Merge, MergeStats};
use super::notice::{Headroom, Notice, Observer};
use super::recording::Recording;
use super::retire::Retirement;
use super::snapshot::{Hooks, Snapshot};
use super::tables::Tables;
use super::threads::Threads;
use crate::capture::sampling::{self, Metered};
use crate::capture::{self, arch, clock, control, hook, memory, record, room, unwind};
use crate::flight_recorder::{Reason, TriggerKind, Usage, Watch};
use crate::os::memory as process_memory;
use heapray_report::model::{ProcessMemory, Sampling, Tally};
pub use request::{BeginScope, Request, Taken, Visibility};
use scopes::OpenScope;

/// State and sums of a session.
#[derive(Debug, Clone)]
pub struct Counters {
    /// Start of the session.
    pub started: SystemTime,
    /// Recorded allocations and frees.
    pub events: u64,
    /// Everything ever allocated.
    pub allocated: Tally,
    /// Live memory.
    pub live: Tally,
    /// Live memory at the high-water mark.
    pub high_water: Tally,
    /// Events lost.
    pub lost_events: u64,
    /// Time of the first lost event, in milliseconds since the start, if one was lost.
    pub lost_since_ms: Option<u64>,
    /// Memory that heapray holds, in bytes.
    pub own_bytes: u64,
    /// CPU time of the collector's threads, in nanoseconds.
    pub collector_cpu_ns: u64,
    /// Bytes of the event log.
    pub log_bytes: u64,
    /// Reason why there is no event log, if it was given up.
    pub log_given_up: Option<String>,
    /// Sampling of the session, if it samples.
    pub sampling: Option<Sampling>,
    /// Reason why recording has ended without a request, if it has.
    pub ended: Option<String>,
    /// Reason why new call stacks are cut nearer to the root, if they are.
    pub stacks_bounded: Option<String>,
    /// Way in which allocations are recorded.
    pub hooks: Hooks,
    /// Limits on what the session records.
    pub notes: Vec<String>,
}

/// Start values of a collector.
#[derive(Debug)]
pub struct Setup {
    /// Number of the session.
    pub session: u32,
    /// File of the event log, if there is one.
    pub spool: Option<File>,
    /// Size at which the log is given up, in bytes.
    pub log_limit: u64,
    /// Limit on heapray's own memory in bytes, including the making of reports.
    pub overhead_limit: u64,
    /// Average bytes between two samples; 0 if every allocation is recorded.
    pub sample: u64,
    /// Random number of the session's own, for rounding the weights of samples.
    pub seed: u64,
    /// Clock that converts stamps to milliseconds.
    pub clock: Clock,
    /// This process, and the wall clock's time at `clock`'s start.
    pub process: Process,
    /// Receiver of messages that the collector sends without a request.
    pub observer: Observer,
}

/// Number of blocks that may be allocated or freed before room is divided anew.
const BLOCKS: u64 = 4096;

/// Interval of looking for new modules, besides when the program asks for a new module's functions, and of publishing the
/// figures.
const UPKEEP_EVERY: Duration = Duration::from_millis(100);

/// Number of passes, a millisecond apart, before a request is answered although a thread is still writing an older event.
const CATCH_UP_TRIES: usize = 10;

/// Interval of writing the unfinished block of the event log, so that a crash loses little.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Part of the memory limit that the event log may have while its disk does not take it: one of so many.
const LOG_MEMORY: u64 = 16;

/// Longest wait of [`Request::Stop`] for threads that are writing an event. A running thread needs some 20 ns; an
/// interrupted thread waits for a processor.
const LAST_WAIT: Duration = Duration::from_millis(500);

/// Collector: every table, and the one thread that owns them.
#[derive(Debug)]
pub struct Worker {
    merge: Merge,
    recording: Recording,
    started: SystemTime,
    lost_before: u64,
    /// Events that their threads had not finished writing when the session ended.
    unfinished: u64,
    clock: Clock,
    observer: Observer,
    publisher: Publisher,
    watch: Option<Watch>,
    headroom: Headroom,
    bound: Bound,
    /// The holdings when room was last divided.
    divided: Holdings,
    /// Reason why call stacks are cut, if they are.
    stacks_bounded: Option<String>,
    scopes: Vec<OpenScope>,
    retirement: Retirement,
    /// Reason why recording has ended already.
    ended: Option<String>,
    /// Set once the observer has been told that the log was given up.
    log_loss_reported: bool,
    stacks_before: unwind::StackCounts,
    metered_before: Metered,
    memory_due: Instant,
}

impl Worker {
    /// Makes a collector with empty tables.
    pub fn new(mut setup: Setup) -> Worker {
        let watch = setup.observer.take_watch();
        let (started, clock) = (setup.process.started, setup.clock);
        let mut tables = Tables::new(clock).with_threads(Threads::new(Bounds::default(), name_of));
        if let Some(spool) = setup.spool {
            let memory = setup.overhead_limit / LOG_MEMORY;
            let log = LogWriter::new(spool, setup.log_limit, memory);
            tables = tables.with_log(log.of_process(setup.process));
        }
        if setup.sample > 0 {
            tables = tables.with_samples(setup.sample, setup.seed);
        }
        let worker = Worker {
            merge: Merge::new(setup.session),
            recording: Recording::new(tables),
            started,
            lost_before: record::lost(),
            unfinished: 0,
            clock,
            publisher: setup.observer.publisher(),
            observer: setup.observer,
            watch,
            headroom: Headroom::new(),
            bound: Bound::new(setup.overhead_limit),
            divided: Holdings::default(),
            stacks_bounded: None,
            scopes: Vec::new(),
            retirement: Retirement::new(),
            ended: None,
            log_loss_reported: false,
            stacks_before: unwind::counts(),
            metered_before: sampling::metered(),
            memory_due: Instant::now(),
        };
        // Whoever knows of the session finds it among the figures.
        worker.publisher.publish_last(Running {
            // Its thread does not run yet: the CPU time would be this thread's.
            sums: Sums::default(),
            ..worker.figures()
        });
        worker
    }

    /// Runs until [`Request::Stop`] or [`Request::Abandon`], or until all senders of requests are gone.
    pub fn run(mut self, requests: &Receiver<Request>) {
        let mut upkeep_due = Instant::now() + UPKEEP_EVERY;
        let mut flush_due = Instant::now() + FLUSH_EVERY;
        loop {
            let wake = control::calls();
            self.pass();
            let now = Instant::now();
            if now >= self.memory_due {
                self.read_memory(now);
            }
            self.watch(now);
            self.tell_of_the_log();
            if now >= upkeep_due {
                hook::refresh();
                self.retirement.look(now, &mut self.recording);
                self.publisher.publish(self.figures());
                upkeep_due = now + UPKEEP_EVERY;
            }
            if now >= flush_due {
                self.recording.session_mut().flush_log();
                flush_due = now + FLUSH_EVERY;
            }
            match requests.try_recv() {
                Ok(Request::Counters(visibility, answer)) => {
                    self.catch_up();
                    drop(answer.try_send(self.counters(visibility)));
                }
                Ok(Request::Snapshot(visibility, answer)) => {
                    self.catch_up();
                    drop(answer.try_send(self.snapshot(visibility, true)));
                }
                Ok(Request::Mark(name, answer)) => {
                    self.catch_up();
                    drop(answer.try_send(self.recording.mark(name, clock::stamp())));
                }
                Ok(Request::Top {
                    sites,
                    ages,
                    visibility,
                    answer,
                }) => {
                    self.catch_up();
                    let tables = self.recording.session_mut();
                    let exported = room::at_work(|| tables.export_top(sites, ages));
                    let taken = self.complete(exported, None, visibility, true);
                    drop(answer.try_send(taken.snapshot));
                }
                Ok(Request::Contexts(answer)) => {
                    self.catch_up();
                    let tables = self.recording.session();
                    let sums = room::at_work(|| tables.sums_by_context());
                    drop(answer.try_send(sums));
                }
                Ok(Request::Resample(mean, answer)) => {
                    self.recording.change_mean(mean, clock::stamp());
                    sampling::change(mean);
                    let _gone = answer.try_send(());
                }
                Ok(Request::BeginScope(begin)) => {
                    self.catch_up();
                    self.begin_scope(begin);
                }
                Ok(Request::EndScope(id)) => {
                    self.catch_up();
                    self.end_scope(id, None);
                }
                Ok(Request::Stop(visibility, answer)) => {
                    self.end();
                    drop(answer.try_send(self.snapshot(visibility, false)));
                    return;
                }
                Ok(Request::Abandon) => return self.end(),
                #[cfg(test)]
                Ok(Request::Panic) => panic!("on purpose"),
                #[cfg(test)]
                Ok(Request::Stall(until)) => drop(until.recv()),
                #[cfg(test)]
                Ok(Request::StallLog(until)) => {
                    self.recording
                        .session_mut()
                        .log
                        .as_mut()
                        .unwrap()
                        .stall(until);
                }
                #[cfg(test)]
                Ok(Request::Work(until)) => drop(room::at_work(|| until.recv())),
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {
                    let due = self.memory_due.min(upkeep_due);
                    let due = self
                        .watch
                        .as_ref()
                        .map_or(due, |watch| due.min(watch.due()));
                    sleep(wake, due.saturating_duration_since(Instant::now()));
                }
            }
        }
    }

    /// Applies the remaining events, and ends the open scopes.
    fn end(&mut self) {
        self.unfinished = self.merge.drain(&mut self.recording, LAST_WAIT);
        self.read_memory(Instant::now());
        while let Some(scope) = self.scopes.last() {
            self.end_scope(scope.id, Some("the session ended before it did"));
        }
        self.publisher.publish_last(self.figures());
    }

    /// Applies the events from before a request: a client that asks after an allocation must find the allocation.
    fn catch_up(&mut self) {
        for _ in 0..CATCH_UP_TRIES {
            if self.pass().open_windows == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn pass(&mut self) -> MergeStats {
        if self.ended.is_none()
            && !self.watch.as_ref().is_some_and(Watch::is_writing)
            && let Some(shortage) = self.headroom.shortage(|| self.recording.memory_bytes())
        {
            let now = Instant::now();
            if self.watch.as_mut().is_some_and(|watch| watch.waits(now)) {
                // The tables must not grow meanwhile.
                thread::sleep(Duration::from_millis(1));
                return MergeStats {
                    events: 0,
                    open_windows: 0,
                };
            }
            if !self.makes_room(&shortage) {
                self.end_recording(TriggerKind::AddressSpace, shortage);
            }
        }
        if self.ended.is_none() {
            self.divide_room();
        }
        room::at_work(|| self.merge.pass(&mut self.recording))
    }

    /// Keeps heapray's own memory within its limit: sets how far call stacks and sites may grow until the next pass, and
    /// ends recording if everything else exceeds the limit.
    fn divide_room(&mut self) {
        if self.stacks_bounded.is_none() && (self.recording.has_cut() | memory::was_refused()) {
            let note = self.bound.cut_note(self.clock.at_ms(clock::stamp()));
            self.observer.tell(Notice::StacksCut(note.clone()));
            self.stacks_bounded = Some(note);
        }
        let [nodes, sites, blocks] = self.recording.lengths();
        let now = Holdings {
            bytes: memory::own_bytes() as u64,
            nodes,
            sites,
            blocks: blocks / BLOCKS * BLOCKS,
        };
        // Mostly nothing has grown.
        if now == self.divided {
            return;
        }
        self.divided = now;
        let holdings = Holdings {
            bytes: self.own_bytes(),
            ..now
        };
        let bound = self.bound;
        match bound.room(holdings) {
            Some(room) => {
                self.recording.set_room(room.nodes, room.sites);
                memory::set_most(memory::own_bytes().saturating_add(room.tree_bytes));
            }
            // A report needs much less then.
            None if self
                .recording
                .session_mut()
                .give_up_log(|| bound.log_note()) =>
            {
                self.divided = Holdings::default();
            }
            None => self.end_recording(TriggerKind::Overhead, bound.end_note()),
        }
    }

    /// Checks whether a report is due, if the session watches for that.
    fn watch(&mut self, now: Instant) {
        let Some(watch) = &mut self.watch else {
            return;
        };
        let counters = self.recording.session().counters();
        if !watch.is_due(now, counters.allocated.bytes) {
            return;
        }
        let usage = Usage {
            allocated: counters.allocated.bytes,
            live: counters.live.bytes,
        };
        match watch.look(now, usage) {
            Some(Reason { kind, text }) => self.observer.tell(Notice::Triggered(kind, text)),
            None if watch.approaches() => self.observer.tell(Notice::Approaching),
            None => {}
        }
    }

    /// Gives up the flight recorder's reserve, and has the flight recorder write its report with it. Returns whether there
    /// was a reserve.
    fn makes_room(&mut self, shortage: &str) -> bool {
        let Some(watch) = &mut self.watch else {
            return false;
        };
        if !watch.give_up_reserve() {
            return false;
        }
        if let Some(Reason { kind, text }) = watch.shortage(shortage.to_owned(), Instant::now()) {
            self.observer.tell(Notice::Triggered(kind, text));
        }
        true
    }

    /// Ends recording: from now on hooks pass every call on. The events in the rings are still applied, and everything
    /// recorded stays.
    fn end_recording(&mut self, kind: TriggerKind, reason: String) {
        capture::end_session();
        self.observer
            .tell(Notice::RecordingEnded(kind, reason.clone()));
        self.ended = Some(reason);
    }

    fn tell_of_the_log(&mut self) {
        let given_up = self.recording.session().log().and_then(LogWriter::given_up);
        if let Some(reason) = given_up.filter(|_| !self.log_loss_reported) {
            self.observer.tell(Notice::LogGivenUp(reason.to_owned()));
            self.log_loss_reported = true;
        }
    }

    fn lost_events(&self) -> u64 {
        record::lost() - self.lost_before + self.unfinished
    }

    /// Returns the time of the first lost event. An event that was never finished counts from the end on, when it was given
    /// up.
    fn lost_since_ms(&self) -> Option<u64> {
        let lost = self.lost_events() > 0;
        lost.then(|| {
            self.clock
                .at_ms(control::first_lost().unwrap_or_else(clock::stamp))
        })
    }

    fn read_memory(&mut self, now: Instant) {
        self.recording
            .reading(clock::stamp(), self.resident(), self.own_bytes());
        self.memory_due = now + Duration::from_millis(self.recording.session().reading_step_ms());
    }

    /// Returns the resident bytes of the process; 0 where the system does not report them.
    fn resident(&self) -> u64 {
        process_memory::resident().unwrap_or(0)
    }

    fn own_bytes(&self) -> u64 {
        let allocated = self.recording.memory_bytes() - self.recording.mapped_bytes();
        memory::own_bytes() as u64 + self.merge.memory_bytes() as u64 + allocated
    }

    /// Returns the CPU time of this thread, and of the one that writes the event log, in nanoseconds.
    fn cpu_ns(&self) -> u64 {
        let log = self.recording.session().log();
        arch::thread_cpu_ns() + log.map_or(0, LogWriter::cpu_ns)
    }

    fn figures(&self) -> Running {
        let session = self.recording.session();
        let totals = session.counters();
        Running {
            started: self.started,
            sums: Sums {
                allocated: totals.allocated,
                freed: totals.freed,
                lost_events: self.lost_events(),
                collector_cpu_ns: self.cpu_ns(),
            },
            live: totals.live,
            mapped: session.ranges_bytes(),
            high_water: totals.high_water,
            own_bytes: self.own_bytes(),
            sample: session.sample(),
        }
    }

    fn counters(&mut self, visibility: Visibility) -> Counters {
        let totals = self.recording.session().counters();
        let log = self.recording.session().log();
        Counters {
            started: self.started,
            events: totals.events,
            allocated: totals.allocated,
            live: totals.live,
            high_water: totals.high_water,
            lost_events: self.lost_events(),
            lost_since_ms: self.lost_since_ms(),
            own_bytes: self.own_bytes(),
            collector_cpu_ns: self.cpu_ns(),
            log_bytes: log.map_or(0, LogWriter::bytes),
            log_given_up: self.recording.session().log_given_up(),
            sampling: self.sampling(),
            ended: self.ended.clone(),
            stacks_bounded: self.stacks_bounded.clone(),
            hooks: visibility.hooks,
            notes: visibility.notes,
        }
    }

    fn sampling(&self) -> Option<Sampling> {
        self.sampled(self.recording.session(), self.metered_before)
    }

    fn sampled(&self, tables: &Tables, before: Metered) -> Option<Sampling> {
        let Metered { count, bytes } = sampling::metered() - before;
        tables.sampling(Tally { count, bytes })
    }

    fn snapshot(&mut self, visibility: Visibility, still_recording: bool) -> Taken {
        // Read before the export, whose copies do not belong to any of these figures.
        let own_mapped = memory::own_bytes() as u64;
        let process_memory = process_memory::read(own_mapped, self.own_bytes() - own_mapped);
        let tables = self.recording.session_mut();
        let exported = room::at_work(|| tables.export());
        self.complete(exported, process_memory, visibility, still_recording)
    }

    fn complete(
        &self,
        mut exported: Export,
        process_memory: Option<ProcessMemory>,
        visibility: Visibility,
        still_recording: bool,
    ) -> Taken {
        exported.name_contexts();
        let stacks = unwind::counts();
        let mut notes = exported.notes;
        notes.extend(self.stacks_bounded.clone());
        if let Some(reason) = &self.ended {
            notes.push(format!("recording ended before it was stopped: {reason}"));
        }
        notes.extend(visibility.notes);
        let snapshot = Snapshot {
            started: self.started,
            taken: SystemTime::now(),
            still_recording,
            stacks: exported.stacks,
            survivors: exported.survivors,
            history: exported.history,
            timeline: exported.timeline,
            process_memory,
            marks: exported.marks,
            totals: exported.totals,
            log: None,
            log_given_up: exported.log_given_up,
            stacks_bounded: self.stacks_bounded.clone(),
            sampling: self.sampling(),
            lost_events: self.lost_events(),
            lost_since_ms: self.lost_since_ms(),
            stacks_cut: stacks.cut - self.stacks_before.cut,
            stacks_incomplete: stacks.incomplete - self.stacks_before.incomplete,
            own_bytes: self.own_bytes(),
            collector_cpu_ns: self.cpu_ns(),
            hooks: visibility.hooks,
            notes,
        };
        Taken {
            snapshot,
            log: exported.log,
        }
    }
}

/// Returns the name of the thread `tid` of this process, or `None` if it has ended.
fn name_of(tid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/self/task/{tid}/comm")).ok()?;
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Sleeps until a producer wakes the collector, a request comes, or `longest` has passed.
fn sleep(wake: u32, longest: Duration) {
    let longest = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
    // A thread that waits for room calls. From then on, only a processor is missing.
    room::at_work(|| control::sleep_until_called(wake, longest));
}
