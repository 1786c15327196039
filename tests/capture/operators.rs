//! Tests of C++'s `new` and `delete`, with preloaded allocators that replace them: every block is recorded exactly once.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::env;
use std::ffi::{CString, c_int, c_void};
use std::path::Path;

use crate::support::process::{is_alone, only, passed, test_name, text};
use crate::support::{my_sites, record, sum, tally, turn};
use heapray::capture::event::Kind;
use heapray::collector::snapshot::RawSite;
use heapray_c_fixtures::{ALLOCATOR, HEADER_OPERATORS, OPERATORS};
use heapray_report::model::Tally;

/// Bytes that the operators hide before each block.
const HEADER: &str = "HEAPRAY_TEST_HEADER";

/// The library's functions.
#[derive(Debug, Clone, Copy)]
struct Operators {
    take_and_give_back: extern "C" fn() -> c_int,
    take: extern "C" fn(*mut *mut c_void),
    ask_for_too_much: extern "C" fn() -> c_int,
}

fn operators() -> Operators {
    let path = CString::new(OPERATORS).unwrap();
    // SAFETY: the library's functions have these types, and the library stays loaded.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!library.is_null(), "this test needs libstdc++");
        let find = |name: &CString| {
            let function = libc::dlsym(library, name.as_ptr());
            assert!(!function.is_null());
            function
        };
        let name = |name: &str| CString::new(name).unwrap();
        Operators {
            take_and_give_back: std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(find(
                &name("take_and_give_back"),
            )),
            take: std::mem::transmute::<*mut c_void, extern "C" fn(*mut *mut c_void)>(find(&name(
                "take",
            ))),
            ask_for_too_much: std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(find(
                &name("ask_for_too_much"),
            )),
        }
    }
}

/// Runs `test` in a process of its own with this library preloaded. In that process, runs the check that all tests share.
fn preloaded(test: &str, library: &str, header: u64) {
    let _turn = turn();
    if is_alone(test) {
        return check_every_form();
    }
    let mut command = only(test);
    command.env(HEADER, header.to_string());
    if !library.is_empty() {
        command.env("LD_PRELOAD", library);
    }
    println!("with {library:?}: {}", text(&passed(command)));
}

/// Sums over the sites with blocks of that size.
fn of_size(sites: &[RawSite], size: u64, of: impl Fn(&RawSite) -> Tally) -> Tally {
    let fitting: Vec<_> = sites
        .iter()
        .filter(|site| site.allocated.bytes == size * site.allocated.count)
        .copied()
        .collect();
    sum(&fitting, None, of)
}

fn check_every_form() {
    let header: u64 = env::var(HEADER).unwrap().parse().unwrap();
    let operators = operators();
    let mut kept = [std::ptr::null_mut(); 8];
    // Before the second session, the hooks have already chosen how to treat each operator.
    for round in 0..2 {
        let snapshot = record("operators", || {
            assert_eq!((operators.take_and_give_back)(), 24);
            (operators.take)(kept.as_mut_ptr());
            // mimalloc ends the process if there is not enough memory.
            if env::var_os("LD_PRELOAD")
                .is_none_or(|path| !path.to_string_lossy().contains("mimalloc"))
            {
                assert_eq!((operators.ask_for_too_much)(), 8);
            }
            // After an operator has thrown, later allocations are still recorded.
            (operators.take)(kept.as_mut_ptr());
        });
        assert_eq!(snapshot.lost_events, 0);
        let sites = my_sites(&snapshot);
        for form in 0..8 {
            let (short, long) = (64 * (200 + form) + header, 64 * (400 + form) + header);
            let what = format!("round {round}, form {form}: {sites:#?}");
            assert_eq!(
                of_size(&sites, short, |site| site.allocated),
                tally(3, 3 * short),
                "{what}"
            );
            assert_eq!(
                of_size(&sites, short, |site| site.live),
                tally(0, 0),
                "{what}"
            );
            assert_eq!(
                of_size(&sites, long, |site| site.live),
                tally(2, 2 * long),
                "{what}"
            );
        }
        let kinds = [Kind::Malloc, Kind::AlignedAlloc, Kind::PosixMemalign];
        let is_large = |site: &RawSite| site.allocated.bytes >= 12_800 * site.allocated.count;
        assert!(
            sites
                .iter()
                .all(|site| !is_large(site) || kinds.contains(&site.kind)),
            "{sites:#?}"
        );
    }
}

#[test]
fn blocks_of_an_allocator_with_its_own_operators_are_recorded_once() {
    preloaded(test_name!(), ALLOCATOR, 0);
}

#[test]
fn blocks_of_operators_that_call_malloc_and_return_another_address_are_recorded_once() {
    preloaded(test_name!(), HEADER_OPERATORS, 64);
}

#[test]
fn blocks_of_the_standard_librarys_operators_are_recorded_once() {
    preloaded(test_name!(), "", 0);
}

#[test]
fn blocks_of_the_systems_allocators_are_recorded_once() {
    let test = test_name!();
    if is_alone(test) {
        return preloaded(test, "", 0);
    }
    let folder = format!("/usr/lib/{}-linux-gnu", env::consts::ARCH);
    for name in [
        "libjemalloc.so.2",
        "libtcmalloc_minimal.so.4",
        "libmimalloc.so.2",
        "libmimalloc.so.2.0",
        "libmimalloc.so.3",
    ] {
        let library = Path::new(&folder).join(name);
        if library.exists() {
            preloaded(test, library.to_str().unwrap(), 0);
        }
    }
}
