//! Marks of functions and other spans: `FUNC` lines.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use heapray_report::memory_log::{Function, Reading, function_name};

use super::levels::Levels;
use super::recorder::{self, Shared};
use crate::capture::untracked;

/// Begins a span with the name `name`.
pub(super) fn function(name: &str) -> MemorySpan {
    begin(|| name.to_owned())
}

/// Begins a call of the function of this path. The names are joined by dots, as in memory_profiler, so that mprof's pictures
/// show the last one.
pub(crate) fn function_at(path: &str) -> MemorySpan {
    begin(|| path.replace("::", "."))
}

/// Begins a span. `name` is called only if a log is being written.
fn begin(name: impl FnOnce() -> String) -> MemorySpan {
    MemorySpan(recorder::current().and_then(|shared| {
        let _untracked = untracked::enter();
        Span::begin(shared, &name(), Home::of_this_thread())
    }))
}

/// Running call. Its line is written when this is dropped, on any thread.
///
/// Its level is the number of calls that had begun on the same thread and had not ended. If it is held over an `await`,
/// where calls on a thread end in any order, it is the lowest free level.
#[derive(Debug)]
#[must_use = "the span ends where it is dropped"]
pub struct MemorySpan(#[allow(dead_code)] Option<Span>); // for its drop

#[derive(Debug)]
pub(super) struct Span {
    shared: Arc<Shared>,
    name: String,
    from: Reading,
    level: u32,
    home: Home,
}

/// Owner of a span's level.
#[derive(Debug)]
enum Home {
    /// A thread, above the levels of the request that it works on.
    Thread(Arc<Levels<1>>, u32),
    /// All requests together.
    #[cfg_attr(not(feature = "http"), allow(dead_code))]
    Requests,
}

thread_local! {
    static OF_THREAD: OnceCell<Arc<Levels<1>>> = const { OnceCell::new() };
    /// The level above that of the request that this thread works on.
    static BASE: Cell<u32> = const { Cell::new(0) };
}

#[cfg_attr(not(feature = "http"), allow(dead_code))]
static OF_REQUESTS: Levels<16> = Levels::new();

impl Home {
    fn of_this_thread() -> Home {
        let own = |cell: &OnceCell<_>| Arc::clone(cell.get_or_init(|| Arc::new(Levels::new())));
        // After the thread's own end a span cannot be nested.
        let levels = OF_THREAD.try_with(own);
        Home::Thread(
            levels.unwrap_or_else(|_| Arc::new(Levels::new())),
            BASE.get(),
        )
    }

    fn take(&self) -> u32 {
        match self {
            Home::Thread(levels, base) => base + levels.take(),
            Home::Requests => OF_REQUESTS.take(),
        }
    }

    fn give_back(&self, level: u32) {
        match self {
            Home::Thread(levels, base) => levels.give_back(level - base),
            Home::Requests => OF_REQUESTS.give_back(level),
        }
    }
}

impl Span {
    fn begin(shared: Arc<Shared>, name: &str, home: Home) -> Option<Span> {
        let from = shared.now()?;
        Some(Span {
            name: function_name(name).into_owned(),
            from,
            level: home.take(),
            home,
            shared,
        })
    }

    /// Begins a request of this name, if a log is being written. `name` is called only then.
    #[cfg(feature = "http")]
    pub(super) fn request(name: impl FnOnce() -> String) -> Option<Span> {
        let shared = recorder::current()?;
        let _untracked = untracked::enter();
        Span::begin(shared, &name(), Home::Requests)
    }

    /// Does `work`, whose functions are nested in this request.
    #[cfg(feature = "http")]
    pub(super) fn around<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Restores the former level, also when `work` panics.
        struct Back(u32);
        impl Drop for Back {
            fn drop(&mut self) {
                BASE.set(self.0);
            }
        }
        let _back = Back(BASE.replace(self.level + 1));
        work()
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let _untracked = untracked::enter();
        self.home.give_back(self.level);
        // A child that was forked meanwhile has no log, and its parent's lock may be held forever.
        if !self.shared.is_writer() {
            return;
        }
        if let Some(to) = self.shared.now() {
            self.shared.enter(Function {
                name: std::mem::take(&mut self.name),
                from: self.from,
                to,
                level: Some(self.level),
            });
        }
    }
}
