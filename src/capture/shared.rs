//! Types that several threads touch: the processor's atomics, or loom's with `--cfg heapray_loom`, so that the models of
//! `capture::loom_tests` run this very code.

#[cfg(not(heapray_loom))]
pub use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, fence};
#[cfg(heapray_loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, fence};

/// Declares a `static` that is made anew in each run of a model.
macro_rules! shared {
    ($(#[$about:meta])* static $name:ident: $type:ty = $value:expr;) => {
        #[cfg(not(heapray_loom))]
        $(#[$about])*
        static $name: $type = $value;
        #[cfg(heapray_loom)]
        loom::lazy_static! {
            $(#[$about])*
            static ref $name: $type = $value;
        }
    };
    ($(#[$about:meta])* pub static $name:ident: $type:ty = $value:expr;) => {
        #[cfg(not(heapray_loom))]
        $(#[$about])*
        pub static $name: $type = $value;
        #[cfg(heapray_loom)]
        loom::lazy_static! {
            $(#[$about])*
            pub static ref $name: $type = $value;
        }
    };
}

pub(crate) use shared;

/// Cell that only the owner of its container may touch, as loom checks. Without loom it does nothing.
#[derive(Debug, Default)]
pub struct OwnersOnly(#[cfg(heapray_loom)] loom::cell::UnsafeCell<()>);

impl OwnersOnly {
    /// Touches the cell as its owner.
    #[inline(always)]
    pub fn touch(&self) {
        #[cfg(heapray_loom)]
        self.0.with_mut(|_| ());
    }
}
