//! How each cause acts: a state machine that sees every request begin and end, and every virtual millisecond.

mod bounded;
mod buffers;
mod containers;
mod kept;

use crate::Cause;
use crate::cache::Eviction;
use crate::heap::{Heap, Request};
use crate::rng::Rng;
use std::fmt::Debug;

/// What a cause does at each moment of the program.
pub(crate) trait Effect: Debug {
    /// Before the first request.
    fn start(&mut self, _heap: &mut Heap) {}
    /// When a request arrives. Blocks that are pushed to `request.blocks` are freed at its end.
    fn arrive(&mut self, _heap: &mut Heap, _request: &mut Request) {}
    /// When a request has ended.
    fn finish(&mut self, _heap: &mut Heap, _request: &Request) {}
    /// Each virtual millisecond, before its requests arrive.
    fn tick(&mut self, _heap: &mut Heap) {}
}

/// A cause that lies in the background itself, or not at all.
#[derive(Debug)]
struct NoEffect;

impl Effect for NoEffect {}

/// Returns the state machine of `cause` for a run of `requests` requests.
pub(crate) fn effect(cause: Cause, requests: u64, rng: Rng) -> Box<dyn Effect> {
    match cause {
        Cause::EveryRequest => Box::new(kept::Kept {
            one_of: 1,
            blocks: 1,
            bytes: 64..256,
            from_work: 0.0,
            rng,
        }),
        Cause::OneOfHundred => Box::new(kept::Kept {
            one_of: 100,
            blocks: 1,
            bytes: 1_024..4_096,
            from_work: 0.0,
            rng,
        }),
        Cause::LinkedList => Box::new(kept::Kept {
            one_of: 1,
            blocks: 4,
            bytes: 48..49,
            from_work: 0.0,
            rng,
        }),
        Cause::FeatureFlag => Box::new(kept::Kept {
            one_of: 1,
            blocks: 1,
            bytes: 128..384,
            from_work: 0.4,
            rng,
        }),
        Cause::SlowUnderChurn => Box::new(kept::SlowUnderChurn {
            table_blocks: 0,
            rng,
        }),
        Cause::SlowUnderChurnAndTable => Box::new(kept::SlowUnderChurn {
            table_blocks: 4_096,
            rng,
        }),
        Cause::OneOfEightThreads => Box::new(kept::OneThread { leaking: 5, rng }),
        Cause::LargeSeldom => Box::new(kept::LargeSeldom),
        Cause::ErrorClumps => Box::new(kept::ErrorClumps::new(requests, rng)),
        Cause::LongTimeToLive => Box::new(kept::LongTimeToLive { rng }),
        Cause::GrowingVector => Box::new(containers::GrowingVector::new(requests)),
        Cause::RehashingMap => Box::new(containers::RehashingMap::new(requests)),
        Cause::LruCache => Box::new(bounded::FullCache::new(
            requests,
            Eviction::LeastRecentlyUsed,
            rng,
        )),
        Cause::RandomCache => Box::new(bounded::FullCache::new(requests, Eviction::Random, rng)),
        Cause::TtlCache => Box::new(bounded::TtlCache { rng }),
        Cause::LazySetUp => Box::new(bounded::LazySetUp::default()),
        Cause::Pool => Box::new(buffers::Pool::default()),
        Cause::Queue => Box::new(bounded::Queue {
            batch: Vec::new(),
            rng,
        }),
        Cause::MessageBuffer => Box::new(buffers::MessageBuffer::new(cause.threads(), rng)),
        Cause::Fragmentation => Box::new(buffers::Fragmentation::new(requests)),
        Cause::DoubleBuffering => Box::new(bounded::DoubleBuffering::default()),
        Cause::Arena => Box::new(buffers::Arena::new(requests)),
        Cause::UnboundedCache
        | Cause::UnclosedSessions
        | Cause::SessionsFollowTraffic
        | Cause::Nothing => Box::new(NoEffect),
    }
}
