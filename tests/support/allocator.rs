//! Helpers for the tests of `heapray::Alloc`: programs of allocator calls that keep their own books, and checks that hold
//! for every wrapped allocator.
#![allow(dead_code, unreachable_pub)] // each test file uses a part of it
#![allow(clippy::unwrap_used)] // clippy knows only functions marked as tests

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::thread;

use heapray::capture::event::Kind;
use heapray::collector::snapshot::{Hooks, RawSite, Snapshot};
use heapray::symbolize::{ReportOptions, resolve};
use heapray_report::model::{Allocator, Tally};

use crate::support::{my_sites, my_tid, record, sites_of_thread, sum, tally, turn};

/// Sums of allocator calls, as the program that made them counted them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Books {
    pub alloc: Tally,
    pub alloc_zeroed: Tally,
    pub realloc: Tally,
    pub live: Tally,
}

impl Books {
    pub fn of(sites: &[RawSite]) -> Books {
        let of = |kind| sum(sites, Some(kind), |site| site.allocated);
        Books {
            alloc: of(Kind::Malloc),
            alloc_zeroed: of(Kind::Calloc),
            realloc: of(Kind::Realloc),
            live: sum(sites, None, |site| site.live),
        }
    }

    /// Sums over all functions.
    pub fn allocated(&self) -> Tally {
        let mut all = self.alloc;
        all += self.alloc_zeroed;
        all += self.realloc;
        all
    }
}

/// A block that a program holds.
#[derive(Debug)]
pub struct Block(usize, Layout);

impl Block {
    pub fn free(self) {
        // SAFETY: the block was allocated with this layout and is freed once: `self` is gone.
        unsafe { dealloc(self.0 as *mut u8, self.1) };
    }
}

/// Makes `calls` random calls, and returns the books and the blocks that are still live. Allocates nothing else meanwhile.
pub fn random_program(seed: u64, calls: usize) -> (Books, Vec<Block>) {
    let mut random = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    let mut books = Books::default();
    let mut held: Vec<Block> = Vec::with_capacity(calls);
    // The list itself was the first allocation.
    books.alloc += tally(1, (calls * size_of::<Block>()) as u64);
    for _ in 0..calls {
        // Small, or large enough for a mapping of its own. Never 0: `GlobalAlloc` forbids it.
        let size = match next(50) {
            0 => 1 + next(3 << 20),
            1..10 => 1 + next(100_000),
            _ => 1 + next(500),
        } as usize;
        // Aligned to up to two pages, for which `System` calls `posix_memalign`.
        let layout = Layout::from_size_align(size, 1 << next(14)).unwrap();
        match next(8) {
            0..2 => {
                // SAFETY: the layout's size is not 0.
                let block = unsafe { alloc(black_box(layout)) };
                assert!(!block.is_null());
                books.alloc += tally(1, size as u64);
                held.push(Block(block as usize, layout));
            }
            2..4 => {
                // SAFETY: the layout's size is not 0.
                let block = unsafe { alloc_zeroed(black_box(layout)) };
                // SAFETY: a block of that size.
                assert!(unsafe { *block.add(size - 1) } == 0);
                books.alloc_zeroed += tally(1, size as u64);
                held.push(Block(block as usize, layout));
            }
            4..6 if !held.is_empty() => {
                let at = next(held.len() as u64) as usize;
                let Block(block, layout) = held.swap_remove(at);
                // SAFETY: the block is live and of that layout; the size is not 0, and far below isize::MAX.
                let block = unsafe { realloc(block as *mut u8, layout, black_box(size)) };
                assert!(!block.is_null());
                books.realloc += tally(1, size as u64);
                held.push(Block(
                    block as usize,
                    Layout::from_size_align(size, layout.align()).unwrap(),
                ));
            }
            6..8 if !held.is_empty() => {
                let at = next(held.len() as u64) as usize;
                held.swap_remove(at).free();
            }
            _ => {}
        }
    }
    books.live = tally(1, (calls * size_of::<Block>()) as u64);
    for Block(_, layout) in &held {
        books.live += tally(1, layout.size() as u64);
    }
    (books, held)
}

