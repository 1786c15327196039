//! Tests of C23's `free_sized` and `free_aligned_sized`: blocks that they free are no longer live. glibc has them since
//! 2.43. For older versions, a preloaded allocator has them.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::ffi::{CStr, CString, c_int, c_void};
use std::hint::black_box;
use std::mem::transmute;

use crate::support::process::{is_alone, only, passed, test_name};
use crate::support::{my_sites, record, sum, tally, turn};
use heapray_c_fixtures::{ALLOCATOR, SIZED};

const SIZE: usize = 43_210;
const ALIGNMENT: usize = 64;
const ALIGNED_SIZE: usize = 64 * 700;

type Free = unsafe extern "C" fn(*mut c_void, usize) -> c_int;
type FreeAligned = unsafe extern "C" fn(*mut c_void, usize, usize) -> c_int;

fn function(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a handle and a C string.
    unsafe { libc::dlsym(library, name.as_ptr()) }
}

/// Tests the functions, if they exist. Returns whether they do.
fn frees_by_size_are_recorded() -> bool {
    let _turn = turn();
    let path = CString::new(SIZED).unwrap();
    // SAFETY: a C string; the library stays loaded, and its functions have these types.
    let (free, free_aligned) = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!library.is_null());
        let free = function(library, c"give_back_sized");
        let free_aligned = function(library, c"give_back_aligned_sized");
        assert!(!free.is_null() && !free_aligned.is_null());
        (
            transmute::<*mut c_void, Free>(free),
            transmute::<*mut c_void, FreeAligned>(free_aligned),
        )
    };
    // SAFETY: null may be freed, with size 0.
    if unsafe { free(std::ptr::null_mut(), 0) == 0 } {
        return false;
    }
    let snapshot = record("sized", || {
        // SAFETY: each block is freed once, with its size. The functions that are looked up have the types of the library's,
        // but for the result, which is not used.
        unsafe {
            assert_eq!(free(black_box(libc::malloc(SIZE)), SIZE), 1);
            let block = black_box(libc::aligned_alloc(ALIGNMENT, ALIGNED_SIZE));
            assert_eq!(free_aligned(block, ALIGNMENT, ALIGNED_SIZE), 1);
            let found = function(libc::RTLD_DEFAULT, c"free_sized");
            transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, usize)>(found)(
                black_box(libc::malloc(SIZE)),
                SIZE,
            );
            assert_eq!(free(std::ptr::null_mut(), 0), 1);
        }
    });
    assert_eq!(snapshot.lost_events, 0);
    for (size, blocks) in [(SIZE, 2), (ALIGNED_SIZE, 1)] {
        let mut sites = my_sites(&snapshot);
        sites.retain(|site| site.allocated.bytes == size as u64 * site.allocated.count);
        let all = tally(blocks, blocks * size as u64);
        assert_eq!(sum(&sites, None, |site| site.allocated), all, "{sites:#?}");
        let live = sum(&sites, None, |site| site.live);
        assert_eq!(live, tally(0, 0), "{sites:#?}");
    }
    true
}

#[test]
fn blocks_that_the_c_library_frees_by_size_are_no_longer_live() {
    if !frees_by_size_are_recorded() {
        println!("this C library has no free_sized");
    }
}

#[test]
fn blocks_that_an_allocator_frees_by_size_are_no_longer_live() {
    let test = test_name!();
    if is_alone(test) {
        assert!(frees_by_size_are_recorded());
        return;
    }
    let _turn = turn();
    let mut command = only(test);
    command.env("LD_PRELOAD", ALLOCATOR);
    passed(command);
}
