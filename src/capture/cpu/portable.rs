//! Replaces the sampler on systems where a thread's CPU time cannot be sampled.

use core::sync::atomic::AtomicU64;

use super::{CpuError, CpuTally};
use crate::capture::arch::Registers;

/// Sampler that cannot exist here.
#[derive(Debug)]
pub(crate) enum Sampler {}

#[allow(clippy::unused_self, clippy::needless_pass_by_ref_mut)] // the same methods as elsewhere
impl Sampler {
    pub(crate) fn new(_interval_ns: u64) -> Result<Sampler, CpuError> {
        Err(CpuError::Unsupported)
    }

    pub(crate) fn resume_here(&mut self) -> Result<(), CpuError> {
        match *self {}
    }

    pub(crate) fn resume_on(&mut self, _tid: u32) -> Result<(), CpuError> {
        match *self {}
    }

    pub(crate) fn pause(&mut self) {
        match *self {}
    }

    pub(crate) fn signal_value(&self) -> usize {
        match *self {}
    }

    pub(crate) fn samples(&self) -> &'static AtomicU64 {
        match *self {}
    }

    pub(crate) fn sampled_ns(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn lost(&mut self) -> CpuTally {
        match *self {}
    }

    /// # Safety
    /// None.
    pub(crate) unsafe fn node_at(&mut self, _registers: Registers) -> u32 {
        match *self {}
    }

    pub(crate) fn callers_caller(&mut self, _node: u32) -> u32 {
        match *self {}
    }

    pub(crate) fn for_each_node(&mut self, _visit: impl FnMut(u32, u64, CpuTally)) {
        match *self {}
    }
}