/// Checks that every call of Rust code is counted exactly once, on the thread that made it.
pub fn books_are_exact() {
    let _turn = turn();
    let mut expected = Books::default();
    let mut held = Vec::new();
    let snapshot = record("books", || (expected, held) = random_program(1, 20_000));
    assert_eq!(snapshot.lost_events, 0);
    assert_eq!(Books::of(&my_sites(&snapshot)), expected);
    let second = record("books-freed", || held.into_iter().for_each(Block::free));
    assert_eq!(
        Books::of(&my_sites(&second)),
        Books::default(),
        "frees of an earlier session's blocks are not counted"
    );
}

/// Checks the same on many threads at once, whose blocks another thread frees.
pub fn books_of_threads_are_exact() {
    let _turn = turn();
    // Threads start and end outside of the session: std allocates then.
    let (ready, begin) = (Barrier::new(9), Barrier::new(9));
    let (end, leave) = (Barrier::new(9), Barrier::new(9));
    let done = Mutex::new(Vec::with_capacity(8));
    thread::scope(|scope| {
        for seed in 0..8 {
            let (ready, begin, end, leave, done) = (&ready, &begin, &end, &leave, &done);
            scope.spawn(move || {
                ready.wait();
                begin.wait();
                let (books, held) = random_program(seed, 3_000);
                done.lock().unwrap().push((my_tid(), books, held));
                end.wait();
                leave.wait();
            });
        }
        let mut expected = Vec::with_capacity(8);
        ready.wait();
        let snapshot = record("threads", || {
            begin.wait();
            end.wait();
            for (tid, mut books, held) in done.lock().unwrap().drain(..) {
                held.into_iter().for_each(Block::free);
                books.live = Tally::default();
                expected.push((tid, books));
            }
        });
        leave.wait();
        assert_eq!((snapshot.lost_events, expected.len()), (0, 8));
        for (tid, expected) in expected {
            assert_eq!(Books::of(&sites_of_thread(&snapshot, tid)), expected);
        }
    });
}

/// Checks that the allocator called `name` tells how much it has handed out.
pub fn tells_of_its_memory(name: &str) {
    let _turn = turn();
    let snapshot = record("memory", || {
        black_box(Box::leak(vec![1u8; 8 << 20].into_boxed_slice()));
    });
    let memory = snapshot.process_memory.expect("Linux has the figures");
    let found = memory
        .allocators
        .iter()
        .find(|one| one.name.starts_with(name));
    assert!(found.is_some_and(|one| one.in_use > 8 << 20), "{memory:?}");
}

/// Allocates one block. A report must name this function.
#[inline(never)]
pub fn the_code_that_allocates(size: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(black_box(size)))
}

/// Checks that the leaf of a trimmed stack is the code that allocated, without a frame of the wrapper.
pub fn stacks_lead_to_the_code_that_allocates() {
    let _turn = turn();
    let mut kept = Vec::new();
    let snapshot = record("stacks", || kept = the_code_that_allocates(54_321));
    for full in [false, true] {
        let options = ReportOptions::new().full(full);
        let report = resolve(&snapshot.stacks, &options).report;
        let site = report
            .sites
            .iter()
            .find(|site| site.live == tally(1, 54_321))
            .expect("the block is live");
        let functions: Vec<&str> = report
            .stacks
            .leaf_to_root(site.stack)
            .map(|frame| report.strings.get(report.frames[frame.0 as usize].function))
            .collect();
        let asked = functions
            .iter()
            .position(|function| function.ends_with("the_code_that_allocates"));
        assert!(asked.is_some_and(|at| (at == 0) != full), "{functions:#?}");
        assert!(
            functions
                .iter()
                .any(|function| function.ends_with("stacks_lead_to_the_code_that_allocates")),
            "{functions:#?}"
        );
        assert!(
            full || !functions
                .iter()
                .any(|function| function.contains("heapray::alloc")),
            "{functions:#?}"
        );
    }
    drop(kept);
}

