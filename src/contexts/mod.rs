//! Contexts: on whose behalf memory is allocated, as labels such as `route = GET /users/{id}` or `tenant = acme`.
//!
//! ```text
//!   context([("tenant", id)]) ──▶ table: labels ⇄ number     (under a lock, allocates)
//!   Context::enter, WithContext::poll, SpanContexts ──▶ capture::context   (two thread-local words)
//! ```
//!
//! A block belongs to the context in which its thread was when it was allocated, until it is freed, wherever that happens.

mod future;
mod inherit;
mod label_key;
#[cfg(feature = "spans")]
mod spans;
mod table;
#[cfg(feature = "spans")]
mod tasks;

use crate::capture::context::{self, Entered};
#[cfg(feature = "http")]
use crate::capture::run::{Run, name_run};

pub use self::future::{InContext, WithContext};
pub use self::inherit::inherit;
#[cfg(feature = "http")]
pub use self::inherit::{spawn, spawn_blocking};
pub use self::label_key::LabelKey;
#[cfg(feature = "spans")]
pub use self::spans::SpanContexts;
pub(crate) use self::table::{
    Labels, active, can_retire, counted_under, labels_from, labels_of, notes, refusals, retire,
    set_most,
};
#[cfg(feature = "http")]
pub(crate) use self::table::{OTHER, has_key};

/// The key of the label that names a request's route.
#[cfg(feature = "http")]
pub(crate) const ROUTE: &str = "route";

/// Labels that say on whose behalf memory is allocated. It is a number, and cheap to copy.
///
/// The default has no labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Context(u32);

/// Returns the context with the labels of the [current](Context::current) one and `labels`, pairs of a key and a value. A
/// label replaces that of the same key.
///
/// A future in a context is a *run* of it, and so is a request of a route: reports say what runs allocate and leave behind. A
/// part of another run is not counted by itself.
///
/// The number of contexts is limited: 4,096, unless `Builder::contexts` sets another limit. When there are nearly as many, those
/// that hold no memory and were not used lately make room for new ones, and what they have allocated is counted as `other`.
/// Without room, the values of the new ones are `other`; labels of the context around them stay. A context has at most 8
/// labels; further ones are left out. Texts are cut after 128 bytes. So use values of which there are few: a route rather than
/// a path, a customer rather than a request.
///
/// A context can be kept and entered again at any time, with one exception. Thousands of contexts later, one that made room and
/// was not used since is forgotten. What is allocated in it then has no labels; ask for it anew.
///
/// ```
/// let context = heapray::context([("tenant", "acme"), ("plan", "large")]);
/// let table = {
///     let _guard = context.enter();
///     vec![0_u8; 1000] // counted under this tenant, wherever it is freed
/// };
/// # drop(table);
/// ```
pub fn context<K: AsRef<str>, V: AsRef<str>>(labels: impl IntoIterator<Item = (K, V)>) -> Context {
    Context(table::number(context::current(), labels))
}

impl Context {
    /// The context without labels.
    pub const NONE: Context = Context(0);

    /// Returns the context that the calling thread is in.
    #[must_use]
    pub fn current() -> Context {
        Context(context::current())
    }

    /// Lets the calling thread enter the context until the guard is dropped. Then the thread is in the context of before.
    /// Drop guards in the opposite order in which they were made. This neither allocates nor locks.
    ///
    /// A guard is of one thread, and an `async` task may go on on another one after each `.await`. So a task that holds a
    /// guard there cannot be spawned. Use [`in_context`](InContext::in_context) for futures.
    ///
    /// ```compile_fail
    /// # fn spawn(_: impl Future + Send) {}
    /// # async fn next() {}
    /// spawn(async {
    ///     let _guard = heapray::context([("tenant", "acme")]).enter();
    ///     next().await; // error: future cannot be sent between threads safely
    /// });
    /// ```
    #[inline]
    pub fn enter(self) -> ContextGuard {
        ContextGuard {
            _entered: context::enter(self.0),
        }
    }

    /// Begins the run of a request that is counted under this context, also if it is a part of another one.
    #[cfg(feature = "http")]
    pub(crate) fn begin_request(self) -> Run {
        name_run(self.0);
        Run::begin(self.0)
    }

    /// Lets the context never make room for others. Returns false if it is one of those without room.
    #[cfg(feature = "http")]
    pub(crate) fn keep(self) -> bool {
        table::keep(self.0)
    }

    /// Returns the context's number.
    #[cfg(feature = "http")]
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// Calls `work` in the context. If it panics, the thread is in the context of before, too.
    pub fn run<R>(self, work: impl FnOnce() -> R) -> R {
        let _guard = self.enter();
        work()
    }

    /// Returns the labels as pairs of a key and a value, sorted by key.
    #[must_use]
    pub fn labels(self) -> Vec<(String, String)> {
        table::labels_of(self.0)
    }
}

/// Thread in a [`Context`]: see [`Context::enter`].
#[derive(Debug)]
#[must_use = "the context is left when the guard is dropped"]
pub struct ContextGuard {
    _entered: Entered,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_added_to_those_of_the_current_context_and_replace_them() {
        let tenant = context([("tenant", "acme"), ("plan", "small")]);
        let both = tenant.run(|| context([("plan", "large"), ("route", "GET /x")]));
        let labels = [("plan", "large"), ("route", "GET /x"), ("tenant", "acme")];
        assert_eq!(
            both.labels(),
            labels.map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
        assert_eq!(Context::current(), Context::NONE);
        assert_eq!(
            context(labels),
            both,
            "the same labels are the same context"
        );
    }

    #[test]
    fn a_panic_restores_the_context_of_before() {
        let outer = context([("tenant", "outer")]);
        outer.run(|| {
            let inner = context([("tenant", "inner")]);
            let panic = std::panic::catch_unwind(|| inner.run(|| panic!("on purpose")));
            assert!(panic.is_err());
            assert_eq!(Context::current(), outer);
        });
    }
}
