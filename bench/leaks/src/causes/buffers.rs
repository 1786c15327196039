//! Harmless: buffers that are reused, and blocks that are freed all at once.

use super::Effect;
use crate::Site;
use crate::heap::{Heap, Request};
use crate::rng::Rng;

/// A pool that never gives a buffer back. It has a bound, so that no late record of requests in flight enlarges it.
#[derive(Debug, Default)]
pub(super) struct Pool {
    made: u64,
    idle: Vec<u64>,
}

impl Pool {
    const BUFFERS: u64 = 16;
}

impl Effect for Pool {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        request.borrowed = self.idle.pop();
        if request.borrowed.is_none() && self.made < Self::BUFFERS {
            request.borrowed = Some(heap.allocate(request.thread, Site::Suspect, 16_384));
            self.made += 1;
        }
    }

    fn finish(&mut self, _heap: &mut Heap, request: &Request) {
        self.idle.extend(request.borrowed);
    }
}

/// A buffer for each thread, regrown to the largest message so far.
#[derive(Debug)]
pub(super) struct MessageBuffer {
    /// Key and size.
    buffers: Vec<Option<(u64, u64)>>,
    rng: Rng,
}

impl MessageBuffer {
    pub(super) fn new(threads: u8, rng: Rng) -> Self {
        Self {
            buffers: vec![None; usize::from(threads)],
            rng,
        }
    }

    /// Returns the size of the next message: 2 kB to 256 kB, a double one half as often.
    fn message_bytes(&mut self) -> u64 {
        let mut bytes = 2_048;
        while bytes < 256 << 10 && self.rng.one_of(2) {
            bytes *= 2;
        }
        bytes
    }
}

impl Effect for MessageBuffer {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        let bytes = self.message_bytes();
        let buffer = &mut self.buffers[usize::from(request.thread)];
        match buffer {
            None => *buffer = Some((heap.allocate(request.thread, Site::Suspect, bytes), bytes)),
            Some((block, size)) if *size < bytes => {
                heap.resize(request.thread, *block, Site::Suspect, bytes);
                *size = bytes;
            }
            Some(_) => {}
        }
    }
}

/// Rounds of pairs of a large and a small block. The large ones are freed at once, the small ones in the next round.
#[derive(Debug)]
pub(super) struct Fragmentation {
    requests_of_a_round: u64,
    small: Vec<u64>,
}

impl Fragmentation {
    const PAIRS: u64 = 200;

    pub(super) fn new(requests: u64) -> Self {
        Self {
            requests_of_a_round: (requests / 40).max(1),
            small: Vec::new(),
        }
    }
}

impl Effect for Fragmentation {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        if !request.number.is_multiple_of(self.requests_of_a_round) {
            return;
        }
        let (mut large, mut small) = (Vec::new(), Vec::new());
        for _ in 0..Self::PAIRS {
            large.push(heap.allocate(request.thread, Site::Suspect, 16_384));
            small.push(heap.allocate(request.thread, Site::Suspect, 64));
        }
        std::mem::swap(&mut self.small, &mut small);
        for block in large.into_iter().chain(small) {
            heap.free(request.thread, block);
        }
    }
}

/// An arena: requests fill chunks, and a reset frees all chunks.
#[derive(Debug)]
pub(super) struct Arena {
    bytes_of_a_request: u64,
    chunks: Vec<u64>,
    free_bytes: u64,
}

impl Arena {
    const CHUNK_BYTES: u64 = 65_536;
    const CHUNKS: u64 = 64;
    const RESETS: u64 = 25;

    pub(super) fn new(requests: u64) -> Self {
        let bytes_of_a_request = Self::CHUNKS * Self::CHUNK_BYTES * Self::RESETS / requests.max(1);
        Self {
            bytes_of_a_request,
            chunks: Vec::new(),
            free_bytes: 0,
        }
    }
}

impl Effect for Arena {
    fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        if self.free_bytes < self.bytes_of_a_request {
            if self.chunks.len() as u64 == Self::CHUNKS {
                for chunk in self.chunks.drain(..) {
                    heap.free(request.thread, chunk);
                }
            }
            self.chunks
                .push(heap.allocate(request.thread, Site::Suspect, Self::CHUNK_BYTES));
            self.free_bytes = Self::CHUNK_BYTES;
        }
        self.free_bytes -= self.bytes_of_a_request;
    }
}
