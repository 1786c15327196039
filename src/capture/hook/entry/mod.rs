//! Targets of the patched GOT entries: naked trampolines that pass the caller's return address, stack pointer and frame
//! pointer to the body. They leave by a jump, so that the body returns to the caller and no frame of heapray's lies between
//! a recorded stack and the caller.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::*;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::*;

/// A free is recorded without a stack, so its entry is the body.
pub(super) use super::body::{free_aligned_sized, free_sized, munmap};
pub(super) use super::operators::{
    _ZdaPv, _ZdaPvRKSt9nothrow_t, _ZdaPvSt11align_val_t, _ZdaPvSt11align_val_tRKSt9nothrow_t,
    _ZdaPvm, _ZdaPvmSt11align_val_t, _ZdlPv, _ZdlPvRKSt9nothrow_t, _ZdlPvSt11align_val_t,
    _ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdlPvm, _ZdlPvmSt11align_val_t,
};
