//! Tests random call paths through Rust and C: every captured stack equals libgcc's, with the cache enabled.

use std::cell::RefCell;
use std::hint::black_box;

use crate::unwinder::{Numbers, Recorder, random_program};
use heapray_c_fixtures::{CAPTURE, FUNCTIONS, Function, Program, RETURN};

thread_local! {
    static RECORDER: RefCell<(Recorder, u64)> = RefCell::new((Recorder::new(), 0));
}

unsafe extern "C" fn capture(_: *mut Program) {
    RECORDER.with_borrow_mut(|(recorder, captures)| {
        let stack = recorder.check();
        assert_eq!(stack.mark, None);
        *captures += 1;
    });
}

/// Runs the program's bytes as the C functions do.
#[inline(always)]
unsafe fn run(program: *mut Program) {
    // SAFETY: programs are valid and used by one function at a time.
    unsafe {
        while (*program).next < (*program).end {
            let byte = *(*program).next;
            (*program).next = (*program).next.add(1);
            match byte {
                RETURN => return,
                CAPTURE => ((*program).capture)(program),
                _ => {
                    let index = usize::from(byte) % (*program).count;
                    (*(*program).functions.add(index))(program);
                }
            }
        }
    }
}

#[inline(never)]
unsafe extern "C" fn rust_plain(program: *mut Program) {
    // SAFETY: as in `run`.
    unsafe { run(program) }
}

#[inline(never)]
unsafe extern "C" fn rust_large(program: *mut Program) {
    let room = black_box([0u64; 300]);
    // SAFETY: as in `run`.
    unsafe { run(program) }
    black_box(room);
}

#[inline(never)]
unsafe extern "C" fn rust_closure(program: *mut Program) {
    let through: Box<dyn Fn()> = Box::new(|| {
        // SAFETY: as in `run`.
        (0..1).for_each(|_| unsafe { run(program) })
    });
    black_box(&through)();
}

#[inline(never)]
unsafe extern "C" fn rust_sort(program: *mut Program) {
    let mut once = false;
    [2, 1].sort_by(|a, b| {
        if !once {
            once = true;
            // SAFETY: as in `run`.
            unsafe { run(program) }
        }
        a.cmp(b)
    });
}

unsafe extern "C" fn compare(program: *const libc::c_void, _: *const libc::c_void) -> libc::c_int {
    // SAFETY: `qsort_in_c` sorts pointers to the program.
    unsafe { run(*program.cast::<*mut Program>()) };
    0
}

#[inline(never)]
unsafe extern "C" fn qsort_in_c(program: *mut Program) {
    let mut two = [program; 2];
    // SAFETY: two pointers, which `compare` expects.
    unsafe {
        libc::qsort(
            two.as_mut_ptr().cast(),
            2,
            size_of::<*mut Program>(),
            Some(compare),
        )
    };
}

#[inline(never)]
unsafe extern "C" fn rust_catch(program: *mut Program) {
    // SAFETY: as in `run`.
    let outcome = std::panic::catch_unwind(|| unsafe {
        run(program);
        if !program.is_null() {
            std::panic::resume_unwind(Box::new(()));
        }
    });
    assert!(outcome.is_err());
}

fn run_program(bytes: &[u8]) {
    let rust: [Function; 6] = [
        rust_plain,
        rust_large,
        rust_closure,
        rust_sort,
        qsort_in_c,
        rust_catch,
    ];
    let functions: Vec<Function> = FUNCTIONS.into_iter().chain(rust).collect();
    // SAFETY: all functions are made to run a program.
    unsafe { Program::run(bytes, &functions, capture, rust_plain) };
}

fn captures_on_a_new_thread(seed: u64, captures: usize, deepest: usize) -> u64 {
    let thread = std::thread::Builder::new().stack_size(16 << 20);
    let run = move || {
        let mut numbers = Numbers(seed);
        for _ in 0..captures / 500 {
            let deepest = 1 + numbers.below(deepest as u64) as usize;
            run_program(&random_program(&mut numbers, 500, deepest));
        }
        RECORDER.with_borrow(|(recorder, captures)| {
            assert_eq!(recorder.unwinder.counts(), Default::default());
            *captures
        })
    };
    thread.spawn(run).unwrap().join().unwrap()
}

#[test]
fn a_hundred_thousand_stacks_of_random_paths_equal_those_of_libgcc() {
    let threads: Vec<_> = (0..2)
        .map(|seed| std::thread::spawn(move || captures_on_a_new_thread(seed, 50_000, 60)))
        .collect();
    let captures: u64 = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert!(captures >= 100_000);
}
