//! The thread-local words of heapray, and access to them from inside `malloc`.
//!
//! On x86-64 Linux they are a thread-local variable of the *initial-exec* model, made with the assembler. Stable Rust has
//! only the model that calls `__tls_get_addr`: in a program the linker turns that call into two instructions, but the
//! compiler has already saved registers for it; in a library loaded by `dlopen` the call may even call `malloc`.
//! Initial-exec is a load and an addition everywhere. glibc reserves 1,664 bytes for such variables of libraries that are
//! loaded later, and this variable takes 64 of them. Elsewhere it is `thread_local!`.

use core::cell::Cell;
use core::ptr;

use super::meter::Meter;
use super::scope_blocks::ScopeBlocks;
use super::state::ThreadState;

/// Thread-local words. All are 0 at first, and nothing needs a drop.
#[derive(Debug)]
pub struct Local {
    /// The state that the thread owns, or null.
    pub(super) state: Cell<*mut ThreadState>,
    /// The number under which the thread publishes; 0 before it has one. With [`CONTEXT_CHANGED`] added, it equals no
    /// published number, so that the next event announces the thread's context first.
    pub(super) number: Cell<u32>,
    /// The [context](super::context) of what the thread does now; 0 for none.
    pub(super) context: Cell<u32>,
    /// The [run](super::run::Run) that the thread is in; 0 for none.
    pub(super) run: Cell<u64>,
    /// The context that the run is counted under.
    pub(super) run_context: Cell<u32>,
    /// Set while heapray's own code or a hook runs on this thread: nothing is recorded.
    busy: Cell<bool>,
    /// Nesting depth of [`crate::capture::untracked`] guards. While it is not 0, the thread's allocations are not recorded,
    /// but its frees are.
    untracked: Cell<u32>,
    /// Set once the end of the thread was noticed. Later events borrow a state each, since no second notice may come.
    pub(super) ended: Cell<bool>,
    /// See [`seen`](super::record::seen).
    pub probe: Cell<u8>,
    /// The meter of the thread's own state, while most of its allocations only need to be counted: the thread samples, and
    /// is neither busy nor untracked. Otherwise null.
    unsampled_meter: Cell<*const Meter>,
    /// The innermost [scope](super::scope) that the thread is in, or null.
    pub(super) scope: Cell<*mut ScopeBlocks>,
}

/// Offset of the word that is not null while most of the thread's allocations only need to be counted: a pointer to its
/// [`Meter`].
#[cfg(all(heapray_native, target_arch = "x86_64"))]
pub(super) const UNSAMPLED_METER: usize = core::mem::offset_of!(Local, unsampled_meter);

/// Name of the variable, for the assembler. Two versions of heapray in one program have one each.
#[cfg(all(heapray_native, target_arch = "x86_64"))]
macro_rules! local_name {
    () => {
        concat!(
            "heapray_local_",
            env!("CARGO_PKG_VERSION_MAJOR"),
            "_",
            env!("CARGO_PKG_VERSION_MINOR"),
            "_",
            env!("CARGO_PKG_VERSION_PATCH"),
        )
    };
}
#[cfg(all(heapray_native, target_arch = "x86_64"))]
pub(super) use local_name;

/// Bit of [`Local::number`] that is set after a change of context, until the next event. There are never so many threads.
pub(super) const CONTEXT_CHANGED: u32 = 1 << 31;

/// Stands for a context that is not known. No context has this number.
pub(super) const UNKNOWN_CONTEXT: u32 = u32::MAX;

impl Local {
    /// Makes `context` that of all following events. Returns the one before.
    #[inline(always)]
    pub(super) fn change_context(&self, context: u32) -> u32 {
        self.number.set(self.number.get() | CONTEXT_CHANGED);
        self.context.replace(context)
    }

    /// Makes `run` that of all following events, counted under `context`. Returns those of before.
    #[inline(always)]
    pub(super) fn change_run(&self, run: u64, context: u32) -> (u64, u32) {
        self.number.set(self.number.get() | CONTEXT_CHANGED);
        (self.run.replace(run), self.run_context.replace(context))
    }

