//! Tests of odd stacks: panics, callbacks from C, foreign stacks, very deep stacks.

use std::cell::Cell;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use crate::support::{my_sites, record, stack, sum, tally, turn};
use heapray::collector::snapshot::{RawNode, Snapshot};
use heapray_report::model::Tally;

fn site_of(snapshot: &Snapshot, bytes: u64) -> Vec<Vec<u64>> {
    my_sites(snapshot)
        .iter()
        .filter(|site| {
            site.allocated.count > 0 && site.allocated.bytes == bytes * site.allocated.count
        })
        .map(|site| stack(snapshot, site))
        .collect()
}

#[inline(never)]
fn recurse(depth: usize, leaf: &mut dyn FnMut()) -> usize {
    let kept = black_box([depth; 4]);
    if depth == 0 {
        leaf();
        return kept[0];
    }
    recurse(depth - 1, leaf) + black_box(kept)[1]
}

#[test]
fn panics_that_unwind_through_recorded_frames_leave_stacks_right() {
    let _turn = turn();
    std::panic::set_hook(Box::new(|_| {}));
    let snapshot = record("panics", || {
        for depth in (0..200).chain((0..200).rev()) {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                recurse(depth, &mut || {
                    drop(black_box(vec![0_u8; 30_001]));
                    panic!("through {depth} frames");
                })
            }));
            assert!(caught.is_err());
            recurse(depth / 2, &mut || drop(black_box(vec![0_u8; 30_002])));
        }
    });
    drop(std::panic::take_hook());
    // Each depth has one stack: the unwinder must not reuse a stack whose frames a panic has unwound.
    let stacks = site_of(&snapshot, 30_001);
    assert_eq!(stacks.len(), 200);
    let mut depths: Vec<usize> = stacks.iter().map(Vec::len).collect();
    depths.sort_unstable();
    assert!(
        depths.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{depths:?}"
    );
    assert_eq!(site_of(&snapshot, 30_002).len(), 100);
    assert_eq!(snapshot.stacks_incomplete, 0);
}

thread_local! {
    static COMPARISONS: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" fn compare(a: *const libc::c_void, b: *const libc::c_void) -> i32 {
    COMPARISONS.set(COMPARISONS.get() + 1);
    drop(black_box(vec![0_u8; 40_001]));
    // SAFETY: qsort passes pointers into the array of u32.
    let (a, b) = unsafe { (*a.cast::<u32>(), *b.cast::<u32>()) };
    a.cmp(&b) as i32
}

#[test]
fn the_stack_of_a_callback_from_c_has_the_callers_beyond_c() {
    let _turn = turn();
    let mut numbers: Vec<u32> = (0..500_u32)
        .map(|n| n.wrapping_mul(2_654_435_761) % 1000)
        .collect();
    let snapshot = record("qsort", || {
        // SAFETY: the array's own length and element size.
        unsafe { libc::qsort(numbers.as_mut_ptr().cast(), numbers.len(), 4, Some(compare)) };
    });
    let of_compare = sum(&my_sites(&snapshot), None, |site| {
        if site.allocated.bytes == 40_001 * site.allocated.count {
            site.allocated
        } else {
            Tally::default()
        }
    });
    assert_eq!(of_compare.count as usize, COMPARISONS.get());
    let stacks = site_of(&snapshot, 40_001);
    let roots: Vec<_> = stacks.iter().map(|stack| *stack.last().unwrap()).collect();
    assert!(
        roots.iter().all(|&root| root == roots[0]),
        "every stack reaches the thread's root"
    );
    assert_eq!(snapshot.stacks_incomplete, 0);
}