/// Checks that C's allocations are recorded through the GOT, as they are without a wrapper.
pub fn c_is_recorded_through_the_got() {
    let _turn = turn();
    let snapshot = record("c", || {
        for _ in 0..3 {
            // SAFETY: plain calls of the C library; each block is freed once by its own allocator.
            unsafe {
                let one = libc::memalign(64, black_box(7_001));
                let two = libc::malloc(black_box(7_002));
                libc::free(black_box(one));
                libc::free(black_box(two));
            }
        }
    });
    assert_eq!(snapshot.hooks, Hooks::Both);
    let mine = my_sites(&snapshot);
    assert_eq!(
        sum(&mine, Some(Kind::Memalign), |site| site.allocated),
        tally(3, 21_003)
    );
    assert_eq!(
        sum(&mine, Some(Kind::Malloc), |site| site.allocated),
        tally(3, 21_006)
    );
    assert_eq!(sum(&mine, None, |site| site.live), tally(0, 0));
}

/// Bytes of a block that is allocated and never touched.
const LARGE: usize = 2 << 30;

/// Returns the call stacks of all recorded mappings, as names from the leaf on.
fn mapping_stacks(snapshot: &Snapshot) -> Vec<Vec<String>> {
    let options = ReportOptions::new().full(true);
    let report = resolve(&snapshot.stacks, &options).report;
    let sites = report.sites.iter();
    sites
        .filter(|site| site.allocator == Allocator::Mmap)
        .map(|site| {
            let frames = report.stacks.leaf_to_root(site.stack);
            frames
                .map(|frame| report.frames[frame.0 as usize].function)
                .map(|function| report.strings.get(function).to_owned())
                .collect()
        })
        .collect()
}

/// Checks that nothing is recorded between sessions. In a process of its own: a thread of another test that saw the first
/// session may make its state after it.
pub fn between_sessions_nothing_is_recorded() {
    let _turn = turn();
    let mut between = Vec::new();
    let first = record("stopped-1", || drop(the_code_that_allocates(1_001)));
    let states = heapray::capture::memory::own_bytes();
    between.push(the_code_that_allocates(1_002));
    thread::spawn(|| drop(the_code_that_allocates(1_003)))
        .join()
        .unwrap();
    assert_eq!(heapray::capture::memory::own_bytes(), states);
    let second = record("stopped-2", || between.push(the_code_that_allocates(1_004)));
    let sizes = |snapshot: &Snapshot, size| {
        let sizes = &snapshot.totals.sizes;
        sizes
            .iter()
            .filter(|one| one.size == size)
            .map(|one| one.count)
            .sum::<u64>()
    };
    assert_eq!(sizes(&first, 1_001), 1);
    assert_eq!(
        [1_001, 1_002, 1_003, 1_004].map(|size| sizes(&second, size)),
        [0, 0, 0, 1]
    );
}

/// Checks that mappings of the wrapped allocator are not counted in addition to the blocks inside them: not in its calls,
/// not on threads that end, not on its own threads.
pub fn the_allocators_own_mappings_are_not_counted() {
    let _turn = turn();
    let snapshot = record("mappings", || {
        for round in 0..20 {
            let workers: Vec<_> = (0..4)
                .map(|seed| thread::spawn(move || random_program(round * 4 + seed, 500).1))
                .collect();
            for worker in workers {
                worker.join().unwrap().into_iter().for_each(Block::free);
            }
        }
        // Larger than any arena: mimalloc maps it by itself.
        drop(the_code_that_allocates(LARGE));
    });
    assert_eq!(snapshot.lost_events, 0);
    let of_others: Vec<_> = mapping_stacks(&snapshot)
        .into_iter()
        // std maps a stack for signals for each thread.
        .filter(|stack| {
            !stack
                .iter()
                .any(|function| function.contains("stack_overflow"))
        })
        .collect();
    assert!(of_others.is_empty(), "{of_others:#?}");
    assert!(
        sum(&snapshot.stacks.sites, None, |site| site.live).bytes < 100_000,
        "the programs' blocks are freed"
    );
    let high_water = snapshot.totals.high_water.bytes as usize;
    assert!(
        (LARGE..LARGE + 1_000_000).contains(&high_water),
        "{high_water}"
    );
}
