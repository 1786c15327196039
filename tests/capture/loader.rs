//! Tests of modules that are loaded and unloaded during a session.

use std::ffi::{CStr, CString};
use std::hint::black_box;
use std::thread;

use crate::support::{StopFlag, my_sites, record, stack, sum, turn};
use heapray::collector::snapshot::Snapshot;
use heapray_c_fixtures::RELOCATED_LATE;

/// A library that no Rust program has loaded, and one of its functions that allocates.
const LIBRARY: &CStr = c"libz.so.1";

type DeflateInit = unsafe extern "C" fn(*mut Stream, i32, *const libc::c_char, i32) -> i32;
type DeflateEnd = unsafe extern "C" fn(*mut Stream) -> i32;

/// zlib's `z_stream`: 112 bytes, which are zero at first.
#[repr(C, align(8))]
struct Stream([u8; 112]);

fn open() -> *mut libc::c_void {
    let library = open_as(LIBRARY, libc::RTLD_NOW);
    assert!(
        !library.is_null(),
        "this test needs {LIBRARY:?} (Debian: zlib1g)"
    );
    library
}

fn open_as(path: &CStr, binding: libc::c_int) -> *mut libc::c_void {
    // SAFETY: a C string and flags.
    unsafe { libc::dlopen(path.as_ptr(), binding | libc::RTLD_LOCAL) }
}

fn use_once(library: *mut libc::c_void) {
    // SAFETY: zlib's own signatures (zlib.h); the stream is zeroed, as zlib requires, and ended once.
    unsafe {
        let init = libc::dlsym(library, c"deflateInit_".as_ptr());
        let end = libc::dlsym(library, c"deflateEnd".as_ptr());
        assert!(!init.is_null() && !end.is_null());
        let init = std::mem::transmute::<*mut libc::c_void, DeflateInit>(init);
        let end = std::mem::transmute::<*mut libc::c_void, DeflateEnd>(end);
        let mut stream = Stream([0; 112]);
        assert_eq!(init(&raw mut stream, 6, c"1.2.11".as_ptr(), 112), 0);
        end(&raw mut stream);
    }
}

#[test]
fn a_library_that_is_opened_while_recording_is_recorded_from_its_first_call() {
    let _turn = turn();
    let snapshot = record("dlopen", || {
        let library = open();
        use_once(library);
        // SAFETY: the handle is closed once.
        unsafe { libc::dlclose(library) };
    });
    // The history belongs to the process: in other tests, the library may have been at other addresses.
    let modules: Vec<_> = (0..)
        .zip(snapshot.stacks.modules.iter())
        .filter(|(_, module)| module.path.to_string_lossy().contains("libz"))
        .map(|(number, _)| number)
        .collect();
    assert!(
        !modules.is_empty(),
        "the module is in the history after it was closed"
    );
    let sites = my_sites(&snapshot);
    let of_zlib: Vec<_> = sites
        .iter()
        .filter(|site| modules.contains(&snapshot.stacks.nodes[site.node.0 as usize].module.0))
        .copied()
        .collect();
    let allocated = sum(&of_zlib, None, |site| site.allocated);
    // deflateInit allocates its state, window, prev, head and pending buffer: about 268 KB.
    assert!(
        allocated.count >= 4 && allocated.bytes > 200_000,
        "{allocated:?}"
    );
    assert_eq!(sum(&of_zlib, None, |site| site.live).count, 0);
    // The stack goes on beyond zlib to its callers.
    assert!(stack(&snapshot, &of_zlib[0]).len() > 3);
}

#[test]
fn dlopen_and_dlclose_in_a_loop_beside_threads_that_allocate() {
    let _turn = turn();
    let stop = StopFlag::default();
    let snapshot = record("loop", || {
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.is_set() {
                        drop(black_box(vec![0_u8; 64]));
                    }
                });
            }
            let _stop = stop.guard();
            for _ in 0..300 {
                let library = open();
                use_once(library);
                // SAFETY: the handle is closed once, and nothing of the library is used afterwards.
                unsafe { libc::dlclose(library) };
            }
        });
    });
    assert_eq!(snapshot.lost_events, 0);
    assert!(snapshot.totals.allocated.count > 1500);
}

/// Records `rounds` runs of `work` while another thread looks at the modules again and again.
fn record_beside_looks(name: &str, rounds: u64, work: impl Fn()) -> Snapshot {
    let stop = StopFlag::default();
    record(name, || {
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.is_set() {
                    heapray::capture::hook::refresh();
                }
            });
            let _stop = stop.guard();
            for _ in 0..rounds {
                work();
            }
        });
    })
}

#[test]
fn a_library_is_recorded_from_its_first_call_while_another_thread_looks_at_modules() {
    const ROUNDS: u64 = 50;
    let _turn = turn();
    let snapshot = record_beside_looks("look", ROUNDS, || {
        let library = open();
        use_once(library);
        // SAFETY: the handle is closed once, and nothing of the library is used afterwards.
        unsafe { libc::dlclose(library) };
    });
    // `deflateInit` allocates far more than anything else here. If the library's unwind table is not ready yet, the stack
    // does not lead to zlib.
    let allocated = snapshot.totals.allocated;
    assert!(allocated.bytes > ROUNDS * 257_000, "{allocated:?}");
}

#[test]
fn a_library_that_another_thread_looks_at_during_its_relocation_is_recorded_from_its_first_call() {
    const ROUNDS: u64 = 50;
    let _turn = turn();
    for path in RELOCATED_LATE {
        let path = CString::new(path).unwrap();
        let snapshot = record_beside_looks("late", ROUNDS, || {
            let library = open_as(&path, libc::RTLD_LAZY);
            // SAFETY: the function has this type, and the handle is closed once, after it has returned.
            unsafe {
                let allocate = libc::dlsym(library, c"allocate".as_ptr());
                assert!(!allocate.is_null());
                std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(allocate)();
                libc::dlclose(library);
            }
        });
        let of_its_size = my_sites(&snapshot)
            .into_iter()
            .filter(|site| site.allocated.bytes == 100_000 * site.allocated.count);
        let seen: u64 = of_its_size.map(|site| site.allocated.count).sum();
        assert_eq!(seen, ROUNDS, "{path:?}");
    }
}

#[test]
fn the_loader_still_sees_the_true_caller() {
    let _turn = turn();
    drop(record("caller", || {
        // RTLD_NEXT is looked up from the caller's module: it works only if the caller is this program.
        // SAFETY: a pseudo handle and a C string.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"strlen".as_ptr()) };
        assert!(!next.is_null());
    }));
}
