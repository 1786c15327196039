//! Tests of sampling through the real hooks: estimates are near the true figures, and counts are exact.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::hint::black_box;
use std::thread;

use crate::support::{Dir, my_sites, sum, turn};
use heapray::collector::snapshot::{RawSite, Snapshot};
use heapray::session::{Session, SessionOptions};
use heapray_report::model::{Sampling, Tally};

const MEAN: u64 = 8 << 10;

fn sampled(dir: &Dir, mean: u64) -> SessionOptions {
    SessionOptions {
        sample: mean,
        ..dir.options()
    }
}

fn record(name: &str, work: impl FnOnce(&mut Session)) -> Snapshot {
    let dir = Dir::new(name);
    let mut session = Session::start(&sampled(&dir, MEAN)).unwrap();
    work(&mut session);
    session.stop().unwrap()
}

fn sampling(snapshot: &Snapshot) -> &Sampling {
    snapshot.sampling.as_ref().unwrap()
}

/// Allocates blocks of the sizes that services have, the same each time.
fn blocks(number: usize) -> Vec<Vec<u8>> {
    let mut blocks = Vec::with_capacity(number);
    blocks.extend((0..number).map(|at| Vec::with_capacity(16 + at * 37 % 1000)));
    black_box(blocks)
}

fn tally_of(blocks: &[Vec<u8>]) -> Tally {
    Tally {
        count: blocks.len() as u64,
        bytes: blocks.iter().map(|block| block.capacity() as u64).sum(),
    }
}

/// Returns whether an estimate is within five standard deviations. By chance, this fails once in two million runs.
fn is_near(estimate: Tally, truth: Tally) -> bool {
    let deviation = (MEAN as f64 * truth.bytes as f64).sqrt();
    (estimate.bytes as f64 - truth.bytes as f64).abs() < 5.0 * deviation
}

fn live(site: &RawSite) -> Tally {
    site.live
}

#[test]
fn live_blocks_are_estimated_and_all_allocations_are_counted() {
    let _turn = turn();
    let mut truth = Tally::default();
    let mut kept = Vec::new();
    let snapshot = record("estimates", |_| {
        kept = blocks(40_000);
        truth = tally_of(&kept);
        // As many again, which are freed at once.
        drop(blocks(40_000));
    });
    // The vectors that hold the blocks are blocks themselves.
    let holder = (kept.capacity() * size_of::<Vec<u8>>()) as u64;
    truth.bytes += holder;
    let estimate = sum(&my_sites(&snapshot), None, live);
    assert!(is_near(estimate, truth), "{estimate:?} for {truth:?}");

    let sampling = sampling(&snapshot);
    let asked = sampling.asked;
    let least = Tally {
        count: 2 * 40_001,
        bytes: 2 * truth.bytes,
    };
    assert!(
        asked.count >= least.count && asked.bytes >= least.bytes,
        "{asked:?}"
    );
    // The harness's other threads allocate a little.
    assert!(asked.bytes < least.bytes + least.bytes / 20, "{asked:?}");
    assert!(sampling.samples < asked.count / 10);
    assert!(snapshot.log.is_none());
    assert_eq!(sampling.rates.len(), 1);
    drop(kept);
}

#[test]
fn a_block_is_not_live_after_any_thread_has_freed_it() {
    let _turn = turn();
    let snapshot = record("freed", |_| {
        let (mine, others) = (blocks(20_000), blocks(20_000));
        drop(mine);
        thread::spawn(|| drop(others)).join().unwrap();
    });
    let sites = my_sites(&snapshot);
    let allocated = sum(&sites, None, |site| site.allocated);
    assert!(allocated.count > 30_000, "{allocated:?}");
    // A block or two of the test harness may have been sampled, each counted with the mean.
    let left = sum(&sites, None, live);
    assert!(left.bytes <= 4 * MEAN, "{left:?}");
    assert_eq!(snapshot.totals.unknown_frees, 0);
}