    /// Returns whether nothing that the thread does is recorded.
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        self.busy.get()
    }

    /// Marks the thread busy or not busy.
    #[inline(always)]
    pub fn set_busy(&self, busy: bool) {
        if busy {
            self.clear_unsampled_meter();
        }
        self.busy.set(busy);
    }

    /// Returns whether the thread's allocations are not recorded.
    #[inline(always)]
    pub fn is_untracked(&self) -> bool {
        self.untracked.get() != 0
    }

    /// Adds one untracked mark.
    pub fn enter_untracked(&self) {
        self.clear_unsampled_meter();
        self.untracked.set(self.untracked.get() + 1);
    }

    /// Removes one untracked mark.
    pub fn leave_untracked(&self) {
        self.untracked.set(self.untracked.get() - 1);
    }

    /// Returns the meter that counts the thread's unsampled allocations.
    #[inline(always)]
    pub(super) fn unsampled_meter(&self) -> Option<&'static Meter> {
        // SAFETY: null, or the meter of a state, and those are never unmapped.
        unsafe { self.unsampled_meter.get().as_ref() }
    }

    /// Counts unsampled allocations with `meter`, that of the thread's own state, from now on. The thread is neither busy
    /// nor untracked.
    pub(super) fn set_unsampled_meter(&self, meter: &'static Meter) {
        self.unsampled_meter.set(meter);
    }

    #[inline(always)]
    pub(super) fn clear_unsampled_meter(&self) {
        self.unsampled_meter.set(ptr::null());
    }
}

// The variable. Loom's threads do not use it, but hooks' entries name it.
#[cfg(all(heapray_native, target_arch = "x86_64", not(miri)))]
core::arch::global_asm!(
    ".pushsection .tbss.heapray, \"awT\", @nobits",
    ".balign {align}",
    concat!(".globl ", local_name!()),
    concat!(".hidden ", local_name!()),
    concat!(".type ", local_name!(), ", @object"),
    concat!(".size ", local_name!(), ", {size}"),
    concat!(local_name!(), ":"),
    ".zero {size}",
    ".popsection",
    size = const size_of::<Local>(),
    align = const align_of::<Local>(),
);

#[cfg(all(heapray_native, target_arch = "x86_64", not(any(heapray_loom, miri))))]
mod words {
    use core::arch::asm;

    use super::Local;

    /// Returns the calling thread's words.
    #[inline(always)]
    pub(super) fn here() -> *const Local {
        let words: *const Local;
        // SAFETY: reads two constants of the thread: the variable's offset, which the linker or the loader has written to
        // the GOT, and the thread pointer, which x86-64's ABI for thread-local storage keeps at `fs:0`.
        unsafe {
            asm!(
                concat!("mov {words}, qword ptr [rip + ", local_name!(), "@GOTTPOFF]"),
                "add {words}, qword ptr fs:[0]",
                words = lateout(reg) words,
                options(pure, readonly, nostack),
            );
        }
        words
    }
}

#[cfg(not(all(heapray_native, target_arch = "x86_64", not(any(heapray_loom, miri)))))]
mod words {
    use core::cell::Cell;
    use core::ptr;

    use super::Local;

    impl Local {
        /// Returns the words of a new thread.
        pub(in crate::capture) const fn new() -> Local {
            Local {
                state: Cell::new(ptr::null_mut()),
                number: Cell::new(0),
                context: Cell::new(0),
                run: Cell::new(0),
                run_context: Cell::new(0),
                busy: Cell::new(false),
                untracked: Cell::new(0),
                ended: Cell::new(false),
                probe: Cell::new(0),
                unsampled_meter: Cell::new(ptr::null()),
                scope: Cell::new(ptr::null_mut()),
            }
        }
    }

    thread_local! {
        static LOCAL: Local = const { Local::new() };
    }

    /// Returns the calling thread's words.
    #[inline(always)]
    pub(super) fn here() -> *const Local {
        LOCAL.with(core::ptr::from_ref)
    }
}

/// Calls `f` with the calling thread's words.
#[inline(always)]
pub fn with_local<R>(f: impl FnOnce(&Local) -> R) -> R {
    // SAFETY: the words of the calling thread, which outlive the call: nothing drops them. All zeros is a `Local`: null
    // pointers, 0 and false. References to it are shared ones only, and never leave the thread: `Local` is not `Sync`.
    f(unsafe { &*words::here() })
}
