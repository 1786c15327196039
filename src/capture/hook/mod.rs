//! Seeing allocations by patching the GOT: `got` finds and writes the entries, `entry` is what they point to,
//! `body` records and calls the real function.
//!
//! Where there is no GOT to patch (another system, processor or libc), nothing is patched, and
//! [`crate::Alloc`] is the way to see allocations.

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(heapray_portable)
))]
mod patching;
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(heapray_portable)
))]
pub use patching::*;

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(heapray_portable)
)))]
mod portable;
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(heapray_portable)
)))]
pub use portable::*;
