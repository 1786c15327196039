//! Tests of intervals against a model with each block and each page of each mapping.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use heapray_report::memray::ReadError;
use heapray_report::model::{Allocator, ContextId, Event, StackId, Tally, ThreadId};
use heapray_report::views::{Interval, IntervalOptions, Intervals};
use proptest::prelude::*;
use support::{PAGE, Program, program_in_contexts};

/// An allocation: its time, and the end of each of its parts.
struct Life {
    site: u32,
    born_ms: u64,
    /// (address, bytes, end): a block has one part, a mapping has one for each page.
    parts: Vec<(u64, u64, Option<u64>)>,
    mapping: bool,
}

fn lives(program: &Program) -> Vec<Life> {
    let site_of = |key: (ThreadId, ContextId, StackId, Allocator)| {
        let sites = &program.report.sites;
        let site = sites
            .iter()
            .position(|s| (s.thread, s.context, s.stack, s.allocator) == key);
        site.unwrap() as u32
    };
    let mut lives: Vec<Life> = Vec::new();
    let mut now = 0;
    for event in &program.events {
        match *event {
            Event::Memory { at_ms, .. } => now = at_ms,
            Event::Allocation {
                thread,
                context,
                allocator,
                address,
                size,
                stack,
            } => {
                let mapping = allocator == Allocator::Mmap;
                if !mapping {
                    end(&mut lives, false, address..address + 1, now);
                }
                let parts = match (mapping, size) {
                    (true, 0) => vec![(address, 0, Some(now))],
                    (true, _) => (0..size / PAGE)
                        .map(|page| (address + page * PAGE, PAGE, None))
                        .collect(),
                    (false, _) => vec![(address, size, None)],
                };
                lives.push(Life {
                    site: site_of((thread, context, stack, allocator)),
                    born_ms: now,
                    parts,
                    mapping,
                });
            }
            Event::Deallocation {
                allocator: Allocator::Munmap,
                address,
                size,
                ..
            } => end(&mut lives, true, address..address + size, now),
            Event::Deallocation { address, .. } => {
                end(&mut lives, false, address..address + 1, now)
            }
        }
    }
    lives
}

fn end(lives: &mut [Life], mapping: bool, range: std::ops::Range<u64>, now: u64) {
    for life in lives.iter_mut().filter(|life| life.mapping == mapping) {
        for part in &mut life.parts {
            if range.contains(&part.0) && part.2.is_none() {
                part.2 = Some(now);
            }
        }
    }
}

/// Returns the rows of the lives in the slots of `intervals`.
fn rows(lives: &[Life], intervals: &Intervals) -> Vec<Interval> {
    let slot = |ms: u64| {
        let starts = &intervals.starts_ms;
        starts.iter().rposition(|&start| start <= ms).unwrap() as u32
    };
    let mut rows: BTreeMap<(u32, u32, u32), Tally> = BTreeMap::new();
    for life in lives {
        let ends = || life.parts.iter().map(|part| part.2.map_or(u32::MAX, slot));
        let last = ends().max().unwrap();
        for (part, freed) in life.parts.iter().zip(ends()) {
            *rows
                .entry((life.site, slot(life.born_ms), freed))
                .or_default() += Tally {
                count: 0,
                bytes: part.1,
            };
        }
        rows.get_mut(&(life.site, slot(life.born_ms), last))
            .unwrap()
            .count += 1;
    }
    rows.into_iter()
        .map(|((site, born, freed), blocks)| Interval {
            site,
            born,
            freed: (freed != u32::MAX).then_some(freed),
            blocks,
        })
        .collect()
}

fn intervals(program: &Program, options: IntervalOptions) -> Intervals {
    let events = program.events.iter().copied().map(Ok::<_, ReadError>);
    Intervals::of(&program.report, events, options).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_block_is_in_the_row_of_its_birth_and_end(program in program_in_contexts(), slots in 1u32..40) {
        let lives = lives(&program);
        let options = IntervalOptions { slots, ..IntervalOptions::default() };
        let found = intervals(&program, options);
        prop_assert!(found.starts_ms.len() as u32 <= slots);
        prop_assert_eq!(found.starts_ms[0], 0);
        prop_assert_eq!(&found.rows, &rows(&lives, &found));
        let last = program.report.timeline.last().map_or(0, |moment| moment.at_ms);
        for ms in [0, 1, last / 3, last] {
            let starts = &found.starts_ms;
            let slot = starts.iter().rposition(|&start| start <= ms).unwrap();
            prop_assert_eq!(found.slot(ms) as usize, slot);
        }
    }

    /// Merging slots loses no block, and the slots are as fine as the number of rows allows.
    #[test]
    fn too_many_rows_make_slots_longer(program in program_in_contexts(), most in 1usize..60) {
        let lives = lives(&program);
        let fine = intervals(&program, IntervalOptions { slots: 64, ..IntervalOptions::default() });
        let coarse = intervals(&program, IntervalOptions { slots: 64, rows: most, ..IntervalOptions::default() });
        prop_assert_eq!(&coarse.rows, &rows(&lives, &coarse));
        prop_assert!(coarse.rows.len() <= most || coarse.starts_ms.len() == 1);
        if fine.rows.len() <= most {
            prop_assert_eq!(fine, coarse);
        }
    }

    #[test]
    fn all_rows_of_a_site_add_up_to_its_allocations(program in program_in_contexts()) {
        let found = intervals(&program, IntervalOptions::default());
        let mut sums = vec![(Tally::default(), 0); program.report.sites.len()];
        for row in &found.rows {
            sums[row.site as usize].0 += row.blocks;
            if row.freed.is_none() {
                sums[row.site as usize].1 += row.blocks.bytes;
            }
        }
        for (site, sum) in program.report.sites.iter().zip(sums) {
            prop_assert_eq!((site.allocated, site.live.bytes), sum);
        }
    }
}

#[test]
fn events_of_other_captures_are_left_out() {
    let mut report = support::skeleton(1);
    let stack = support::stack(&mut report, &[0, 1]);
    let allocation = |stack| Event::Allocation {
        context: ContextId::NONE,
        thread: ThreadId(0),
        allocator: Allocator::Malloc,
        address: 64,
        size: 8,
        stack,
    };
    let events = vec![allocation(stack), Event::Memory { at_ms: 9, rss: 0 }];
    support::sum_up(&mut report, &events);
    let events = [
        allocation(stack),
        Event::Memory {
            at_ms: u64::MAX,
            rss: 0,
        },
        allocation(StackId::EMPTY),
    ];
    let events = events.into_iter().map(Ok::<_, ReadError>);
    let found = Intervals::of(&report, events, IntervalOptions::default()).unwrap();
    assert_eq!(found.starts_ms, (0..10).collect::<Vec<_>>());
    let only = Interval {
        site: 0,
        born: 0,
        freed: Some(9),
        blocks: Tally { count: 1, bytes: 8 },
    };
    assert_eq!(found.rows, [only]);
}

#[test]
fn errors_of_the_log_are_returned() {
    let events = std::iter::once(Err(ReadError::NoEvents));
    let failed = Intervals::of(
        &support::skeleton(1),
        events,
        IntervalOptions {
            slots: 0,
            rows: 0,
            ..IntervalOptions::default()
        },
    );
    assert!(matches!(failed, Err(ReadError::NoEvents)));
}
