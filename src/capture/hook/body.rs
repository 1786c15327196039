//! The functions that entries jump to: they call the real function and record its result.
//!
//! The calling thread is busy from the real call to the end of the record, so that calls inside an allocator are not counted
//! again.
//!
//! Calls that sampling leaves out do not come here: entries jump to the real function at once.

use core::ffi::{c_int, c_long, c_void};
use core::ptr;

use super::real;
use crate::capture::arch::{self, Registers};
use crate::capture::event::Kind;
use crate::capture::failure;
use crate::capture::record::{self, Reallocation, seen};
use crate::capture::sampling;
use crate::capture::thread::{Local, with_local};

/// Runs `call` with the thread busy and records the block that `block` finds in its result.
#[inline(always)]
pub(super) fn allocating<R: Copy>(
    by: u8,
    kind: Kind,
    size: usize,
    registers: Registers,
    call: impl Fn() -> R,
    block: impl Fn(R) -> *mut c_void,
) -> R {
    with_local(|local| {
        if !record::wants_allocation(local)
            || record::probed(local, by)
            || !sampling::is_due(local, size)
        {
            return call();
        }
        local.set_busy(true);
        let mut result = call();
        if block(result).is_null() && failed(kind, size) {
            result = call();
        }
        let address = block(result);
        if !address.is_null() {
            // SAFETY: the registers are those of the call this hook was entered by; the thread is busy.
            unsafe { record::allocation(local, kind, address as usize, size, registers) };
        }
        local.set_busy(false);
        result
    })
}

/// Notes that the real function returned no block. Returns whether the call should be repeated.
#[cold]
fn failed(kind: Kind, size: usize) -> bool {
    // `posix_memalign` returns its error and does not set `errno`.
    if !matches!(kind, Kind::PosixMemalign) && !is_out_of_memory() {
        return false;
    }
    failure::note(size)
}

/// Returns whether the last call of the C library or the kernel failed for lack of memory.
fn is_out_of_memory() -> bool {
    // SAFETY: the calling thread's own word.
    unsafe { *libc::__errno_location() == libc::ENOMEM }
}

macro_rules! plain_allocations {
    ($($name:ident($($argument:ident: $type:ty),*), $by:ident $kind:ident, $size:expr;)*) => {
        $(
            pub(super) unsafe extern "C" fn $name($($argument: $type,)* ip: u64, sp: u64, bp: u64) -> *mut c_void {
                let registers = Registers { return_address: ip, sp, bp };
                // SAFETY: the caller's own call, handed on.
                allocating(seen::$by, Kind::$kind, $size, registers, || unsafe { real::$name.get()($($argument),*) }, |block| block)
            }
        )*
    };
}

plain_allocations! {
    malloc(size: usize), GOT Malloc, size;
    valloc(size: usize), ALIGNED Valloc, size;
    pvalloc(size: usize), ALIGNED Pvalloc, size;
    // A product that overflows makes the real function fail: nothing is recorded.
    calloc(count: usize, size: usize), GOT Calloc, count.saturating_mul(size);
    aligned_alloc(alignment: usize, size: usize), ALIGNED AlignedAlloc, size;
    memalign(alignment: usize, size: usize), ALIGNED Memalign, size;
    _ZnwmRKSt9nothrow_t(size: usize, tag: *const c_void), OPERATOR Malloc, size;
    _ZnamRKSt9nothrow_t(size: usize, tag: *const c_void), OPERATOR Malloc, size;
    _ZnwmSt11align_val_tRKSt9nothrow_t(size: usize, alignment: usize, tag: *const c_void), OPERATOR AlignedAlloc, size;
    _ZnamSt11align_val_tRKSt9nothrow_t(size: usize, alignment: usize, tag: *const c_void), OPERATOR AlignedAlloc, size;
}

pub(super) unsafe extern "C" fn posix_memalign(
    place: *mut *mut c_void,
    alignment: usize,
    size: usize,
    ip: u64,
    sp: u64,
    bp: u64,
) -> c_int {
    let registers = Registers {
        return_address: ip,
        sp,
        bp,
    };
    // Such a call fails because of its alignment, not for lack of memory.
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<*mut c_void>()) {
        // SAFETY: the caller's own call, handed on.
        return unsafe { real::posix_memalign.get()(place, alignment, size) };
    }
    allocating(
        seen::ALIGNED,
        Kind::PosixMemalign,
        size,
        registers,
        // SAFETY: the caller's own call, handed on.
        || unsafe { real::posix_memalign.get()(place, alignment, size) },
        |error| match error {
            // SAFETY: on success the real function has written the block's address to `place`.
            0 => unsafe { *place },
            _ => ptr::null_mut(),
        },
    )
}

