//! What every program does, whatever its cause: settings, requests, sessions and a cache.

use crate::cache::{Cache, Eviction, GrowingKeys};
use crate::heap::{Due, Heap, Request};
use crate::rng::Rng;
use crate::{Cause, Program, Site, Traffic};

const SETTINGS_BLOCKS: u64 = 5_000;
const SETTINGS_BLOCK_BYTES: u64 = 4_096;

/// Start-up of [`Traffic::StartUp`]: as long as no request arrives there.
const START_UP_MS: u64 = 3_000;
const START_UP_BLOCKS_PER_MS: u64 = 20;

/// How sessions are opened and closed.
#[derive(Debug)]
struct Sessions {
    /// One of so many requests opens a session.
    one_of: u64,
    mean_life_ms: f64,
    /// One of so many sessions is never closed.
    unclosed_one_of: Option<u64>,
}

impl Sessions {
    fn of(cause: Cause) -> Self {
        match cause {
            Cause::UnclosedSessions => Self {
                one_of: 4,
                mean_life_ms: 3_000.0,
                unclosed_one_of: Some(20),
            },
            Cause::SessionsFollowTraffic => Self {
                one_of: 2,
                mean_life_ms: 6_000.0,
                unclosed_one_of: None,
            },
            _ => Self {
                one_of: 4,
                mean_life_ms: 3_000.0,
                unclosed_one_of: None,
            },
        }
    }
}

/// Which keys the cache is asked for.
#[derive(Debug)]
enum Keys {
    /// As many as given, the low ones far more often.
    Popular(u64),
    Growing(GrowingKeys),
}

/// The state of the background.
#[derive(Debug)]
pub(crate) struct Background {
    rng: Rng,
    sessions: Sessions,
    cache: Cache,
    keys: Keys,
    buffers_of_a_request: u64,
    /// Temporary blocks of start-up, where there is such a start-up.
    start_up: Option<Vec<u64>>,
    threads: u8,
}

impl Background {
    /// Makes what the service has before its first request.
    pub(crate) fn start(program: &Program, requests: u64, heap: &mut Heap, rng: Rng) -> Self {
        for _ in 0..SETTINGS_BLOCKS {
            heap.allocate(0, Site::Settings, SETTINGS_BLOCK_BYTES);
        }
        // Full after less than a tenth of the requests, if it has a bound.
        let bound = requests / 20;
        let (bound, keys) = match program.cause {
            Cause::UnboundedCache => (None, Keys::Growing(GrowingKeys::default())),
            _ => (Some(bound), Keys::Popular(bound * 3)),
        };
        Self {
            rng,
            sessions: Sessions::of(program.cause),
            cache: Cache::new(Site::Cache, bound, Eviction::LeastRecentlyUsed)
                .with_index(heap, Site::CacheIndex),
            keys,
            buffers_of_a_request: program.traffic.buffers_of_a_request(),
            start_up: (program.traffic == Traffic::StartUp).then(Vec::new),
            threads: program.threads(),
        }
    }

    /// Does the work of start-up that takes virtual time: 1 GB in all, of which 1 % is kept.
    pub(crate) fn tick(&mut self, heap: &mut Heap) {
        let Some(temporary) = &mut self.start_up else {
            return;
        };
        if heap.now_ms < START_UP_MS {
            for _ in 0..START_UP_BLOCKS_PER_MS {
                let block = heap.allocate(0, Site::StartUp, 16_384);
                if !self.rng.one_of(100) {
                    temporary.push(block);
                }
            }
        }
        if temporary.len() >= 256 || heap.now_ms == START_UP_MS {
            for block in temporary.drain(..) {
                heap.free(0, block);
            }
        }
    }

    /// Reads a request: its body, a log line, its user's session, the cache.
    pub(crate) fn arrive(&mut self, heap: &mut Heap, request: &mut Request) {
        let (rng, thread) = (&mut self.rng, request.thread);
        request
            .blocks
            .push(heap.allocate_some(rng, thread, Site::RequestBody, &(512..8_192)));
        request
            .blocks
            .push(heap.allocate_some(rng, thread, Site::LogLine, &(80..240)));
        if rng.one_of(self.sessions.one_of) {
            let block = heap.allocate_some(rng, thread, Site::Session, &(1_024..3_072));
            let life_ms = 1 + rng.exponential(self.sessions.mean_life_ms) as u64;
            if !self
                .sessions
                .unclosed_one_of
                .is_some_and(|count| rng.one_of(count))
            {
                let closing_thread = rng.below(u64::from(self.threads)) as u8;
                heap.schedule(
                    heap.now_ms + life_ms,
                    Due::Free {
                        thread: closing_thread,
                        block,
                    },
                );
            }
        }
        let key = match &mut self.keys {
            Keys::Popular(count) => (rng.unit().powi(2) * *count as f64) as u64,
            Keys::Growing(keys) => keys.next(rng),
        };
        self.cache.look_up(heap, rng, thread, key);
    }

    /// Writes the response: buffers one after the other, of which the last lives until the request ends.
    pub(crate) fn respond(&mut self, heap: &mut Heap, mut request: Request) {
        for number in 1..=self.buffers_of_a_request {
            let block = heap.allocate_some(
                &mut self.rng,
                request.thread,
                Site::ResponseBuffer,
                &(1_024..16_384),
            );
            if number < self.buffers_of_a_request {
                heap.free(request.thread, block);
            } else {
                request.blocks.push(block);
            }
        }
        heap.schedule(request.ends_ms, Due::Finish(request));
    }
}
