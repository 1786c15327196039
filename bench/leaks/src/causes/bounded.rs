//! Harmless: caches, tables and queues that reach their bound early, or follow the traffic.

use super::Effect;
use crate::Site;
use crate::cache::{Cache, Eviction, GrowingKeys};
use crate::heap::{Due, Heap, Request};
use crate::rng::Rng;

/// A cache that is full after 40 % of the run's requests.
#[derive(Debug)]
pub(super) struct FullCache {
    cache: Cache,
    keys: GrowingKeys,
    rng: Rng,
}

impl FullCache {
    pub(super) fn new(requests: u64, eviction: Eviction, rng: Rng) -> Self {
        // Until the cache is full, half of the look-ups make an entry: those of new keys.
        let bound = requests * 4 / 10 / 2;
        Self {
            cache: Cache::new(Site::Suspect, Some(bound), eviction),
            keys: GrowingKeys::default(),
            rng,
        }
    }
}

impl Effect for FullCache {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        let key = self.keys.next(&mut self.rng);
        self.cache.look_up(heap, &mut self.rng, request.thread, key);
    }
}

/// Entries with a fixed time to live.
#[derive(Debug)]
pub(super) struct TtlCache {
    pub(super) rng: Rng,
}

impl Effect for TtlCache {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        let thread = request.thread;
        let block = heap.allocate_some(&mut self.rng, thread, Site::Suspect, &(256..768));
        heap.schedule(heap.now_ms + 5_000, Due::Free { thread, block });
    }
}

/// Tables that are built at their first use.
#[derive(Debug, Default)]
pub(super) struct LazySetUp {
    built: u64,
}

impl LazySetUp {
    const TABLES: u64 = 400;
    const READY_AT_WORK: f64 = 0.2;
}

impl Effect for LazySetUp {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        let used = (request.work / Self::READY_AT_WORK).min(1.0) * Self::TABLES as f64;
        while self.built < used as u64 {
            heap.allocate(request.thread, Site::Suspect, 16_384);
            self.built += 1;
        }
    }
}

/// A batch that is collected and flushed.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) batch: Vec<u64>,
    pub(super) rng: Rng,
}

impl Effect for Queue {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        self.batch.push(heap.allocate_some(
            &mut self.rng,
            request.thread,
            Site::Suspect,
            &(128..640),
        ));
    }

    fn tick(&mut self, heap: &mut Heap) {
        if heap.now_ms % 4_000 == 3_999 {
            for block in self.batch.drain(..) {
                heap.free(0, block);
            }
        }
    }
}

/// A table that is reloaded: the new one is built while the old one is in use.
#[derive(Debug, Default)]
pub(super) struct DoubleBuffering {
    table: Vec<u64>,
    next: Vec<u64>,
}

impl DoubleBuffering {
    const BLOCKS: usize = 600;

    fn add_block(&mut self, heap: &mut Heap) {
        self.next.push(heap.allocate(0, Site::Suspect, 4_096));
    }
}

impl Effect for DoubleBuffering {
    fn start(&mut self, heap: &mut Heap) {
        while self.next.len() < Self::BLOCKS {
            self.add_block(heap);
        }
        std::mem::swap(&mut self.table, &mut self.next);
    }

    fn tick(&mut self, heap: &mut Heap) {
        let is_loading = !self.next.is_empty();
        if is_loading || (heap.now_ms > 0 && heap.now_ms.is_multiple_of(10_000)) {
            self.add_block(heap);
        }
        if self.next.len() == Self::BLOCKS {
            std::mem::swap(&mut self.table, &mut self.next);
            for block in self.next.drain(..) {
                heap.free(0, block);
            }
        }
    }
}
