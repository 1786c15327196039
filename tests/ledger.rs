//! Tests all figures of a session against books: threads run random allocation programs and keep their own books, and every
//! figure must equal the books exactly.
//!
//! The threads are started and warmed up before the session and end after it. They allocate nothing outside of their
//! programs, so the session's totals can be compared.
//!
//! The test is a program of its own with one test, because the harness would allocate during a session when another test
//! ends.
//!
//! `HEAPRAY_SOAK_EVENTS=1000000000 cargo test --release --test ledger -- --nocapture --test-threads=1` runs one session
//! of that many events, without pauses. The default is 200,000. (With more test threads, the harness reports after a minute
//! that the test is slow, and allocates for the message.)
#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests may panic, and the soak prints its result
mod support;

use std::collections::HashMap;
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use heapray::capture::event::Kind;
use heapray::session::Session;
use heapray_report::model::Tally;
use support::{Dir, my_tid, sites_of_thread, sum};

const THREADS: usize = 4;
const SLOTS: usize = 400;
const PAGE: usize = 4096;
/// Steps of one thread before another thread's next step, at most.
const MOST_TOGETHER: usize = 40;
/// Steps of all threads between two pauses. Figures are exact only if no event is lost, and a collector that shares the
/// processors with other programs falls behind threads that only allocate.
const STEPS_BETWEEN_PAUSES: usize = 8_000;
const PAUSE: Duration = Duration::from_millis(40);
/// Pause of a long run, which has the machine for itself.
const NO_PAUSE: Duration = Duration::ZERO;

/// A deterministic random number generator (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// A block in the books.
#[derive(Clone, Copy, Debug)]
struct Block {
    address: usize,
    size: usize,
    kind: Kind,
    thread: usize,
}

/// The sums of one thread and one function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Line {
    allocated: Tally,
    live: Tally,
    high_water: Tally,
}

/// The books of all threads. The vectors have their final capacity from the start.
struct Books {
    blocks: Vec<Option<Block>>,
    steps: usize,
    lines: [[Line; 20]; THREADS],
    freed: Tally,
    live: u64,
    peak: u64,
    /// The lines at the high-water mark.
    at_peak: [[Line; 20]; THREADS],
}

impl Books {
    fn enter(&mut self, slot: usize, block: Block) {
        let line = &mut self.lines[block.thread][block.kind as usize];
        let one = Tally {
            count: 1,
            bytes: block.size as u64,
        };
        line.allocated += one;
        line.live += one;
        self.blocks[slot] = Some(block);
        self.live += one.bytes;
        // The high-water mark is the last moment at the maximum.
        if self.live >= self.peak {
            self.peak = self.live;
            self.at_peak = self.lines;
        }
    }

    fn leave(&mut self, slot: usize) -> Option<Block> {
        let block = self.blocks[slot].take()?;
        let live = &mut self.lines[block.thread][block.kind as usize].live;
        live.count -= 1;
        live.bytes -= block.size as u64;
        self.freed += Tally {
            count: 1,
            bytes: block.size as u64,
        };
        self.live -= block.size as u64;
        Some(block)
    }
}

fn release(block: Block) {
    // SAFETY: the block or range is the program's own, was entered in the books once and has been removed from them.
    unsafe {
        if block.kind == Kind::Mmap {
            libc::munmap(
                block.address as *mut libc::c_void,
                block.size.next_multiple_of(PAGE),
            );
        } else {
            libc::free(block.address as *mut libc::c_void);
        }
    }
}

/// Takes one step of a program: frees the block in a slot, or changes its size, or fills the slot.
fn step(books: &mut Books, thread: usize, random: &mut Random) {
    let slot = random.below(SLOTS);
    let size = match random.below(10) {
        0 => random.below(1_000_000),
        1..=3 => random.below(20_000),
        _ => random.below(300),
    } + 1;
    let old = books.blocks[slot];
    // SAFETY: calls of the C library with valid arguments; blocks are used nowhere else.
    let (kind, address) = unsafe {
        match (old, random.below(12)) {
            (Some(block), 0..=3) if block.kind != Kind::Mmap => {
                let moved = libc::realloc(block.address as *mut libc::c_void, size);
                assert!(!moved.is_null());
                books.leave(slot);
                (Kind::Realloc, moved)
            }
            (Some(block), 4) if block.kind != Kind::Mmap => {
                assert!(
                    libc::realloc(
                        block.address as *mut libc::c_void,
                        black_box(usize::MAX / 2)
                    )
                    .is_null()
                );
                return;
            }
            (Some(_), _) => {
                let block = books.leave(slot).unwrap();
                return release(block);
            }
            (None, 0) => (Kind::Calloc, libc::calloc(1, size)),
            (None, 1) => (Kind::Realloc, libc::realloc(black_box(null_mut()), size)),
            (None, 2) => {
                let mut place = null_mut();
                assert_eq!(libc::posix_memalign(&raw mut place, 64, size), 0);
                (Kind::PosixMemalign, place)
            }
            (None, 3) => (Kind::AlignedAlloc, libc::aligned_alloc(16, size)),
            (None, 4) => (Kind::Memalign, libc::memalign(256, size)),
            (None, 5) => {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                (
                    Kind::Mmap,
                    libc::mmap(
                        null_mut(),
                        size,
                        libc::PROT_READ | libc::PROT_WRITE,
                        flags,
                        -1,
                        0,
                    ),
                )
            }
            (None, _) => (Kind::Malloc, libc::malloc(size)),
        }
    };
    books.enter(
        slot,
        Block {
            address: address as usize,
            size,
            kind,
            thread,
        },
    );
}

