//! Seeing allocations by patching the GOT: `got` finds and writes the entries, `entry` is what they point to,
//! `body` records and calls the real function.
//!
//! Where there is no GOT to patch (another system, processor or libc), nothing is patched, and
//! [`crate::Alloc`] is the way to see allocations.

#[cfg(all(heapray_native, target_env = "gnu"))]
mod patching;
#[cfg(all(heapray_native, target_env = "gnu"))]
pub use patching::*;

#[cfg(not(all(heapray_native, target_env = "gnu")))]
mod portable;
#[cfg(not(all(heapray_native, target_env = "gnu")))]
pub use portable::*;