pub(super) unsafe extern "C" fn free(block: *mut c_void) {
    with_local(|local| {
        if block.is_null()
            || !record::wants_free(local)
            || record::probed(local, seen::GOT)
            || !sampling::is_end_due(block as usize)
        {
            // SAFETY: the caller's own call, handed on.
            return unsafe { real::free.get()(block) };
        }
        local.set_busy(true);
        record::free_block(local, block as usize);
        // SAFETY: the caller's own call, handed on.
        unsafe { real::free.get()(block) };
        local.set_busy(false);
    });
}

/// Records a free like `free`, for functions that are called less often. `call` frees the block.
#[inline(always)]
pub(super) fn freeing(by: u8, block: *mut c_void, call: impl Fn()) {
    if sampling::is_free_unsampled(block as usize) {
        return call();
    }
    with_local(|local| {
        if block.is_null()
            || !record::wants_free(local)
            || record::probed(local, by)
            || !sampling::is_end_due(block as usize)
        {
            return call();
        }
        local.set_busy(true);
        record::free_block(local, block as usize);
        call();
        local.set_busy(false);
    });
}

pub(super) unsafe extern "C" fn free_sized(block: *mut c_void, size: usize) {
    // SAFETY: the caller's own call, handed on.
    freeing(seen::GOT, block, || unsafe {
        real::free_sized.get()(block, size);
    });
}

pub(super) unsafe extern "C" fn free_aligned_sized(
    block: *mut c_void,
    alignment: usize,
    size: usize,
) {
    // SAFETY: the caller's own call, handed on.
    freeing(seen::GOT, block, || unsafe {
        real::free_aligned_sized.get()(block, alignment, size);
    });
}

/// Records a `realloc` as a free before the real call and an allocation after it: between the two, another thread may be
/// given the old block's address.
fn reallocating(
    block: *mut c_void,
    size: usize,
    registers: Registers,
    call: impl Fn() -> *mut c_void,
) -> *mut c_void {
    if block.is_null() {
        return allocating(seen::GOT, Kind::Realloc, size, registers, call, |block| {
            block
        });
    }
    with_local(|local| {
        if !record::wants_free(local) || record::probed(local, seen::GOT) {
            return call();
        }
        let begun = Reallocation::begin(local, block as usize, size);
        local.set_busy(true);
        begun.before(local);
        let mut result = call();
        if result.is_null() && size != 0 && failed(Kind::Realloc, size) {
            result = call();
        }
        // SAFETY: the registers are those of the call this hook was entered by; the thread is busy.
        unsafe { begun.after(local, result as usize, registers) };
        local.set_busy(false);
        result
    })
}

pub(super) unsafe extern "C" fn realloc(
    block: *mut c_void,
    size: usize,
    ip: u64,
    sp: u64,
    bp: u64,
) -> *mut c_void {
    let registers = Registers {
        return_address: ip,
        sp,
        bp,
    };
    // SAFETY: the caller's own call, handed on.
    reallocating(block, size, registers, || unsafe {
        real::realloc.get()(block, size)
    })
}

pub(super) unsafe extern "C" fn reallocarray(
    block: *mut c_void,
    count: usize,
    size: usize,
    ip: u64,
    sp: u64,
    bp: u64,
) -> *mut c_void {
    let registers = Registers {
        return_address: ip,
        sp,
        bp,
    };
    // On overflow the real function fails, which must not look like `realloc(block, 0)`.
    let bytes = count.saturating_mul(size);
    // SAFETY: the caller's own call, handed on.
    reallocating(block, bytes, registers, || unsafe {
        real::reallocarray.get()(block, count, size)
    })
}

