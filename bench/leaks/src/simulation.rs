//! Goes through a program's virtual time, one millisecond after the other.

use crate::background::Background;
use crate::causes::{Effect, effect};
use crate::heap::{Due, Heap, Request};
use crate::rng::Rng;
use crate::traffic::DURATION_MS;
use crate::{Program, Step};

/// The streams of random numbers of one seed.
const ARRIVALS: u64 = 1;
const BACKGROUND: u64 = 2;
const CAUSE: u64 = 3;
const REQUESTS: u64 = 4;

/// The steps of a program, made while they are asked for.
#[derive(Debug)]
pub(crate) struct Simulation {
    arrivals: Vec<u16>,
    requests: u64,
    arrived: u64,
    threads: u8,
    rng: Rng,
    heap: Heap,
    background: Background,
    effect: Box<dyn Effect>,
}

impl Simulation {
    pub(crate) fn new(program: &Program) -> Self {
        let arrivals = program.traffic.arrivals(Rng::new(program.seed, ARRIVALS));
        let requests = arrivals.iter().map(|&count| u64::from(count)).sum();
        let mut heap = Heap::default();
        let background = Background::start(
            program,
            requests,
            &mut heap,
            Rng::new(program.seed, BACKGROUND),
        );
        let mut effect = effect(program.cause, requests, Rng::new(program.seed, CAUSE));
        effect.start(&mut heap);
        let rng = Rng::new(program.seed, REQUESTS);
        Self {
            arrivals,
            requests,
            arrived: 0,
            threads: program.threads(),
            rng,
            heap,
            background,
            effect,
        }
    }

    /// Writes the steps of the present millisecond, and goes on to the next.
    fn advance(&mut self) {
        while let Some(due) = self.heap.pop_due() {
            match due {
                Due::Respond(request) => self.background.respond(&mut self.heap, request),
                Due::Finish(request) => {
                    self.effect.finish(&mut self.heap, &request);
                    for block in request.blocks {
                        self.heap.free(request.thread, block);
                    }
                }
                Due::Free { thread, block } => self.heap.free(thread, block),
            }
        }
        self.background.tick(&mut self.heap);
        self.effect.tick(&mut self.heap);
        for _ in 0..self.arrivals[self.heap.now_ms as usize] {
            self.arrive();
        }
        self.heap.now_ms += 1;
    }

    fn arrive(&mut self) {
        let number = self.arrived;
        self.arrived += 1;
        let mut request = Request {
            number,
            work: number as f64 / self.requests as f64,
            thread: self.rng.below(u64::from(self.threads)) as u8,
            blocks: Vec::new(),
            borrowed: None,
            ends_ms: self.heap.now_ms + self.latency_ms(),
        };
        self.background.arrive(&mut self.heap, &mut request);
        self.effect.arrive(&mut self.heap, &mut request);
        let responds_ms = u64::midpoint(self.heap.now_ms, request.ends_ms);
        self.heap.schedule(responds_ms, Due::Respond(request));
    }

    /// Returns a latency of some ms to some 100 ms. One request in 20 is slow.
    fn latency_ms(&mut self) -> u64 {
        let slower = if self.rng.one_of(20) { 6.0 } else { 1.0 };
        (3.0 + slower * self.rng.exponential(25.0)).min(1_500.0) as u64
    }
}

impl Iterator for Simulation {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        while self.heap.steps.is_empty() && self.heap.now_ms < DURATION_MS {
            self.advance();
        }
        self.heap.steps.pop_front()
    }
}