#[test]
fn a_stack_of_ten_thousand_frames_is_cut_and_marked() {
    let _turn = turn();
    let snapshot = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(|| {
            let snapshot = record("deep", || {
                recurse(10_000, &mut || drop(black_box(vec![0_u8; 50_001])));
                recurse(100, &mut || drop(black_box(vec![0_u8; 50_002])));
            });
            let deep = site_of(&snapshot, 50_001);
            assert_eq!(deep.len(), 1);
            assert_eq!(*deep[0].last().unwrap(), RawNode::CUT);
            assert!((2048..10_000).contains(&deep[0].len()), "{}", deep[0].len());
            let usual = site_of(&snapshot, 50_002);
            assert!(
                *usual[0].last().unwrap() > 4096,
                "a stack of usual depth is complete"
            );
            snapshot
        })
        .unwrap()
        .join()
        .unwrap();
    assert_eq!(snapshot.stacks_cut, 1);
}

unsafe extern "C" fn on_signal(_: i32) {
    // A program must not allocate in a handler, but heapray must survive it. The thread raises the signal itself, so it is
    // not inside malloc.
    drop(black_box(vec![0_u8; 60_001]));
}

#[test]
fn allocation_on_an_alternate_signal_stack() {
    let _turn = turn();
    let mut alternate = vec![0_u8; 64 << 10];
    let snapshot = record("sigaltstack", || {
        // SAFETY: the stack lives longer than the handler is installed; the handler is a C function.
        unsafe {
            let stack = libc::stack_t {
                ss_sp: alternate.as_mut_ptr().cast(),
                ss_flags: 0,
                ss_size: alternate.len(),
            };
            let mut before: libc::stack_t = std::mem::zeroed();
            assert_eq!(libc::sigaltstack(&raw const stack, &raw mut before), 0);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            assert_eq!(
                libc::sigaction(libc::SIGUSR1, &raw const action, null_mut()),
                0
            );
            for _ in 0..100 {
                assert_eq!(libc::raise(libc::SIGUSR1), 0);
                drop(black_box(vec![0_u8; 60_002]));
            }
            action.sa_sigaction = libc::SIG_DFL;
            assert_eq!(
                libc::sigaction(libc::SIGUSR1, &raw const action, null_mut()),
                0
            );
            assert_eq!(libc::sigaltstack(&raw const before, null_mut()), 0);
        }
    });
    let in_handler = sum(&my_sites(&snapshot), None, |site| {
        if site.allocated.bytes == 60_001 * site.allocated.count {
            site.allocated
        } else {
            Tally::default()
        }
    });
    assert_eq!(in_handler, tally(100, 100 * 60_001));
}

extern "C" fn coroutine() {
    for _ in 0..50 {
        recurse(5, &mut || drop(black_box(vec![0_u8; 70_001])));
    }
}

#[test]
fn allocation_on_a_coroutines_stack() {
    let _turn = turn();
    let mut memory = vec![0_u8; 256 << 10];
    let snapshot = record("coroutine", || {
        for _ in 0..20 {
            let mut here = MaybeUninit::<libc::ucontext_t>::zeroed();
            let mut there = MaybeUninit::<libc::ucontext_t>::zeroed();
            // SAFETY: contexts that are filled in by getcontext; the coroutine's stack outlives its run, and it
            // returns through `uc_link`.
            unsafe {
                assert_eq!(libc::getcontext(there.as_mut_ptr()), 0);
                let context = there.as_mut_ptr();
                (*context).uc_stack.ss_sp = memory.as_mut_ptr().cast();
                (*context).uc_stack.ss_size = memory.len();
                (*context).uc_link = here.as_mut_ptr();
                libc::makecontext(context, coroutine, 0);
                assert_eq!(libc::swapcontext(here.as_mut_ptr(), context), 0);
            }
            drop(black_box(vec![0_u8; 70_002]));
        }
    });
    let of = |bytes| {
        sum(&my_sites(&snapshot), None, |site| {
            if site.allocated.bytes == bytes * site.allocated.count {
                site.allocated
            } else {
                Tally::default()
            }
        })
        .count
    };
    assert_eq!((of(70_001), of(70_002)), (1000, 20));
    assert!(
        site_of(&snapshot, 70_001)
            .iter()
            .all(|stack| stack.len() > 6)
    );
}
