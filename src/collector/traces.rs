//! Traces of requests: for each context and size, the last request that belongs to one. So a dashboard leads from a request that
//! allocated much to its trace.

use std::time::SystemTime;

use super::hash::Map;
use crate::capture::event::{Event, Kind};
use crate::capture::trace::TraceContext;

/// Request, or other run, that belonged to a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedRun {
    /// Bytes that it allocated.
    pub bytes: u64,
    /// Its trace.
    pub trace: TraceContext,
    /// When it ended.
    pub ended: SystemTime,
}

/// Traces of a session; see the module.
#[derive(Debug, Default)]
pub(super) struct Traces {
    /// The words of each thread's next trace.
    told: Map<u32, [u64; 3]>,
    last: Map<(u32, u32), TracedRun>,
}

impl Traces {
    /// Notes a part of the trace of the run whose end the thread tells next.
    pub(super) fn note(&mut self, event: &Event) {
        let [first, last] = event.trace_words();
        let told = self.told.entry(event.thread).or_default();
        match event.kind {
            Kind::TraceId => *told = [first, last, 0],
            _ => told[2] = first,
        }
    }

    /// Ends a run of `context` whose trace the thread has told.
    pub(super) fn end(&mut self, thread: u32, context: u32, bytes: u64) {
        let told = self.told.remove(&thread);
        if let Some(trace) = told.and_then(TraceContext::from_words) {
            let run = TracedRun {
                bytes,
                trace,
                ended: SystemTime::now(),
            };
            self.last.insert((context, step(bytes)), run);
        }
    }

    /// Keeps the last runs of some contexts under others: `retired` has both numbers.
    pub(super) fn retire(&mut self, retired: &Map<u32, u32>) {
        let gone = self
            .last
            .extract_if(|(context, _), _| retired.contains_key(context));
        let gone: Vec<((u32, u32), TracedRun)> = gone.collect();
        for ((context, step), run) in gone {
            let last = self.last.entry((retired[&context], step)).or_insert(run);
            if last.ended < run.ended {
                *last = run;
            }
        }
    }

    /// Returns the last run of each context and size, with the context's number.
    pub(super) fn by_context(&self) -> impl Iterator<Item = (u32, &TracedRun)> {
        let last = self.last.iter();
        last.map(|(&(context, _), run)| (context, run))
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        let told = self.told.capacity() * size_of::<(u32, [u64; 3])>();
        let last = self.last.capacity() * size_of::<((u32, u32), TracedRun)>();
        (told + last) as u64
    }
}

/// Returns the number of a size: each stands for sizes up to four times those of the one before.
fn step(bytes: u64) -> u32 {
    bytes
        .saturating_sub(1)
        .checked_ilog2()
        .map_or(0, |bits| bits / 2)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::capture::event::{NodeId, RunEnd};

    /// Returns the event of the end of a run on thread 1.
    pub(in crate::collector) fn event_of_end(number: u64, end: RunEnd) -> Event {
        let (kind, address, size) = end.fields(number);
        Event {
            stamp: 0,
            thread: 1,
            kind,
            address,
            size,
            node: NodeId(end.context),
        }
    }

    fn part(thread: u32, kind: Kind, [address, size]: [u64; 2]) -> Event {
        Event {
            stamp: 0,
            thread,
            kind,
            address,
            size,
            node: NodeId::ROOT,
        }
    }

    #[test]
    fn each_thread_tells_the_trace_of_its_run_and_the_last_of_a_size_is_kept() {
        let mut traces = Traces::default();
        for thread in [1, 2] {
            traces.note(&part(thread, Kind::TraceId, [0, u64::from(thread)]));
        }
        for thread in [1, 2] {
            traces.note(&part(thread, Kind::SpanId, [7, 0]));
        }
        traces.end(2, 9, 1024);
        traces.end(1, 9, 1025);
        // No trace was told for these.
        traces.end(1, 9, 1024);
        traces.end(3, 9, 1024);
        let mut last: Vec<(u32, u64, TraceContext)> = traces
            .by_context()
            .map(|(context, run)| (context, run.bytes, run.trace))
            .collect();
        last.sort_by_key(|&(_, bytes, _)| bytes);
        let trace = |thread| TraceContext::from_words([0, thread, 7]).unwrap();
        assert_eq!(last, [(9, 1024, trace(2)), (9, 1025, trace(1))]);
    }

    #[test]
    fn sizes_are_told_apart_by_powers_of_four() {
        let steps = [0, 1, 2, 256, 257, 1024, 1025, u64::MAX].map(step);
        assert_eq!(steps, [0, 0, 0, 3, 4, 4, 5, 31]);
    }
}
