//! The entries for x86-64.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_long, c_void};
use core::mem::offset_of;

use super::super::{body, lookup, operators, real};
use crate::capture::local::{UNSAMPLED_METER, local_name};
use crate::capture::meter::Meter;
use crate::capture::sampling::{self, filter};

/// Counts an allocation of `r11` bytes and jumps to the real function, if sampling leaves it out, as
/// [`sampling::is_unsampled`] says. Goes on at `2` otherwise. Changes `r10` and `r11`.
macro_rules! leave_out {
    () => {
        concat!(
            "mov r10, [rip + ",
            local_name!(),
            "@GOTTPOFF]\n",
            "mov r10, fs:[r10 + {unsampled_meter}]\n",
            "test r10, r10\n",
            "jz 2f\n",
            "add r11, [r10 + {bytes}]\n",
            "jc 2f\n",
            "cmp r11, [r10 + {next}]\n",
            "jae 2f\n",
            "mov [r10 + {bytes}], r11\n",
            "inc qword ptr [r10 + {count}]\n",
            "jmp [rip + {real}]\n",
            "2:\n",
        )
    };
}

/// Goes on at `2` if a block at `rdi` may be recorded. Changes `rax` and `r11`.
macro_rules! unless_recorded {
    () => {
        "mov rax, rdi
        shr rax, {cell_bits}
        and eax, {cells} - 1
        lea r11, [rip + {filter}]
        cmp byte ptr [r11 + rax], 0
        jne 2f"
    };
}

/// Puts return address, the caller's `rsp` (as it is after the return) and `rbp` into the next argument registers.
macro_rules! registers {
    ($ip:literal $sp:literal $bp:literal) => {
        concat!(
            "mov ",
            $ip,
            ", [rsp]\n",
            "lea ",
            $sp,
            ", [rsp + 8]\n",
            "mov ",
            $bp,
            ", rbp\n",
        )
    };
}

/// Entries of functions with one, two or three arguments, which sampling may leave out. The first instructions put the size
/// into `r11`.
macro_rules! sampled_entries {
    ($($name:ident($($argument:ty),*) -> $result:ty, $size:literal, $ip:literal $sp:literal $bp:literal;)*) => {
        $(
            /// The entry for the C function of this name.
            #[unsafe(naked)]
            pub(in super::super) unsafe extern "C" fn $name($(_: $argument),*) -> $result {
                naked_asm!(
                    ".cfi_startproc",
                    $size,
                    leave_out!(),
                    registers!($ip $sp $bp),
                    "jmp {body}",
                    ".cfi_endproc",
                    unsampled_meter = const UNSAMPLED_METER,
                    bytes = const offset_of!(Meter, bytes),
                    next = const offset_of!(Meter, next),
                    count = const offset_of!(Meter, count),
                    real = sym real::$name,
                    body = sym body::$name,
                )
            }
        )*
    };
}

sampled_entries! {
    malloc(usize) -> *mut c_void, "mov r11, rdi", "rsi" "rdx" "rcx";
    valloc(usize) -> *mut c_void, "mov r11, rdi", "rsi" "rdx" "rcx";
    pvalloc(usize) -> *mut c_void, "mov r11, rdi", "rsi" "rdx" "rcx";
    // The product changes `rdx`, too.
    calloc(usize, usize) -> *mut c_void, "mov rax, rdi; mul rsi; jo 2f; mov r11, rax", "rdx" "rcx" "r8";
    aligned_alloc(usize, usize) -> *mut c_void, "mov r11, rsi", "rdx" "rcx" "r8";
    memalign(usize, usize) -> *mut c_void, "mov r11, rsi", "rdx" "rcx" "r8";
    _ZnwmRKSt9nothrow_t(usize, *const c_void) -> *mut c_void, "mov r11, rdi", "rdx" "rcx" "r8";
    _ZnamRKSt9nothrow_t(usize, *const c_void) -> *mut c_void, "mov r11, rdi", "rdx" "rcx" "r8";
    _ZnwmSt11align_val_tRKSt9nothrow_t(usize, usize, *const c_void) -> *mut c_void, "mov r11, rdi", "rcx" "r8" "r9";
    _ZnamSt11align_val_tRKSt9nothrow_t(usize, usize, *const c_void) -> *mut c_void, "mov r11, rdi", "rcx" "r8" "r9";
}

/// The entry for the C function of this name. See [`sampling::is_realloc_unsampled`].
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn realloc(_: *mut c_void, _: usize) -> *mut c_void {
    naked_asm!(
        ".cfi_startproc",
        "test rsi, rsi",
        "jz 2f",
        unless_recorded!(),
        "mov r11, rsi",
        leave_out!(),
        registers!("rdx" "rcx" "r8"),
        "jmp {body}",
        ".cfi_endproc",
        cell_bits = const filter::CELL_BITS,
        cells = const filter::CELLS,
        filter = sym filter::FILTER,
        unsampled_meter = const UNSAMPLED_METER,
        bytes = const offset_of!(Meter, bytes),
        next = const offset_of!(Meter, next),
        count = const offset_of!(Meter, count),
        real = sym real::realloc,
        body = sym body::realloc,
    )
}

/// The entry for the C function of this name. See [`sampling::is_free_unsampled`].
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn free(_: *mut c_void) {
    naked_asm!(
        ".cfi_startproc",
        "cmp dword ptr [rip + {epoch}], 0",
        "je 2f",
        unless_recorded!(),
        "jmp [rip + {real}]",
        "2: jmp {body}",
        ".cfi_endproc",
        epoch = sym sampling::EPOCH,
        cell_bits = const filter::CELL_BITS,
        cells = const filter::CELLS,
        filter = sym filter::FILTER,
        real = sym real::free,
        body = sym body::free,
    )
}

/// Entries of functions that sampling leaves out later, if at all.
macro_rules! entries {
    ($($name:ident($($argument:ty),*) -> $result:ty, $ip:literal $sp:literal $bp:literal;)*) => {
        $(
            /// The entry for the C function of this name.
            #[unsafe(naked)]
            pub(in super::super) unsafe extern "C" fn $name($(_: $argument),*) -> $result {
                naked_asm!(registers!($ip $sp $bp), "jmp {body}", body = sym body::$name)
            }
        )*
    };
}

entries! {
    reallocarray(*mut c_void, usize, usize) -> *mut c_void, "rcx" "r8" "r9";
    posix_memalign(*mut *mut c_void, usize, usize) -> c_int, "rcx" "r8" "r9";
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