/// Lets the threads end when it is dropped, even after a failure.
struct Release<'a>(&'a AtomicUsize);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(2, Ordering::Release);
    }
}

/// Runs `steps` steps on each thread during a session, with pauses of this length, and compares the figures. Returns the
/// number of events.
fn run(name: &str, seed: u64, steps: usize, pause: Duration) -> u64 {
    let dir = Dir::new(name);
    let options = dir.options();
    let books = Mutex::new(Books {
        blocks: vec![None; SLOTS],
        steps: 0,
        lines: [[Line::default(); 20]; THREADS],
        freed: Tally::default(),
        live: 0,
        peak: 0,
        at_peak: [[Line::default(); 20]; THREADS],
    });
    let (phase, ready, done) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let wait_for = |phase: &AtomicUsize, value| {
        while phase.load(Ordering::Acquire) < value {
            thread::yield_now();
        }
    };
    let tids = Mutex::new([0; THREADS]);
    let snapshot = thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| {
            let (books, phase, ready, done, tids) = (&books, &phase, &ready, &done, &tids);
            scope.spawn(move || {
                tids.lock().unwrap()[thread] = my_tid();
                let mut random = Random(seed * 1000 + thread as u64);
                ready.fetch_add(1, Ordering::Release);
                wait_for(phase, 1);
                let mut left = steps;
                while left > 0 {
                    // One thread at a time, so that the books know the order of the steps. Several steps at a time, because
                    // on a busy machine a thread that sleeps for the lock before each step makes no progress.
                    let together = (1 + random.below(MOST_TOGETHER)).min(left);
                    let mut books = books.lock().unwrap();
                    for _ in 0..together {
                        step(&mut books, thread, &mut random);
                    }
                    left -= together;
                    let before = books.steps;
                    books.steps += together;
                    if before / STEPS_BETWEEN_PAUSES != books.steps / STEPS_BETWEEN_PAUSES {
                        // The others wait for the lock.
                        thread::sleep(pause);
                    }
                }
                done.fetch_add(1, Ordering::Release);
                wait_for(phase, 2);
            })
        });
        let threads: Vec<_> = threads.collect();
        let release = Release(&phase);
        wait_for(&ready, THREADS);
        let session = Session::start(&options).unwrap();
        phase.store(1, Ordering::Release);
        wait_for(&done, THREADS);
        let snapshot = session.stop().unwrap();
        drop(release);
        // To their very end: the scope does not wait until a thread has freed what is its own, and the next session would
        // see that.
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        snapshot
    });

    let books = books.into_inner().unwrap();
    let tids = tids.into_inner().unwrap();
    let since = snapshot.lost_since_ms;
    assert_eq!(
        snapshot.lost_events, 0,
        "the collector got no CPU time, from {since:?} ms on"
    );
    let mut allocated = Tally::default();
    let mut live = Tally::default();
    let mut high_water = Tally::default();
    for (thread, tid) in tids.into_iter().enumerate() {
        let sites = sites_of_thread(&snapshot, tid);
        for kind in (0..20)
            .map(Kind::from_byte)
            .filter(|kind| kind.is_allocation())
        {
            let line = books.lines[thread][kind as usize];
            let at_peak = books.at_peak[thread][kind as usize].live;
            let of = |tally: fn(&_) -> Tally| sum(&sites, Some(kind), tally);
            assert_eq!(
                of(|site| site.allocated),
                line.allocated,
                "{kind:?} of thread {thread}"
            );
            assert_eq!(
                of(|site| site.live),
                line.live,
                "live {kind:?} of thread {thread}"
            );
            assert_eq!(
                of(|site| site.high_water),
                at_peak,
                "high water {kind:?} of thread {thread}"
            );
            allocated += line.allocated;
            live += line.live;
            high_water += at_peak;
        }
    }
    assert_eq!(snapshot.totals.allocated, allocated);
    assert_eq!(snapshot.totals.freed, books.freed);
    assert_eq!(snapshot.totals.live, live);
    assert_eq!(snapshot.totals.high_water, high_water);
    assert_eq!(high_water.bytes, books.peak);
    assert_eq!(snapshot.totals.unknown_frees, 0);
    let by_size: HashMap<u64, u64> = snapshot
        .totals
        .sizes
        .iter()
        .map(|size| (size.size, size.count))
        .collect();
    assert_eq!(by_size.values().sum::<u64>(), allocated.count);

    for slot in 0..SLOTS {
        if let Some(block) = books.blocks[slot] {
            release(block);
        }
    }
    snapshot.totals.events
}

/// The last session is long, beyond every limit that only a long time reaches: of the event log, the timeline, and counters
/// of 32 bits.
#[test]
fn every_figure_equals_the_books() {
    for seed in 0..5 {
        run("ledger", seed, 40_000, PAUSE);
    }
    let (wanted, pause) = match std::env::var("HEAPRAY_SOAK_EVENTS") {
        Ok(events) => (events.parse().unwrap(), NO_PAUSE),
        Err(_) => (200_000, PAUSE),
    };
    let began = Instant::now();
    // A step is one event, or two if it reallocates.
    let events = run("soak", 77, wanted as usize / THREADS, pause);
    assert!(events >= wanted, "{events} events");
    println!(
        "{events} events in {:.0?}, none lost, every figure exact",
        began.elapsed()
    );
}
