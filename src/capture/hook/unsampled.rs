//! Where entries do not do so themselves: a function that saves no register decides with a few instructions whether sampling
//! leaves the call out, and leaves by a jump. All else is in [`body`].

use core::ffi::c_void;

pub(super) use super::body::{posix_memalign, reallocarray};
use super::{body, real};
use crate::capture::sampling;
use crate::capture::thread::with_local;

macro_rules! allocations {
    ($($name:ident($($argument:ident: $type:ty),*), $size:expr;)*) => {
        $(
            pub(super) unsafe extern "C" fn $name($($argument: $type,)* ip: u64, sp: u64, bp: u64) -> *mut c_void {
                if with_local(|local| sampling::is_unsampled(local, $size)) {
                    // SAFETY: the caller's own call, handed on.
                    return unsafe { real::$name.get()($($argument),*) };
                }
                // SAFETY: as above.
                unsafe { body::$name($($argument,)* ip, sp, bp) }
            }
        )*
    };
}

allocations! {
    malloc(size: usize), size;
    valloc(size: usize), size;
    pvalloc(size: usize), size;
    calloc(count: usize, size: usize), count.saturating_mul(size);
    aligned_alloc(alignment: usize, size: usize), size;
    memalign(alignment: usize, size: usize), size;
    _ZnwmRKSt9nothrow_t(size: usize, tag: *const c_void), size;
    _ZnamRKSt9nothrow_t(size: usize, tag: *const c_void), size;
    _ZnwmSt11align_val_tRKSt9nothrow_t(size: usize, alignment: usize, tag: *const c_void), size;
    _ZnamSt11align_val_tRKSt9nothrow_t(size: usize, alignment: usize, tag: *const c_void), size;
}

pub(super) unsafe extern "C" fn free(block: *mut c_void) {
    if sampling::is_free_unsampled(block as usize) {
        // SAFETY: the caller's own call, handed on.
        return unsafe { real::free.get()(block) };
    }
    // SAFETY: as above.
    unsafe { body::free(block) }
}

pub(super) unsafe extern "C" fn realloc(
    block: *mut c_void,
    size: usize,
    ip: u64,
    sp: u64,
    bp: u64,
) -> *mut c_void {
    if with_local(|local| sampling::is_realloc_unsampled(local, block as usize, size)) {
        // SAFETY: the caller's own call, handed on.
        return unsafe { real::realloc.get()(block, size) };
    }
    // SAFETY: as above.
    unsafe { body::realloc(block, size, ip, sp, bp) }
}
