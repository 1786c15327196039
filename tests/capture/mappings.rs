//! Tests of mappings, failing calls and odd arguments: the figures stay right.
//!
//! The compiler knows the C library's functions, and drops or replaces calls whose outcome it can foresee. So arguments
//! and results pass through `black_box`.

use std::hint::black_box;
use std::ptr::null_mut;

use crate::support::{my_sites, record, sum, tally, turn};
use heapray::capture::event::Kind;

const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
const MIB: usize = 1 << 20;

fn map(at: *mut libc::c_void, length: usize, protection: i32, flags: i32) -> *mut libc::c_void {
    // SAFETY: an anonymous mapping; MAP_FIXED is used below over the test's own mappings only.
    let address = unsafe { libc::mmap(at, length, protection, PRIVATE | flags, -1, 0) };
    assert_ne!(address, libc::MAP_FAILED);
    address
}

fn unmap(address: *mut libc::c_void, offset: usize, length: usize) {
    // SAFETY: a part of a mapping of the test's own that nothing refers to.
    let result = unsafe { libc::munmap(address.wrapping_byte_add(offset), length) };
    assert_eq!(result, 0);
}

#[test]
fn address_space_without_access_rights_is_not_counted_as_memory() {
    let _turn = turn();
    let snapshot = record("prot-none", || {
        let reserved = map(null_mut(), 64 << 30, libc::PROT_NONE, 0);
        let committed = map(reserved, 4 * MIB, RW, libc::MAP_FIXED);
        assert_eq!(committed, reserved);
        map(reserved, MIB, libc::PROT_NONE, libc::MAP_FIXED);
        unmap(reserved, 8 * MIB, (64 << 30) - 8 * MIB);
    });
    let sites = my_sites(&snapshot);
    assert_eq!(
        sum(&sites, Some(Kind::Mmap), |site| site.allocated),
        tally(1, 4 * MIB as u64)
    );
    assert_eq!(
        sum(&sites, Some(Kind::Mmap), |site| site.live),
        tally(1, 3 * MIB as u64)
    );
}

#[test]
fn a_mapping_of_64_gib_is_counted_whole() {
    let _turn = turn();
    let snapshot = record("huge", || {
        let huge = map(null_mut(), 64 << 30, RW, 0);
        unmap(huge, 0, 32 << 30);
    });
    let sites = my_sites(&snapshot);
    assert_eq!(
        sum(&sites, Some(Kind::Mmap), |site| site.allocated),
        tally(1, 64 << 30)
    );
    assert_eq!(
        sum(&sites, Some(Kind::Mmap), |site| site.live),
        tally(1, 32 << 30)
    );
}

#[test]
fn a_partial_munmap_splits_the_range() {
    let _turn = turn();
    let snapshot = record("split", || {
        let range = map(null_mut(), 10 * MIB, RW, 0);
        unmap(range, 2 * MIB, 3 * MIB);
        // This end is not at a page boundary: the kernel unmaps the whole page.
        unmap(range, 8 * MIB, 2 * MIB - 100);
    });
    let live = sum(&my_sites(&snapshot), Some(Kind::Mmap), |site| site.live);
    assert_eq!(live, tally(2, 5 * MIB as u64));
}

#[test]
fn mremap_ends_the_old_range_and_begins_a_new_one() {
    let _turn = turn();
    let snapshot = record("mremap", || {
        let range = map(null_mut(), 2 * MIB, RW, 0);
        // SAFETY: the test's own mapping, which nothing refers to.
        let moved = unsafe { libc::mremap(range, 2 * MIB, 6 * MIB, libc::MREMAP_MAYMOVE) };
        assert_ne!(moved, libc::MAP_FAILED);
        // SAFETY: as above; shrinking needs no move.
        assert_eq!(unsafe { libc::mremap(moved, 6 * MIB, MIB, 0) }, moved);
        // SAFETY: as above. The size exceeds the address space, so the call fails and the range stays.
        let result = unsafe { libc::mremap(moved, MIB, 1 << 60, libc::MREMAP_MAYMOVE) };
        assert_eq!(result, libc::MAP_FAILED);
    });
    let live = sum(&my_sites(&snapshot), Some(Kind::Mmap), |site| site.live);
    assert_eq!(live, tally(1, MIB as u64));
}

