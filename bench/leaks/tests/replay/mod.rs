//! Replays a program in a plain model of a heap, and measures what each call site has live.

use leak_programs::{Operation, Program, Site, Step};
use std::collections::HashMap;

/// Share of the work after which nothing that is harmless and bounded may grow.
const BOUND_BY: f64 = 0.55;

/// Bytes by call site.
pub(crate) type Bytes = [u64; Site::ALL.len()];

/// What the replay of a program has found.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) steps: u64,
    /// Virtual time at which each request arrives.
    pub(crate) arrivals_ms: Vec<u64>,
    /// Most live bytes before, and after, 55 % of the work.
    pub(crate) most: [Bytes; 2],
    /// Live bytes at one third, and two thirds, of the work, and at the end.
    pub(crate) live: [Bytes; 3],
    /// Bytes never freed, by the third of the work in which they were allocated.
    pub(crate) kept: [Bytes; 3],
    /// Ages, in virtual ms, of each site's blocks that are live at the end.
    pub(crate) ages_ms: [Vec<u32>; Site::ALL.len()],
    /// Virtual time at which 55 % of the work is done.
    pub(crate) bound_ms: u64,
}

#[derive(Clone, Copy)]
struct Block {
    site: Site,
    bytes: u64,
    third: usize,
    born_ms: u64,
}

impl Replay {
    /// Replays `program`. Panics where a step is not possible.
    pub(crate) fn of(program: &Program) -> Self {
        let steps: Vec<Step> = program.steps().collect();
        let is_request = |step: &&Step| {
            matches!(
                step.operation,
                Operation::Allocate {
                    site: Site::RequestBody,
                    ..
                }
            )
        };
        let requests = steps.iter().filter(is_request).count() as f64;
        let mut replay = Self {
            steps: steps.len() as u64,
            ..Self::default()
        };
        let mut blocks: HashMap<u64, Block> = HashMap::new();
        let (mut next_block, mut now_ms, mut live) = (0, 0, Bytes::default());
        for step in &steps {
            assert!(
                step.at_ms >= now_ms && step.at_ms < program.duration_ms(),
                "{}: {step:?}",
                program.name
            );
            assert!(
                step.thread < program.threads(),
                "{}: {step:?}",
                program.name
            );
            now_ms = step.at_ms;
            if is_request(&step) {
                replay.arrivals_ms.push(now_ms);
            }
            let work = replay.arrivals_ms.len() as f64 / requests;
            let third = ((work * 3.0) as usize).min(2);

            if work > BOUND_BY && replay.most[1] == Bytes::default() {
                replay.most[1] = live;
            }
            if let Operation::Allocate { block, .. } = step.operation {
                assert_eq!(
                    block, next_block,
                    "{}: keys count up, and none is used twice",
                    program.name
                );
                next_block += 1;
            } else {
                let old = blocks.remove(&step.operation.block());
                let old =
                    old.unwrap_or_else(|| panic!("{}: {step:?} names no live block", program.name));
                live[old.site as usize] -= old.bytes;
            }
            if let Operation::Allocate { block, site, bytes }
            | Operation::Resize { block, site, bytes } = step.operation
            {
                blocks.insert(
                    block,
                    Block {
                        site,
                        bytes,
                        third,
                        born_ms: now_ms,
                    },
                );
                live[site as usize] += bytes;
                let most = &mut replay.most[usize::from(work > BOUND_BY)][site as usize];
                *most = live[site as usize].max(*most);
            }
            if work <= BOUND_BY {
                replay.bound_ms = now_ms;
            }
            for later in &mut replay.live[third..] {
                *later = live;
            }
        }
        for block in blocks.values() {
            replay.kept[block.third][block.site as usize] += block.bytes;
            replay.ages_ms[block.site as usize]
                .push((program.duration_ms() - block.born_ms) as u32);
        }
        replay
    }

    /// Returns how many times as many blocks are live at once after 55 % of the work as before, at most, if each
    /// request makes one and it lives for `life_ms` on average.
    pub(crate) fn growth_by_traffic(&self, life_ms: f64) -> f64 {
        let mut most = [1.0_f64; 2];
        let (mut live, mut last_ms) = (0.0, 0);
        for &ms in &self.arrivals_ms {
            live = live * (-((ms - last_ms) as f64) / life_ms).exp() + 1.0;
            last_ms = ms;
            let most = &mut most[usize::from(ms > self.bound_ms)];
            *most = most.max(live);
        }
        (most[1] / most[0]).max(1.0)
    }
}
