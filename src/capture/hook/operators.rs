//! C++'s `operator new` and `delete`, by the names that the Itanium C++ ABI gives them.
//!
//! The operators of libstdc++ and libc++ call `malloc` and `free` through slots that are patched. An allocator that replaces
//! them (jemalloc, tcmalloc, mimalloc) has operators that take blocks from the allocator directly. So at the start of the
//! first session each form of `new` is tried, and hooked if its blocks were not recorded. A `new` that calls `malloc` is
//! left alone: it may give the caller another address than the one that `malloc` returned.
//!
//! ```text
//!   entry ─▶ begin ─▶ not recorded: the real operator, by a jump
//!                 └─▶ recorded: the real operator, by a call ─▶ end
//!                                     └─▶ it throws: pass_by
//! ```
//!
//! Between `begin` and `end` no Rust function is on the stack: an exception may not pass a Rust function in a program that
//! is built with `panic=abort`.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use super::body::freeing;
use super::{entry, lookup, real};
use crate::capture::arch::Registers;
use crate::capture::event::Kind;
use crate::capture::failure;
use crate::capture::record::{self, seen};
use crate::capture::sampling;
use crate::capture::thread::with_local;

macro_rules! deletes {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            pub(super) unsafe extern "C" fn $name(block: *mut c_void $(, $argument: $type)*) {
                // SAFETY: the caller's own call, handed on.
                freeing(seen::OPERATOR, block, || unsafe { real::$name.get()(block $(, $argument)*) });
            }
        )*
    };
}

deletes! {
    _ZdlPv();
    _ZdaPv();
    _ZdlPvm(size: usize);
    _ZdaPvm(size: usize);
    _ZdlPvRKSt9nothrow_t(tag: *const c_void);
    _ZdaPvRKSt9nothrow_t(tag: *const c_void);
    _ZdlPvSt11align_val_t(alignment: usize);
    _ZdaPvSt11align_val_t(alignment: usize);
    _ZdlPvmSt11align_val_t(size: usize, alignment: usize);
    _ZdaPvmSt11align_val_t(size: usize, alignment: usize);
    _ZdlPvSt11align_val_tRKSt9nothrow_t(alignment: usize, tag: *const c_void);
    _ZdaPvSt11align_val_tRKSt9nothrow_t(alignment: usize, tag: *const c_void);
}

/// Runs before a `new` that may throw. Returns whether the call is to be recorded: then the thread is busy until `end`, or
/// until the exception has passed.
pub(super) extern "C" fn begin(size: usize) -> bool {
    with_local(|local| {
        if sampling::is_unsampled(local, size)
            || !record::wants_allocation(local)
            || record::probed(local, seen::OPERATOR)
            || !sampling::is_due(local, size)
        {
            return false;
        }
        local.set_busy(true);
        true
    })
}

/// Runs after the operator has returned, and returns the operator's block.
///
/// # Safety
/// `ip`, `sp` and `bp` are the registers of the caller of the entry that called `begin`.
unsafe fn end(kind: Kind, block: *mut c_void, size: usize, registers: Registers) -> *mut c_void {
    with_local(|local| {
        if !block.is_null() {
            // SAFETY: the caller's promise; the thread is busy since `begin`.
            unsafe { record::allocation(local, kind, block as usize, size, registers) };
        }
        local.set_busy(false);
    });
    block
}

macro_rules! ends {
    ($($name:ident $kind:ident;)*) => {
        $(
            pub(super) unsafe extern "C" fn $name(
                block: *mut c_void,
                size: usize,
                ip: u64,
                sp: u64,
                bp: u64,
            ) -> *mut c_void {
                let registers = Registers { return_address: ip, sp, bp };
                // SAFETY: the entry hands on what it was called with.
                unsafe { end(Kind::$kind, block, size, registers) }
            }
        )*
    };
}

ends! {
    end_plain Malloc;
    end_aligned AlignedAlloc;
}

/// Personality routine of the entries that call a `new` that may throw (Itanium C++ ABI, "Exception Handling", 1.6.3). The
/// exception goes on to the caller, and the thread is not busy any more.
pub(super) unsafe extern "C" fn pass_by(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    const CLEANUP_PHASE: c_int = 2;
    const CONTINUE_UNWIND: c_int = 8;
    if actions & CLEANUP_PHASE != 0 {
        // SAFETY: the unwinder's own function and context; the frame is that of one of the entries, which keep the size
        // there.
        let size = unsafe {
            let cfa = _Unwind_GetCFA(context);
            *((cfa - entry::SIZE_BELOW_CFA) as *const usize)
        };
        let _ = failure::note(size);
        with_local(|local| local.set_busy(false));
    }
    CONTINUE_UNWIND
}

