//! Tests of allocator functions that a program has looked up with `dlsym`.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::ffi::{CStr, CString, c_char, c_void};
use std::hint::black_box;
use std::mem::transmute;
use std::ptr::null_mut;

use crate::support::process::{is_alone, only, passed, test_name};
use crate::support::{my_sites, record, sum, turn};
use heapray::capture::hook;
use heapray::collector::snapshot::Snapshot;
use heapray_c_fixtures::{INTERPOSER, LOOKUP};
use heapray_report::model::Tally;

const SIZE: usize = 54_321;

/// The version of the C library's oldest symbols.
#[cfg(target_arch = "x86_64")]
const OLDEST: &CStr = c"GLIBC_2.2.5";
#[cfg(not(target_arch = "x86_64"))]
const OLDEST: &CStr = c"GLIBC_2.17";

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);

#[derive(Debug, Clone, Copy)]
struct Functions {
    malloc: Malloc,
    free: Free,
}

impl Functions {
    fn find(find: impl Fn(&CStr) -> *mut c_void) -> Functions {
        let (malloc, free) = (find(c"malloc"), find(c"free"));
        assert!(!malloc.is_null() && !free.is_null());
        // SAFETY: the functions of these names have these types.
        unsafe {
            Functions {
                malloc: transmute::<*mut c_void, Malloc>(malloc),
                free: transmute::<*mut c_void, Free>(free),
            }
        }
    }

    fn by(handle: *mut c_void) -> Functions {
        // SAFETY: a handle and C strings.
        Functions::find(|name| unsafe { libc::dlsym(handle, name.as_ptr()) })
    }

    fn by_version(handle: *mut c_void) -> Functions {
        // SAFETY: a handle and C strings.
        Functions::find(|name| unsafe { libc::dlvsym(handle, name.as_ptr(), OLDEST.as_ptr()) })
    }

    /// Allocates and frees three blocks: with both functions looked up, with the looked-up `malloc` and the program's own
    /// `free`, and with the program's own `malloc` and the looked-up `free`.
    fn take_and_give_back(self) {
        // SAFETY: each block is freed once.
        unsafe {
            (self.free)(black_box((self.malloc)(SIZE)));
            libc::free(black_box((self.malloc)(SIZE)));
            (self.free)(black_box(libc::malloc(SIZE)));
        }
    }
}

fn open(path: &str) -> *mut c_void {
    let path = CString::new(path).unwrap();
    // SAFETY: a C string.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!library.is_null());
    library
}

fn function(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a handle and a C string.
    let function = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!function.is_null());
    function
}

/// Counts the blocks of [`SIZE`] that this thread has allocated, and those that are live.
fn blocks(snapshot: &Snapshot) -> (u64, u64) {
    let mut sites = my_sites(snapshot);
    sites.retain(|site| site.allocated.bytes == SIZE as u64 * site.allocated.count);
    let of = |of: fn(&heapray::collector::snapshot::RawSite) -> Tally| sum(&sites, None, of).count;
    (of(|site| site.allocated), of(|site| site.live))
}

#[test]
fn blocks_of_functions_that_were_looked_up_are_recorded_once() {
    let _turn = turn();
    let lookup = open(LOOKUP);
    // SAFETY: the library's function has this type.
    let find_by_name = unsafe {
        transmute::<*mut c_void, extern "C" fn(*const c_char) -> *mut c_void>(function(
            lookup,
            c"find_by_name",
        ))
    };
    // SAFETY: a handle of the program itself, and one of a library that has all others in its scope.
    let (program, library) = unsafe {
        (
            libc::dlopen(null_mut(), libc::RTLD_NOW),
            libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOW),
        )
    };
    let ways: [(&str, &dyn Fn() -> Functions); 7] = [
        ("RTLD_DEFAULT", &|| Functions::by(libc::RTLD_DEFAULT)),
        ("RTLD_NEXT", &|| Functions::by(libc::RTLD_NEXT)),
        ("the program", &|| Functions::by(program)),
        ("a library", &|| Functions::by(library)),
        ("dlvsym", &|| Functions::by_version(libc::RTLD_DEFAULT)),
        ("dlvsym, next", &|| Functions::by_version(libc::RTLD_NEXT)),
        ("by a library", &|| {
            Functions::find(|name| find_by_name(name.as_ptr()))
        }),
    ];
    for (way, find) in ways {
        let mut found = None;
        let snapshot = record("ways", || {
            let functions = find();
            functions.take_and_give_back();
            found = Some(functions);
        });
        assert_eq!(blocks(&snapshot), (3, 0), "{way}");
        // Functions that the program keeps work between sessions, and are recorded in the next one.
        let found = found.unwrap();
        found.take_and_give_back();
        let snapshot = record("again", || found.take_and_give_back());
        assert_eq!(blocks(&snapshot), (3, 0), "{way}, kept");
    }
}

#[test]
fn a_lookup_between_sessions_finds_the_function_itself() {
    let _turn = turn();
    drop(record("before", || ()));
    let entries: Vec<usize> = hook::all().iter().map(|hooked| hooked.entry).collect();
    for functions in [
        Functions::by(libc::RTLD_DEFAULT),
        Functions::by(libc::RTLD_NEXT),
    ] {
        assert!(!entries.contains(&(functions.malloc as usize)));
        assert!(!entries.contains(&(functions.free as usize)));
    }
}

#[test]
fn an_undefined_name_is_not_found() {
    let _turn = turn();
    drop(record("nobody", || {
        // SAFETY: handles and C strings. The error is the calling thread's own.
        unsafe {
            assert!(libc::dlsym(libc::RTLD_DEFAULT, c"heapray_no_such_name".as_ptr()).is_null());
            assert!(!libc::dlerror().is_null());
            let version = c"GLIBC_0.1";
            assert!(
                libc::dlvsym(libc::RTLD_DEFAULT, c"malloc".as_ptr(), version.as_ptr()).is_null()
            );
            assert!(!libc::dlerror().is_null());
            assert!(libc::dlerror().is_null());
        }
    }));
}

/// Runs in a process of its own with an interposer. The hooks call the interposer's functions, and the interposer looks up
/// the functions behind it while a session records.
#[test]
fn an_interposer_gets_the_function_behind_it() {
    let _turn = turn();
    let test = test_name!();
    if !is_alone(test) {
        let mut command = only(test);
        command.env("LD_PRELOAD", INTERPOSER);
        passed(command);
        return;
    }
    // SAFETY: the interposer's functions have these types.
    let (look_behind, calls_so_far) = unsafe {
        (
            transmute::<*mut c_void, extern "C" fn()>(function(libc::RTLD_DEFAULT, c"look_behind")),
            transmute::<*mut c_void, extern "C" fn() -> u64>(function(
                libc::RTLD_DEFAULT,
                c"calls_so_far",
            )),
        )
    };
    let mut calls = 0;
    let snapshot = record("interposer", || {
        look_behind();
        let functions = Functions::by(libc::RTLD_DEFAULT);
        let before = calls_so_far();
        functions.take_and_give_back();
        calls = calls_so_far() - before;
        // In the lookup order, the interposer comes after the program, and the C library after the interposer.
        Functions::by(libc::RTLD_NEXT).take_and_give_back();
        look_behind();
        functions.take_and_give_back();
    });
    assert!((3..100).contains(&calls), "{calls} calls");
    assert_eq!(blocks(&snapshot), (9, 0));
}