#[test]
fn a_realloc_that_fails_leaves_the_block_as_it_was() {
    let _turn = turn();
    let mut block = null_mut();
    let snapshot = record("realloc-fails", || {
        // SAFETY: plain calls of the C library; a failed realloc leaves the block valid.
        unsafe {
            block = black_box(libc::malloc(1000));
            assert!(libc::realloc(block, black_box(usize::MAX / 2)).is_null());
            assert!(libc::reallocarray(block, usize::MAX, 16).is_null());
        }
    });
    let sites = my_sites(&snapshot);
    assert_eq!(sum(&sites, None, |site| site.allocated), tally(1, 1000));
    assert_eq!(
        sum(&sites, Some(Kind::Malloc), |site| site.live),
        tally(1, 1000)
    );
    // SAFETY: still the test's block.
    unsafe { libc::free(block) };
}

#[test]
fn a_realloc_to_zero_frees_the_block() {
    let _turn = turn();
    let snapshot = record("realloc-zero", || {
        // SAFETY: glibc frees the block and returns null.
        unsafe {
            let block = black_box(libc::malloc(1000));
            assert!(black_box(libc::realloc(black_box(block), black_box(0))).is_null());
        }
    });
    // The session's totals include the test harness's own threads.
    let sites = my_sites(&snapshot);
    assert_eq!(sum(&sites, None, |site| site.allocated), tally(1, 1000));
    assert_eq!(sum(&sites, None, |site| site.live), tally(0, 0));
}

#[test]
fn a_failing_allocation_is_not_counted() {
    let _turn = turn();
    let snapshot = record("fails", || {
        // SAFETY: calls that fail.
        unsafe {
            assert!(black_box(libc::malloc(black_box(usize::MAX / 2))).is_null());
            assert!(black_box(libc::calloc(black_box(usize::MAX), 16)).is_null());
            let mut place = null_mut();
            assert_ne!(libc::posix_memalign(&raw mut place, 3, 100), 0);
            assert_eq!(libc::munmap(16 as *mut libc::c_void, 100), -1);
        }
    });
    assert_eq!(
        sum(&my_sites(&snapshot), None, |site| site.allocated),
        tally(0, 0)
    );
}

#[test]
fn every_function_is_counted_under_its_own_name() {
    let _turn = turn();
    let snapshot = record("names", || {
        // SAFETY: plain calls of the C library; blocks are freed once.
        unsafe {
            let mut place = null_mut();
            assert_eq!(libc::posix_memalign(&raw mut place, 64, 101), 0);
            let blocks = [
                libc::malloc(102),
                libc::calloc(3, 103),
                libc::realloc(black_box(null_mut()), 104),
                libc::reallocarray(black_box(null_mut()), 5, 105),
                libc::aligned_alloc(64, 128),
                libc::memalign(64, 107),
                valloc(108),
                pvalloc(109),
                place,
            ];
            for block in blocks {
                libc::free(black_box(block));
            }
        }
    });
    let sites = my_sites(&snapshot);
    let of = |kind| sum(&sites, Some(kind), |site| site.allocated);
    assert_eq!(of(Kind::Malloc), tally(1, 102));
    assert_eq!(of(Kind::Calloc), tally(1, 309));
    assert_eq!(of(Kind::Realloc), tally(2, 104 + 525));
    assert_eq!(of(Kind::AlignedAlloc), tally(1, 128));
    assert_eq!(of(Kind::Memalign), tally(1, 107));
    assert_eq!(of(Kind::Valloc), tally(1, 108));
    assert_eq!(of(Kind::Pvalloc), tally(1, 109));
    assert_eq!(of(Kind::PosixMemalign), tally(1, 101));
    assert_eq!(sum(&sites, None, |site| site.live), tally(0, 0));
}

unsafe extern "C" {
    fn valloc(size: usize) -> *mut libc::c_void;
    fn pvalloc(size: usize) -> *mut libc::c_void;
}
