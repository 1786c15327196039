//! Leaks in one container that grows for ever: few blocks, ever larger.

use super::Effect;
use crate::Site;
use crate::heap::{Heap, Request};

const ELEMENTS_OF_A_REQUEST: u64 = 4;
const DOUBLINGS: u32 = 7;

/// Returns a first capacity (in elements) from which [`DOUBLINGS`] doublings reach `work`, a share of the run's
/// requests, so that the last of them happens there.
fn first_capacity(requests: u64, work: f64) -> u64 {
    (((requests * ELEMENTS_OF_A_REQUEST) as f64 * work) as u64 >> (DOUBLINGS - 1)).max(4)
}

/// A vector that doubles by `realloc`.
#[derive(Debug)]
pub(super) struct GrowingVector {
    block: Option<u64>,
    elements: u64,
    capacity: u64,
}

impl GrowingVector {
    const ELEMENT_BYTES: u64 = 16;

    pub(super) fn new(requests: u64) -> Self {
        Self {
            block: None,
            elements: 0,
            capacity: first_capacity(requests, 0.88),
        }
    }
}

impl Effect for GrowingVector {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        let thread = request.thread;
        let block = *self.block.get_or_insert_with(|| {
            heap.allocate(
                thread,
                Site::SuspectIndex,
                self.capacity * Self::ELEMENT_BYTES,
            )
        });
        self.elements += ELEMENTS_OF_A_REQUEST;
        if self.elements > self.capacity {
            self.capacity *= 2;
            heap.resize(
                thread,
                block,
                Site::SuspectIndex,
                self.capacity * Self::ELEMENT_BYTES,
            );
        }
    }
}

/// A hash map: its table is seven eighths full when it is rehashed into one of the double size.
#[derive(Debug)]
pub(super) struct RehashingMap {
    block: Option<u64>,
    entries: u64,
    /// Entries that the table takes before it is rehashed.
    capacity: u64,
}

impl RehashingMap {
    const SLOT_BYTES: u64 = 33;

    pub(super) fn new(requests: u64) -> Self {
        Self {
            block: None,
            entries: 0,
            capacity: first_capacity(requests, 0.8),
        }
    }

    fn allocate(&self, heap: &mut Heap, thread: u8) -> u64 {
        heap.allocate(
            thread,
            Site::SuspectIndex,
            self.capacity * 8 / 7 * Self::SLOT_BYTES,
        )
    }
}

impl Effect for RehashingMap {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        self.entries += ELEMENTS_OF_A_REQUEST;
        if self.entries > self.capacity {
            self.capacity *= 2;
            let larger = self.allocate(heap, request.thread);
            if let Some(old) = self.block.replace(larger) {
                heap.free(request.thread, old);
            }
        } else if self.block.is_none() {
            self.block = Some(self.allocate(heap, request.thread));
        }
    }
}
