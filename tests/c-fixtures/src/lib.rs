//! C code for heapray's own tests: functions with all kinds of stack frames, compiled without frame pointers and
//! with them, and libraries to load at run time.

use std::ffi::c_void;

/// A program for the C functions: bytes that choose the next calls.
#[derive(Debug)]
#[repr(C)]
pub struct Program {
    /// The next byte.
    pub next: *const u8,
    /// The end of the bytes.
    pub end: *const u8,
    /// The functions that a byte can call, by its remainder.
    pub functions: *const Function,
    /// The number of functions.
    pub count: usize,
    /// The function that [`CAPTURE`] calls.
    pub capture: Function,
}

impl Program {
    /// Runs all of `bytes`: calls `first` again as long as bytes are left.
    ///
    /// # Safety
    /// `functions`, `capture` and `first` run a piece of a program that they are given.
    pub unsafe fn run(bytes: &[u8], functions: &[Function], capture: Function, first: Function) {
        let range = bytes.as_ptr_range();
        let mut program = Program {
            next: range.start,
            end: range.end,
            functions: functions.as_ptr(),
            count: functions.len(),
            capture,
        };
        while program.next < program.end {
            // SAFETY: the program is valid; the functions are the caller's promise.
            unsafe { first(&mut program) };
        }
    }
}

/// A function that runs a piece of a program.
pub type Function = unsafe extern "C" fn(*mut Program);

/// The byte that makes a function return.
pub const RETURN: u8 = 255;
/// The byte that calls `capture`.
pub const CAPTURE: u8 = 254;

/// A function that C code calls back.
pub type Callback = unsafe extern "C" fn(*mut c_void);

macro_rules! frames {
    ($($name:ident),* / $land:ident $jump_out:ident $recurse:ident $carrying:ident) => {
        unsafe extern "C" {
            $(fn $name(program: *mut Program);)*
            /// Calls `inside`, which may end with the jump from any depth, then `after` from the same frame.
            ///
            /// # Safety
            /// The callbacks must be sound to call with `argument`, and nothing that is jumped over may need dropping.
            pub fn $land(inside: Callback, after: Callback, argument: *mut c_void);
            /// Leaves the running `land`.
            ///
            /// # Safety
            /// A `land` must be running.
            pub fn $jump_out() -> !;
            /// Calls itself down to `depth`, and calls `leaf` there.
            ///
            /// # Safety
            /// `leaf` must be sound to call with `argument`, and the stack large enough.
            pub fn $recurse(depth: u64, leaf: Callback, argument: *mut c_void);
            /// Does the same, with values that stay in callee-saved registers during the calls.
            ///
            /// # Safety
            /// `leaf` must be sound to call with `argument`, and the stack large enough.
            pub fn $carrying(depth: u64, leaf: Callback, argument: *mut c_void);
        }
    };
}

frames!(
    plain_without, large_without, with_alloca_without, with_vla_without, aligned_without,
    aligned_alloca_without, registers_without / land_without jump_out_without recurse_without recurse_carrying_without
);
frames!(
    plain_with, large_with, with_alloca_with, with_vla_with, aligned_with,
    aligned_alloca_with, registers_with / land_with jump_out_with recurse_with recurse_carrying_with
);

/// All C functions that run programs.
pub const FUNCTIONS: [Function; 14] = [
    plain_without,
    large_without,
    with_alloca_without,
    with_vla_without,
    aligned_without,
    aligned_alloca_without,
    registers_without,
    plain_with,
    large_with,
    with_alloca_with,
    with_vla_with,
    aligned_with,
    aligned_alloca_with,
    registers_with,
];

/// Two libraries whose function `call_back(callback, argument)` has the same name and different frames.
pub const PLUGINS: [&str; 2] = [
    concat!(env!("OUT_DIR"), "/plugin1.so"),
    concat!(env!("OUT_DIR"), "/plugin2.so"),
];

/// Two libraries whose function `allocate()` allocates a block of 100,000 bytes and frees it. They are relocated late: after
/// another library that they need.
pub const RELOCATED_LATE: [&str; 2] = [
    concat!(env!("OUT_DIR"), "/allocate_now.so"),
    concat!(env!("OUT_DIR"), "/allocate_lazy.so"),
];

/// An allocator to preload, whose `malloc` and whose `operator new` do not call each other.
pub const ALLOCATOR: &str = concat!(env!("OUT_DIR"), "/liballocator.so");

/// C++'s operators to preload, which call `malloc` and return other addresses than `malloc`.
pub const HEADER_OPERATORS: &str = concat!(env!("OUT_DIR"), "/libheader.so");

/// A library that calls every form of C++'s operators.
pub const OPERATORS: &str = concat!(env!("OUT_DIR"), "/liboperators.so");

/// A library to preload, whose `malloc` and `free` call the functions behind it. Its `look_behind()` looks these up again,
/// and `calls_so_far()` returns the number of calls of its `malloc`.
pub const INTERPOSER: &str = concat!(env!("OUT_DIR"), "/interposer.so");

/// A library whose `find_by_name(name)` looks up a function with the loader.
pub const LOOKUP: &str = concat!(env!("OUT_DIR"), "/lookup.so");

/// A library whose `give_back_sized(block, size)` and `give_back_aligned_sized(block, alignment, size)` return whether C23's
/// functions exist. If they do, the block is freed by them.
pub const SIZED: &str = concat!(env!("OUT_DIR"), "/sized.so");

/// Library that shares the trace of a thread: `share_trace` and `share_none`.
pub const THREAD_CONTEXT: &str = concat!(env!("OUT_DIR"), "/libthread_context.so");
