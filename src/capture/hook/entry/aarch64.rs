//! The entries for AArch64. Each begins with `bti c` (`hint #34`), a valid target of an indirect jump in a program that was
//! built to check that.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_long, c_void};

pub(in super::super) use super::super::unsampled::free;
use super::super::{body, lookup, operators, real, unsampled};

/// Entries of functions with one, two or three arguments: return address, the caller's `sp` and `x29` follow in the next
/// argument registers. A call changes neither, and leaves the return address in `x30`.
macro_rules! entries {
    ($($name:ident($($argument:ty),*) -> $result:ty, $ip:literal $sp:literal $bp:literal;)*) => {
        $(
            /// The entry for the C function of this name.
            #[unsafe(naked)]
            pub(in super::super) unsafe extern "C" fn $name($(_: $argument),*) -> $result {
                naked_asm!(
                    "hint #34",
                    concat!("mov ", $ip, ", x30"),
                    concat!("mov ", $sp, ", sp"),
                    concat!("mov ", $bp, ", x29"),
                    "b {body}",
                    body = sym unsampled::$name,
                )
            }
        )*
    };
}

entries! {
    malloc(usize) -> *mut c_void, "x1" "x2" "x3";
    valloc(usize) -> *mut c_void, "x1" "x2" "x3";
    pvalloc(usize) -> *mut c_void, "x1" "x2" "x3";
    calloc(usize, usize) -> *mut c_void, "x2" "x3" "x4";
    realloc(*mut c_void, usize) -> *mut c_void, "x2" "x3" "x4";
    aligned_alloc(usize, usize) -> *mut c_void, "x2" "x3" "x4";
    memalign(usize, usize) -> *mut c_void, "x2" "x3" "x4";
    reallocarray(*mut c_void, usize, usize) -> *mut c_void, "x3" "x4" "x5";
    posix_memalign(*mut *mut c_void, usize, usize) -> c_int, "x3" "x4" "x5";
    _ZnwmRKSt9nothrow_t(usize, *const c_void) -> *mut c_void, "x2" "x3" "x4";
    _ZnamRKSt9nothrow_t(usize, *const c_void) -> *mut c_void, "x2" "x3" "x4";
    _ZnwmSt11align_val_tRKSt9nothrow_t(usize, usize, *const c_void) -> *mut c_void, "x3" "x4" "x5";
    _ZnamSt11align_val_tRKSt9nothrow_t(usize, usize, *const c_void) -> *mut c_void, "x3" "x4" "x5";
}

/// Place, below the CFA, where the entries of operators that may throw keep the requested size.
pub(in super::super) const SIZE_BELOW_CFA: usize = 16;

/// Entries of operators that may throw. They call the real operator instead of jumping to it, and call it from here, not
/// from Rust code. The personality routine removes the thread's busy mark when an exception passes (0x1b: its address
/// relative to the place, in four bytes).
macro_rules! throwing_entries {
    ($($name:ident($($argument:ty),*), $end:ident;)*) => {
        $(
            /// The entry for the C++ operator of this name.
            #[unsafe(naked)]
            pub(in super::super) unsafe extern "C" fn $name($(_: $argument),*) -> *mut c_void {
                naked_asm!(
                    ".cfi_startproc",
                    ".cfi_personality 0x1b, {pass_by}",
                    "hint #34",
                    "stp x29, x30, [sp, #-32]!",
                    ".cfi_def_cfa_offset 32",
                    ".cfi_offset x29, -32",
                    ".cfi_offset x30, -24",
                    "mov x29, sp",
                    "stp x0, x1, [sp, #16]",    // the size (see SIZE_BELOW_CFA), and the alignment if there is one
                    "bl {begin}",
                    "mov w9, w0",
                    "ldp x0, x1, [sp, #16]",
                    "adrp x16, {real}",
                    "ldr x16, [x16, :lo12:{real}]",
                    "tbnz w9, #0, 2f",
                    ".cfi_remember_state",
                    "ldp x29, x30, [sp], #32",
                    ".cfi_def_cfa_offset 0",
                    ".cfi_restore x29",
                    ".cfi_restore x30",
                    "br x16",                   // by way of x16, as a PLT does: `bti c` allows that
                    "2:",
                    ".cfi_restore_state",
                    "blr x16",
                    "ldr x1, [sp, #16]",        // the size
                    "ldp x4, x2, [sp]",         // the caller's x29, and the return address
                    "add x3, sp, #32",          // the caller's sp after the return
                    "bl {end}",
                    "ldp x29, x30, [sp], #32",
                    ".cfi_def_cfa_offset 0",
                    ".cfi_restore x29",
                    ".cfi_restore x30",
                    "ret",
                    ".cfi_endproc",
                    begin = sym operators::begin,
                    end = sym operators::$end,
                    pass_by = sym operators::pass_by,
                    real = sym real::$name,
                )
            }
        )*
    };
}

