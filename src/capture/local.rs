//! A thread's own words, and the way to them from inside `malloc`.
//!
//! On x86-64 Linux they are a thread-local variable of the *initial-exec* model, made with the assembler, since stable Rust
//! has only the model that asks `__tls_get_addr`: in a program the linker turns that call into two instructions, but
//! the compiler has saved registers for it by then; in a library loaded by `dlopen` it may even call `malloc`. Initial-exec
//! is a load and an addition everywhere. Of the little room that glibc keeps for such variables of libraries loaded
//! later (1,664 bytes) this takes 56. Elsewhere it is `thread_local!`.

use core::cell::Cell;
use core::ptr;

use super::meter::Meter;
use super::scope_blocks::ScopeBlocks;
use super::state::ThreadState;

/// A thread's own words. All are 0 at first, and nothing is to be dropped.
#[derive(Debug)]
pub struct Local {
    /// The state that the thread owns, or null.
    pub(super) state: Cell<*mut ThreadState>,
    /// The number under which it publishes; 0 before it has one.
    pub(super) number: Cell<u32>,
    /// Heapray's own code runs on this thread, or a hook is under way: nothing is recorded.
    busy: Cell<bool>,
    /// Nothing that this thread allocates is recorded; frees are. Counts nested [`crate::capture::untracked`] guards.
    untracked: Cell<u32>,
    /// The end was noticed: later events borrow a state each, since no second notice may come.
    pub(super) ended: Cell<bool>,
    /// See [`seen`](super::record::seen).
    pub probe: Cell<u8>,
    /// The meter of the thread's own state, while all that is to be done for most of its allocations is to count them: it
    /// samples, and is neither busy nor untracked. Else null.
    passing: Cell<*const Meter>,
    /// The innermost [scope](super::scope) that the thread is in, or null.
    pub(super) scope: Cell<*mut ScopeBlocks>,
}

impl Local {
    /// Whether nothing that the thread does is recorded.
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        self.busy.get()
    }

    /// Marks the thread busy, or not busy any more.
    #[inline(always)]
    pub fn set_busy(&self, busy: bool) {
        if busy {
            self.stop_passing();
        }
        self.busy.set(busy);
    }

    /// Whether nothing that the thread allocates is recorded.
    #[inline(always)]
    pub fn is_untracked(&self) -> bool {
        self.untracked.get() != 0
    }

    /// Marks the thread untracked, once more than it is.
    pub fn enter_untracked(&self) {
        self.stop_passing();
        self.untracked.set(self.untracked.get() + 1);
    }

    /// Takes one mark away.
    pub fn leave_untracked(&self) {
        self.untracked.set(self.untracked.get() - 1);
    }

    /// The meter that its allocations may pass.
    #[inline(always)]
    pub(super) fn passing(&self) -> Option<&'static Meter> {
        // SAFETY: null, or the meter of a state, and those are never unmapped.
        unsafe { self.passing.get().as_ref() }
    }

    /// Lets allocations pass `meter`, that of the thread's own state. The thread is neither busy nor untracked.
    pub(super) fn pass(&self, meter: &'static Meter) {
        self.passing.set(meter);
    }

    #[inline(always)]
    pub(super) fn stop_passing(&self) {
        self.passing.set(ptr::null());
    }
}

#[cfg(all(heapray_native, target_arch = "x86_64", not(any(heapray_loom, miri))))]
mod words {
    use core::arch::{asm, global_asm};

    use super::Local;

    /// The variable's name. Two versions of heapray in one program have a variable each.
    macro_rules! name {
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

    global_asm!(
        ".pushsection .tbss.heapray, \"awT\", @nobits",
        ".balign {align}",
        concat!(".globl ", name!()),
        concat!(".hidden ", name!()),
        concat!(".type ", name!(), ", @object"),
        concat!(".size ", name!(), ", {size}"),
        concat!(name!(), ":"),
        ".zero {size}",
        ".popsection",
        size = const size_of::<Local>(),
        align = const align_of::<Local>(),
    );

    /// The calling thread's words.
    #[inline(always)]
    pub(super) fn here() -> *const Local {
        let words: *const Local;
        // SAFETY: reads two constants of the thread: the variable's offset, which the linker or the loader has written to
        // the GOT, and the thread pointer, which x86-64's ABI for thread-local storage keeps at `fs:0`.
        unsafe {
            asm!(
                concat!("mov {words}, qword ptr [rip + ", name!(), "@GOTTPOFF]"),
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
        /// The words of a thread that begins.
        pub(in crate::capture) const fn new() -> Local {
            Local {
                state: Cell::new(ptr::null_mut()),
                number: Cell::new(0),
                busy: Cell::new(false),
                untracked: Cell::new(0),
                ended: Cell::new(false),
                probe: Cell::new(0),
                passing: Cell::new(ptr::null()),
                scope: Cell::new(ptr::null_mut()),
            }
        }
    }

    thread_local! {
        static LOCAL: Local = const { Local::new() };
    }

    /// The calling thread's words.
    #[inline(always)]
    pub(super) fn here() -> *const Local {
        LOCAL.with(core::ptr::from_ref)
    }
}

/// The calling thread's words.
#[inline(always)]
pub fn with_local<R>(f: impl FnOnce(&Local) -> R) -> R {
    // SAFETY: the words of the calling thread, which outlive the call: nothing drops them. All zeros is a `Local`: null
    // pointers, 0 and false. References to it are shared ones only, and never leave the thread: `Local` is not `Sync`.
    f(unsafe { &*words::here() })
}