unsafe extern "C" {
    /// Returns the canonical frame address of the frame for which a personality routine runs. The standard library links the
    /// library that has this function.
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

/// Set once it is decided which operators are hooked. Before, none are.
static CHOSEN: AtomicBool = AtomicBool::new(false);

/// Returns whether it is decided which operators are hooked.
pub(super) fn are_chosen() -> bool {
    CHOSEN.load(Ordering::Acquire)
}

/// Set if an operator takes blocks from its own library and cannot be hooked, because no `delete` would return them.
static UNSEEN: AtomicBool = AtomicBool::new(false);

/// Returns whether all operators that take blocks from another library are hooked.
pub(super) fn all_are_seen() -> bool {
    !UNSEEN.load(Ordering::Relaxed)
}

/// Number of blocks that are tried. An operator that gets many blocks from one `malloc` returns most of them without a call.
const TRIES: usize = 4;

macro_rules! forms {
    ($($name:ident($($argument:expr),*) / $delete:ident($($delete_argument:expr),*);)*) => {
        /// Tries each form of `new` and forgets those that are not to be hooked, and every `delete` if no form is left.
        /// Called while a session is open, with `malloc` and its like patched and the thread busy. Returns whether an
        /// operator is newly hooked.
        pub fn choose() -> bool {
            if CHOSEN.load(Ordering::Relaxed) {
                return false;
            }
            let mut any = false;
            $({
                let replaced = real::$name.address() != 0 && !is_standard(real::$name.address());
                if replaced && real::$delete.address() == 0 {
                    UNSEEN.store(true, Ordering::Relaxed);
                }
                let own = replaced
                    && real::$delete.address() != 0
                    && gives_unseen_blocks(
                        // SAFETY: the process's own functions of these names, called as C++ calls them.
                        || unsafe { real::$name.get()($($argument),*) },
                        // SAFETY: a block of its `new`, deleted once.
                        |block| unsafe { real::$delete.get()(block $(, $delete_argument)*) },
                    );
                if !own {
                    real::$name.forget();
                }
                any |= own;
            })*
            if !any {
                real::forget_deletes();
            }
            CHOSEN.store(true, Ordering::Release);
            any
        }
    };
}

const SIZE: usize = 48;
const ALIGNMENT: usize = 64;

/// `std::nothrow` is an object without members: only its type matters.
static NOTHROW: u8 = 0;

fn nothrow() -> *const c_void {
    (&raw const NOTHROW).cast()
}

forms! {
    _Znwm(SIZE) / _ZdlPv();
    _Znam(SIZE) / _ZdaPv();
    _ZnwmRKSt9nothrow_t(SIZE, nothrow()) / _ZdlPv();
    _ZnamRKSt9nothrow_t(SIZE, nothrow()) / _ZdaPv();
    _ZnwmSt11align_val_t(SIZE, ALIGNMENT) / _ZdlPvSt11align_val_t(ALIGNMENT);
    _ZnamSt11align_val_t(SIZE, ALIGNMENT) / _ZdaPvSt11align_val_t(ALIGNMENT);
    _ZnwmSt11align_val_tRKSt9nothrow_t(SIZE, ALIGNMENT, nothrow()) / _ZdlPvSt11align_val_t(ALIGNMENT);
    _ZnamSt11align_val_tRKSt9nothrow_t(SIZE, ALIGNMENT, nothrow()) / _ZdaPvSt11align_val_t(ALIGNMENT);
}

/// Returns whether a block came without a recorded call of `malloc` or its like.
fn gives_unseen_blocks(new: impl Fn() -> *mut c_void, delete: impl Fn(*mut c_void)) -> bool {
    let mut unseen = false;
    let blocks: [*mut c_void; TRIES] = core::array::from_fn(|_| {
        let mut block = core::ptr::null_mut();
        let by = record::probe(|| block = new());
        unseen |= by & (seen::GOT | seen::ALIGNED) == 0;
        block
    });
    blocks.into_iter().for_each(delete);
    unseen
}

/// Returns whether the operator at `address` belongs to a C++ standard library, whose operators call `malloc`.
fn is_standard(address: usize) -> bool {
    lookup::file_of(address)
        .is_some_and(|file| file.starts_with(b"libstdc++") || file.starts_with(b"libc++"))
}
