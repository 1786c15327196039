//! Stand-in: while the guard lives, nothing this thread allocates is recorded.

/// See [`enter`].
#[derive(Debug)]
pub struct Quiet(std::marker::PhantomData<*const ()>);

/// Nothing this thread allocates is recorded until the guard is dropped.
#[must_use]
pub fn enter() -> Quiet {
    Quiet(std::marker::PhantomData)
}
