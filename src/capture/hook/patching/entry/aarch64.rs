//! The entries for AArch64. Each begins with `bti c` (`hint #34`), a place that code may jump to by a pointer where the
//! program was built to check that.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_long, c_void};

use super::super::{body, loader, real};

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
                    body = sym body::$name,
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
}

/// Entries of functions for which fewer than three argument registers are left: a
/// [`Registers`](crate::capture::arch::Registers) is built on the stack and its address handed over as the seventh
/// argument.
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

/// Entries of the loader's functions: they tell that modules may change and jump to the real function with stack and
/// return address untouched, since the loader looks at the return address to know the caller's search path.
macro_rules! loader_entries {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        $(
            /// The entry for the C function of this name.
            #[unsafe(naked)]
            pub(in super::super) unsafe extern "C" fn $name($(_: $argument),*) -> $result {
                naked_asm!(
                    ".cfi_startproc",
                    "hint #34",
                    "stp x29, x30, [sp, #-32]!",
                    ".cfi_def_cfa_offset 32",
                    ".cfi_offset x29, -32",
                    ".cfi_offset x30, -24",
                    "mov x29, sp",
                    "stp x0, x1, [sp, #16]",
                    "bl {note}",
                    "ldp x0, x1, [sp, #16]",
                    "ldp x29, x30, [sp], #32",
                    ".cfi_def_cfa_offset 0",
                    ".cfi_restore x29",
                    ".cfi_restore x30",
                    "adrp x16, {real}",
                    "ldr x16, [x16, :lo12:{real}]",
                    "br x16",               // by way of x16, as a PLT does: `bti c` allows that
                    ".cfi_endproc",
                    note = sym loader::$name,
                    real = sym real::$name,
                )
            }
        )*
    };
}

loader_entries! {
    dlsym(*mut c_void, *const c_char) -> *mut c_void;
}
