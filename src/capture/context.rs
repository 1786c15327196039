//! The context of a thread: on whose behalf it allocates.
//!
//! A context is a number; what it stands for is known elsewhere (`crate::contexts`). A change writes two words of the
//! thread. The next event then goes the way of a thread that was not announced yet (`record::publish`), and a
//! [`Kind::Context`](super::event::Kind::Context) is written before it. So a recorded event costs nothing more than before, and a
//! change of context without events leaves none.

use core::marker::PhantomData;

use super::thread::with_local;

/// Thread in a context, until this is dropped. Then the thread is in the context of before.
#[derive(Debug)]
#[must_use = "the context is left when this is dropped"]
pub struct Entered {
    before: u32,
    _of_this_thread: PhantomData<*mut ()>,
}

/// Lets the calling thread enter the context of this number; 0 is none.
#[inline]
pub fn enter(context: u32) -> Entered {
    Entered {
        before: with_local(|local| local.change_context(context)),
        _of_this_thread: PhantomData,
    }
}

/// Lets the calling thread be in the context of this number from now on. Returns that of before.
#[cfg(feature = "spans")]
pub fn replace(context: u32) -> u32 {
    with_local(|local| local.change_context(context))
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        with_local(|local| local.change_context(self.before));
    }
}

/// Returns the context of the calling thread.
#[inline]
#[must_use]
pub fn current() -> u32 {
    with_local(|local| local.context.get())
}

#[cfg(all(test, not(heapray_loom)))]
mod tests {
    use super::*;
    use crate::capture::thread::number;

    #[test]
    fn a_context_ends_with_its_guard_and_leaves_the_number_as_it_is() {
        std::thread::spawn(|| {
            let outer = enter(1);
            let given = with_local(number);
            assert_ne!(
                given, 0,
                "a thread may change its context before it has a number"
            );
            let inner = enter(2);
            assert_eq!((current(), with_local(number)), (2, given));
            drop(inner);
            assert_eq!(current(), 1);
            drop(outer);
            assert_eq!((current(), with_local(number)), (0, given));
        })
        .join()
        .unwrap();
    }
}
