//! The entries for x86-64.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_long, c_void};

use super::super::{body, lookup, operators, real};

/// Entries of functions with one, two or three arguments: return address, the caller's `rsp` (as it is after the
/// return) and `rbp` follow in the next argument registers.
macro_rules! entries {
    ($($name:ident($($argument:ty),*) -> $result:ty, $ip:literal $sp:literal $bp:literal;)*) => {
        $(
            /// The entry for the C function of this name.
            #[unsafe(naked)]
            pub(in super::super) unsafe extern "C" fn $name($(_: $argument),*) -> $result {
                naked_asm!(
                    concat!("mov ", $ip, ", [rsp]"),
                    concat!("lea ", $sp, ", [rsp + 8]"),
                    concat!("mov ", $bp, ", rbp"),
                    "jmp {body}",
                    body = sym body::$name,
                )
            }
        )*
    };
}

entries! {
    malloc(usize) -> *mut c_void, "rsi" "rdx" "rcx";
    valloc(usize) -> *mut c_void, "rsi" "rdx" "rcx";
    pvalloc(usize) -> *mut c_void, "rsi" "rdx" "rcx";
    calloc(usize, usize) -> *mut c_void, "rdx" "rcx" "r8";
    realloc(*mut c_void, usize) -> *mut c_void, "rdx" "rcx" "r8";
    aligned_alloc(usize, usize) -> *mut c_void, "rdx" "rcx" "r8";
    memalign(usize, usize) -> *mut c_void, "rdx" "rcx" "r8";
    reallocarray(*mut c_void, usize, usize) -> *mut c_void, "rcx" "r8" "r9";
    posix_memalign(*mut *mut c_void, usize, usize) -> c_int, "rcx" "r8" "r9";
    _ZnwmRKSt9nothrow_t(usize, *const c_void) -> *mut c_void, "rdx" "rcx" "r8";
    _ZnamRKSt9nothrow_t(usize, *const c_void) -> *mut c_void, "rdx" "rcx" "r8";
    _ZnwmSt11align_val_tRKSt9nothrow_t(usize, usize, *const c_void) -> *mut c_void, "rcx" "r8" "r9";
    _ZnamSt11align_val_tRKSt9nothrow_t(usize, usize, *const c_void) -> *mut c_void, "rcx" "r8" "r9";
}

/// Place, below the CFA, where the entries of operators that may throw keep the requested size.
pub(in super::super) const SIZE_BELOW_CFA: usize = 32;

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
                    "sub rsp, 24",
                    ".cfi_adjust_cfa_offset 24",
                    "mov [rsp], rdi",       // the size: see SIZE_BELOW_CFA
                    "mov [rsp + 8], rsi",   // the alignment, if there is one
                    "call {begin}",
                    "mov rdi, [rsp]",
                    "mov rsi, [rsp + 8]",
                    "test al, al",
                    "jnz 2f",
                    "add rsp, 24",
                    ".cfi_adjust_cfa_offset -24",
                    "jmp [rip + {real}]",
                    "2:",
                    ".cfi_adjust_cfa_offset 24",
                    "call [rip + {real}]",
                    "mov rdi, rax",
                    "mov rsi, [rsp]",
                    "mov rdx, [rsp + 24]",  // the return address
                    "lea rcx, [rsp + 32]",  // the caller's rsp after the return
                    "mov r8, rbp",
                    "call {end}",
                    "add rsp, 24",
                    ".cfi_adjust_cfa_offset -24",
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

/// Entries of functions whose arguments fill the registers: a [`Registers`](crate::capture::arch::Registers) is built on the
/// stack and its address passed as the seventh argument.
///
/// On entry `rsp` is 8 past a multiple of 16. Five words keep it aligned at the call.
macro_rules! wide_entries {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        $(
            /// The entry for the C function of this name.
            #[unsafe(naked)]
            pub(in super::super) unsafe extern "C" fn $name($(_: $argument),*) -> $result {
                naked_asm!(
                    ".cfi_startproc",
                    "mov r10, [rsp]",       // the return address
                    "lea r11, [rsp + 8]",   // the caller's rsp after the return
                    "sub rsp, 40",
                    ".cfi_adjust_cfa_offset 40",
                    "mov [rsp + 8], r10",
                    "mov [rsp + 16], r11",
                    "mov [rsp + 24], rbp",
                    "lea r10, [rsp + 8]",
                    "mov [rsp], r10",       // the seventh argument
                    "call {body}",
                    "add rsp, 40",
                    ".cfi_adjust_cfa_offset -40",
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
                    "push rdi",
                    ".cfi_adjust_cfa_offset 8",
                    "push rsi",
                    ".cfi_adjust_cfa_offset 8",
                    "push rdx",
                    ".cfi_adjust_cfa_offset 8",
                    concat!("mov ", $ip, ", [rsp + 24]"),
                    "call {lookup}",
                    "pop rdx",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rsi",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rdi",
                    ".cfi_adjust_cfa_offset -8",
                    "test rax, rax",
                    "jnz 2f",
                    "jmp [rip + {real}]",
                    "2: ret",
                    ".cfi_endproc",
                    lookup = sym lookup::$name,
                    real = sym real::$name,
                )
            }
        )*
    };
}

loader_entries! {
    dlsym(*mut c_void, *const c_char), "rdx";
    dlvsym(*mut c_void, *const c_char, *const c_char), "rcx";
}
