//! Leaks of blocks that are kept for ever.

use super::Effect;
use crate::Site;
use crate::heap::{Due, Heap, Request};
use crate::rng::Rng;
use std::ops::Range;

/// Requests that keep blocks: all of them or a few, from the start or from a later moment on.
#[derive(Debug)]
pub(super) struct Kept {
    /// One of so many requests leaks.
    pub(super) one_of: u64,
    /// Blocks that such a request keeps.
    pub(super) blocks: u64,
    pub(super) bytes: Range<u64>,
    /// Share of the run's requests before the leak begins.
    pub(super) from_work: f64,
    pub(super) rng: Rng,
}

impl Effect for Kept {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        if request.work >= self.from_work && self.rng.one_of(self.one_of) {
            for _ in 0..self.blocks {
                heap.allocate_some(&mut self.rng, request.thread, Site::Suspect, &self.bytes);
            }
        }
    }
}

/// A slow leak at a call site with loud churn, with or without a static table at that site.
#[derive(Debug)]
pub(super) struct SlowUnderChurn {
    pub(super) table_blocks: u64,
    pub(super) rng: Rng,
}

impl Effect for SlowUnderChurn {
    fn start(&mut self, heap: &mut Heap) {
        for _ in 0..self.table_blocks {
            heap.allocate(0, Site::Suspect, 4_096);
        }
    }

    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        for _ in 0..3 {
            let block =
                heap.allocate_some(&mut self.rng, request.thread, Site::Suspect, &(128..320));
            request.blocks.push(block);
        }
        if self.rng.one_of(40) {
            heap.allocate_some(&mut self.rng, request.thread, Site::Suspect, &(128..320));
        }
    }
}

/// A call site of all threads, at which one thread never frees.
#[derive(Debug)]
pub(super) struct OneThread {
    pub(super) leaking: u8,
    pub(super) rng: Rng,
}

impl Effect for OneThread {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        let block = heap.allocate_some(&mut self.rng, request.thread, Site::Suspect, &(160..320));
        if request.thread != self.leaking {
            request.blocks.push(block);
        }
    }
}

/// Large blocks at times of their own.
#[derive(Debug)]
pub(super) struct LargeSeldom;

impl Effect for LargeSeldom {
    fn tick(&mut self, heap: &mut Heap) {
        if heap.now_ms % 2_000 == 1_000 {
            heap.allocate(0, Site::Suspect, 1 << 20);
        }
    }
}

/// Failures that come in clumps; each keeps a block.
#[derive(Debug)]
pub(super) struct ErrorClumps {
    /// Requests between the begins of two clumps, on average.
    spacing: u64,
    clump: Range<u64>,
    rng: Rng,
}

impl ErrorClumps {
    pub(super) fn new(requests: u64, rng: Rng) -> Self {
        let mut clumps = Self {
            spacing: requests / 24,
            clump: 0..0,
            rng,
        };
        clumps.next_clump();
        clumps
    }

    fn next_clump(&mut self) {
        let start = self.clump.end + self.rng.within(&(self.spacing / 2..self.spacing * 3 / 2));
        self.clump = start..start + self.rng.within(&(10..40));
    }
}

impl Effect for ErrorClumps {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        if request.number >= self.clump.end {
            self.next_clump();
        }
        let fails = self.clump.contains(&request.number) && !self.rng.one_of(5);
        if fails {
            heap.allocate_some(&mut self.rng, request.thread, Site::Suspect, &(512..1_536));
        }
    }
}

/// Blocks of which one in ten is freed; the others outlive the run.
#[derive(Debug)]
pub(super) struct LongTimeToLive {
    pub(super) rng: Rng,
}

impl Effect for LongTimeToLive {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        let thread = request.thread;
        let block = heap.allocate_some(&mut self.rng, thread, Site::Suspect, &(256..512));
        if self.rng.one_of(10) {
            let lifetime = self.rng.exponential(3_000.0) as u64;
            heap.schedule(heap.now_ms + lifetime, Due::Free { thread, block });
        }
    }
}
