//! What patched GOT entries point to: naked trampolines that hand the caller's return address, stack pointer and frame
//! pointer on to the body. They leave by a jump, so that the body returns to the caller and no frame of heapray's lies
//! between a recorded stack and the caller.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::*;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::*;

/// No stack is taken of a free: its entry is the body.
pub(super) use super::body::{free, munmap};