/// Records a mapping. A mapping that cannot be read or written is address space, not memory: it is not recorded, and over
/// another mapping (`MAP_FIXED`) it is the end of that one.
fn mapping(
    local: &Local,
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    registers: Registers,
) {
    if address == libc::MAP_FAILED {
    } else if protection == libc::PROT_NONE {
        if flags & libc::MAP_FIXED != 0 {
            let length = round_to_pages(length);
            record::unmapping(local, address as usize, length);
        }
    } else if !local.is_untracked() {
        // SAFETY: the registers are those of the call the hook was entered by; the thread is busy.
        unsafe { record::allocation(local, Kind::Mmap, address as usize, length, registers) };
    }
}

/// Returns whether there was no memory for a mapping, and the call should be repeated.
fn failed_to_map(address: *mut c_void, length: usize) -> bool {
    address == libc::MAP_FAILED && is_out_of_memory() && failure::note(length)
}

macro_rules! mappings {
    ($($name:ident)*) => {
        $(
            pub(super) unsafe extern "C" fn $name(
                hint: *mut c_void,
                length: usize,
                protection: c_int,
                flags: c_int,
                file: c_int,
                offset: c_long,
                registers: &Registers,
            ) -> *mut c_void {
                // SAFETY: the caller's own call, handed on.
                let call = || unsafe { real::$name.get()(hint, length, protection, flags, file, offset) };
                with_local(|local| {
                    if !record::wants_free(local) || record::probed(local, seen::MAPPING) {
                        return call();
                    }
                    local.set_busy(true);
                    let mut address = call();
                    // A program that reserves only address space often tries how much there is.
                    if protection != libc::PROT_NONE && failed_to_map(address, length) {
                        address = call();
                    }
                    mapping(local, address, length, protection, flags, *registers);
                    local.set_busy(false);
                    address
                })
            }
        )*
    };
}

mappings! { mmap mmap64 }

pub(super) unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    with_local(|local| {
        // The kernel refuses an unaligned address and a length of 0, and unmaps anything else.
        let valid = (address as usize).is_multiple_of(arch::page_size()) && length != 0;
        if !valid || !record::wants_free(local) || record::probed(local, seen::MAPPING) {
            // SAFETY: the caller's own call, handed on.
            return unsafe { real::munmap.get()(address, length) };
        }
        local.set_busy(true);
        record::unmapping(local, address as usize, round_to_pages(length));
        // SAFETY: the caller's own call, handed on.
        let result = unsafe { real::munmap.get()(address, length) };
        local.set_busy(false);
        result
    })
}

/// Records an `mremap` as the end of the old range and an allocation of the new one at the call's own site, like `realloc`.
pub(super) unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_length: usize,
    length: usize,
    flags: c_int,
    wanted: *mut c_void,
    _: usize,
    registers: &Registers,
) -> *mut c_void {
    // SAFETY: the caller's own call, handed on. The fifth argument is read only where `flags` say so.
    let call = || unsafe { real::mremap.get()(old, old_length, length, flags, wanted) };
    with_local(|local| {
        if !record::wants_free(local) || record::probed(local, seen::MAPPING) {
            return call();
        }
        local.set_busy(true);
        // With length 0, the old range is shared and stays; MREMAP_DONTUNMAP keeps it too.
        let ends = old_length != 0 && flags & MREMAP_DONTUNMAP == 0;
        let old_range = (old as usize, round_to_pages(old_length));
        // If the range may move, another thread can get its address before the call returns.
        let moves = flags & libc::MREMAP_MAYMOVE != 0;
        if ends && moves {
            record::unmapping(local, old_range.0, old_range.1);
        }
        let mut address = call();
        // A range often cannot grow in place. A caller that does not allow a move handles that case.
        if moves && length > old_length && failed_to_map(address, length) {
            address = call();
        }
        if address != libc::MAP_FAILED {
            if ends && !moves {
                record::unmapping(local, old_range.0, old_range.1);
            }
            mapping(local, address, length, libc::PROT_READ, 0, *registers);
        } else if ends && moves {
            mapping(local, old, old_length, libc::PROT_READ, 0, *registers);
        }
        local.set_busy(false);
        address
    })
}

/// Linux's own value, which not every libc crate has.
const MREMAP_DONTUNMAP: c_int = 4;

fn round_to_pages(length: usize) -> usize {
    length
        .checked_next_multiple_of(arch::page_size())
        .unwrap_or(length)
}