throwing_entries! {
    _Znwm(usize), end_plain;
    _Znam(usize), end_plain;
    _ZnwmSt11align_val_t(usize, usize), end_aligned;
    _ZnamSt11align_val_t(usize, usize), end_aligned;
}

/// Entries of functions for which fewer than three argument registers are left: a
/// [`Registers`](crate::capture::arch::Registers) is built on the stack and its address passed as the seventh argument.
macro_rules! wide_entries {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        $(
            /// The entry for the C function of this name.
            #[unsafe(naked)]
            pub(in super::super) unsafe extern "C" fn $name($(_: $argument),*) -> $result {
                naked_asm!(
                    ".cfi_startproc",
                    "hint #34",
                    "mov x9, sp",           // the caller's
                    "stp x29, x30, [sp, #-48]!",
                    ".cfi_def_cfa_offset 48",
                    ".cfi_offset x29, -48",
                    ".cfi_offset x30, -40",
                    "stp x30, x9, [sp, #16]",
                    "str x29, [sp, #32]",
                    "mov x29, sp",
                    "add x6, sp, #16",      // the seventh argument
                    "bl {body}",
                    "ldp x29, x30, [sp], #48",
                    ".cfi_def_cfa_offset 0",
                    ".cfi_restore x29",
                    ".cfi_restore x30",
                    "ret",
                    ".cfi_endproc",
                    body = sym body::$name,
                )
            }
        )*
    };
}

wide_entries! {
    mmap(*mut c_void, usize, c_int, c_int, c_int, c_long) -> *mut c_void;
    mmap64(*mut c_void, usize, c_int, c_int, c_int, c_long) -> *mut c_void;
    mremap(*mut c_void, usize, usize, c_int, *mut c_void, usize) -> *mut c_void;
}

/// Entries of the loader's functions. They return the answer of `lookup`, or else jump to the real function with stack and
/// return address unchanged, since the loader looks at the return address to know the caller's search path.
macro_rules! loader_entries {
    ($($name:ident($($argument:ty),*), $ip:literal;)*) => {
        $(
            /// The entry for the C function of this name.
            #[unsafe(naked)]
            pub(in super::super) unsafe extern "C" fn $name($(_: $argument),*) -> *mut c_void {
                naked_asm!(
                    ".cfi_startproc",
                    "hint #34",
                    "stp x29, x30, [sp, #-48]!",
                    ".cfi_def_cfa_offset 48",
                    ".cfi_offset x29, -48",
                    ".cfi_offset x30, -40",
                    "mov x29, sp",
                    "stp x0, x1, [sp, #16]",
                    "str x2, [sp, #32]",
                    concat!("mov ", $ip, ", x30"),
                    "bl {lookup}",
                    "cbnz x0, 2f",
                    "ldp x0, x1, [sp, #16]",
                    "ldr x2, [sp, #32]",
                    ".cfi_remember_state",
                    "ldp x29, x30, [sp], #48",
                    ".cfi_def_cfa_offset 0",
                    ".cfi_restore x29",
                    ".cfi_restore x30",
                    "adrp x16, {real}",
                    "ldr x16, [x16, :lo12:{real}]",
                    "br x16",               // by way of x16, as a PLT does: `bti c` allows that
                    "2:",
                    ".cfi_restore_state",
                    "ldp x29, x30, [sp], #48",
                    ".cfi_def_cfa_offset 0",
                    ".cfi_restore x29",
                    ".cfi_restore x30",
                    "ret",
                    ".cfi_endproc",
                    lookup = sym lookup::$name,
                    real = sym real::$name,
                )
            }
        )*
    };
}

loader_entries! {
    dlsym(*mut c_void, *const c_char), "x2";
    dlvsym(*mut c_void, *const c_char, *const c_char), "x3";
}