/// Each block of this size is recorded in two of three sessions, and then counts as one and a half. It must be rounded up as
/// often as down. If each session or process rounded it alike, the sum would be off by a third.
#[test]
fn over_many_sessions_the_estimates_of_one_block_add_up() {
    const SESSIONS: u64 = 150;
    const WIDE: u64 = 1 << 20;
    let _turn = turn();
    let size = (WIDE as f64 * 3_f64.ln()) as usize;
    let (mut samples, mut count) = (0_u64, 0);
    for _ in 0..SESSIONS {
        let dir = Dir::new("rounding");
        let session = Session::start(&sampled(&dir, WIDE)).unwrap();
        drop(black_box(Vec::<u8>::with_capacity(size)));
        let snapshot = session.stop().unwrap();
        let of_size = |site: &&RawSite| site.allocated.bytes.abs_diff(3 * size as u64 / 2) < 4;
        for site in my_sites(&snapshot).iter().filter(of_size) {
            samples += 1;
            count += site.allocated.count;
        }
    }
    // By chance, six deviations are exceeded once in 500 million runs.
    let expected = SESSIONS as f64 * 2.0 / 3.0;
    let deviation = (SESSIONS as f64 * 2.0 / 9.0).sqrt();
    assert!(
        (samples as f64 - expected).abs() < 6.0 * deviation,
        "{samples} of {SESSIONS}"
    );
    let off = (count as f64 - 1.5 * samples as f64).abs();
    assert!(
        off < 6.0 * 0.5 * (samples as f64).sqrt(),
        "{count} of {samples}"
    );
}

#[test]
fn a_reallocation_changes_the_size_of_the_live_block() {
    let _turn = turn();
    let layout = |size| Layout::from_size_align(size, 8).unwrap();
    let mut kept = Vec::with_capacity(20_000);
    let snapshot = record("reallocations", |_| {
        for _ in 0..20_000 {
            // SAFETY: the sizes are not 0, and the block was allocated with this layout.
            let block = unsafe {
                let block = alloc(layout(100));
                realloc(block, layout(100), 900)
            };
            kept.push(block as usize);
        }
    });
    let estimate = sum(&my_sites(&snapshot), None, live);
    let truth = Tally {
        count: 20_000,
        bytes: 20_000 * 900,
    };
    assert!(is_near(estimate, truth), "{estimate:?} for {truth:?}");
    for block in kept {
        // SAFETY: a block of this layout, freed once.
        unsafe { dealloc(block as *mut u8, layout(900)) };
    }
}

#[test]
fn temporary_blocks_are_recognized() {
    let _turn = turn();
    let snapshot = record("temporary", |_| {
        for _ in 0..50_000 {
            drop(black_box(Vec::<u8>::with_capacity(400)));
        }
    });
    let sites = my_sites(&snapshot);
    let (temporary, allocated) = (
        sum(&sites, None, |site| site.temporary),
        sum(&sites, None, |site| site.allocated),
    );
    assert!(
        temporary.bytes * 10 > allocated.bytes * 9,
        "{temporary:?} of {allocated:?}"
    );
}

#[test]
fn the_rate_is_changed_while_recording_and_weights_follow() {
    let _turn = turn();
    let mut kept = Vec::new();
    let snapshot = record("rates", |session| {
        for mean in [MEAN, MEAN / 8, MEAN / 2] {
            session.resample(mean).unwrap();
            kept.push(blocks(20_000));
        }
        assert_eq!(session.sample(), MEAN / 2);
    });
    let mut truth = Tally::default();
    for blocks in &kept {
        truth += tally_of(blocks);
        truth.bytes += (blocks.capacity() * size_of::<Vec<u8>>()) as u64;
    }
    let estimate = sum(&my_sites(&snapshot), None, live);
    assert!(is_near(estimate, truth), "{estimate:?} for {truth:?}");
    let means: Vec<u64> = sampling(&snapshot)
        .rates
        .iter()
        .map(|rate| rate.mean_bytes)
        .collect();
    assert_eq!(means, [MEAN, MEAN, MEAN / 8, MEAN / 2]);
    assert_eq!(sampling(&snapshot).mean_bytes(), MEAN);
}

#[test]
fn many_threads_are_estimated_together_and_a_session_of_every_allocation_follows() {
    let _turn = turn();
    let mut truth = Tally::default();
    let mut kept = Vec::new();
    let snapshot = record("threads", |_| {
        let threads: Vec<_> = (0..8).map(|_| thread::spawn(|| blocks(10_000))).collect();
        kept.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
    });
    for blocks in &kept {
        truth += tally_of(blocks);
        truth.bytes += (blocks.capacity() * size_of::<Vec<u8>>()) as u64;
    }
    let estimate = snapshot.totals.live;
    assert!(is_near(estimate, truth), "{estimate:?} for {truth:?}");
    drop(kept);

    let exact = crate::support::record("exact-again", || drop(black_box(Box::new([0_u8; 333]))));
    assert!(exact.sampling.is_none());
    let mine = sum(&my_sites(&exact), None, |site| site.allocated);
    assert!(mine.count >= 1 && mine.bytes >= 333, "{mine:?}");
}
