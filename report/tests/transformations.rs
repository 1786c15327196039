//! Tests of reports that are made from other reports, against a naive model with lists of names.
#![allow(clippy::unwrap_used)]

mod support;

use heapray_report::Report;
use heapray_report::memray::{MemoryLimit, ReadError};
use heapray_report::model::{Allocator, Event, StackId, Tally, ThreadId};
use heapray_report::views::{
    CallTree, Filter, Fold, Measure, Merger, Sums, Unit, at_moment, by_stack, diff, filtered,
    folded, in_range, inverted, merged, readable, sandwich, temporary,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{Program, names, program, program_in_contexts, stack, sum_up};

/// Thread, allocator, context and call stack by their names.
type Key = (String, Allocator, u32, Vec<(String, String, u32)>);
/// High-water mark, live, allocated, temporary.
type Row = [Tally; 4];

fn rows(report: &Report) -> BTreeMap<Key, Row> {
    let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
    for site in &report.sites {
        let thread = report.threads[site.thread.0 as usize].name;
        let key = (
            report.strings.get(thread).to_owned(),
            site.allocator,
            site.context.0,
            names(report, site.stack),
        );
        let row = rows.entry(key).or_default();
        for (sum, measure) in row.iter_mut().zip(Measure::ALL) {
            *sum += measure.of(site);
        }
    }
    rows.retain(|_, row| *row != Row::default());
    rows
}

/// Checks the invariants of every report: all sites are distinct, and totals and survivors agree with the sites.
fn assert_sound(report: &Report) -> Result<(), TestCaseError> {
    let mut keys: Vec<_> = report
        .sites
        .iter()
        .map(|s| (s.thread, s.context, s.stack, s.allocator))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    prop_assert_eq!(keys.len(), report.sites.len());
    let sum = |measure: Measure| {
        let mut sum = Tally::default();
        for site in &report.sites {
            sum += measure.of(site);
        }
        sum
    };
    prop_assert_eq!(report.totals.live, sum(Measure::Live));
    prop_assert_eq!(report.totals.high_water, sum(Measure::HighWater));
    prop_assert_eq!(report.totals.allocated, sum(Measure::Allocated));
    prop_assert!(report.places.is_empty() || report.places.len() == report.frames.len());
    if !report.survivors.starts_ms.is_empty() {
        let mut live = vec![Tally::default(); report.sites.len()];
        for survivor in &report.survivors.list {
            live[survivor.site as usize] += survivor.live;
        }
        let of_sites: Vec<Tally> = report.sites.iter().map(|site| site.live).collect();
        prop_assert_eq!(live, of_sites);
    }
    Ok(())
}

fn log(program: &Program) -> impl Iterator<Item = Result<Event, ReadError>> {
    program.events.iter().copied().map(Ok)
}

/// Returns the events before the reading at `t`.
fn before(events: &[Event], t: u64) -> &[Event] {
    let end = events
        .iter()
        .position(|event| matches!(event, Event::Memory { at_ms, .. } if *at_ms >= t));
    let end = if t == 0 { Some(0) } else { end };
    &events[..end.unwrap_or(events.len())]
}

fn texts() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "", "LEAKY", "src/", "bytes-1", "get|data", "nothing", "ö",
    ])
    .prop_map(str::to_owned)
}

fn filters() -> impl Strategy<Value = Filter> {
    let threads = prop::sample::subsequence(vec!["main", "wörker-1", "102", "0x67", "none"], 0..3);
    let allocators = prop::sample::subsequence(Allocator::ALL.to_vec(), 0..9);
    let packages = prop::sample::subsequence(vec!["bytes", "leaky", "alloc", "libc"], 0..3);
    (threads, allocators, packages, texts()).prop_map(|(threads, allocators, packages, text)| {
        Filter {
            threads: threads.into_iter().map(str::to_owned).collect(),
            allocators,
            packages: packages.into_iter().map(str::to_owned).collect(),
            text,
            contexts: Vec::new(),
        }
    })
}

/// Returns whether a row passes the filter, with the frames of `support::skeleton`.
fn passes(filter: &Filter, (thread, allocator, _, frames): &Key) -> bool {
    let numbers = [
        ("main", "100"),
        ("wörker-1", "101"),
        ("wörker-2", "102"),
        ("wörker-3", "0x67"),
    ];
    let number = numbers.iter().find(|(name, _)| name == thread).unwrap().1;
    let package = |function: &str| match function {
        "leaky::main" | "leaky::run::<[u8; 4]>" | "leaky::get|data" => "leaky",
        "bytes::BytesMut::reserve" => "bytes",
        "alloc::vec::Vec<u8>::with_capacity" => "alloc",
        "libc.so.6+0x1234" => "libc",
        // The frame without names, and the only frame in src/far.rs, in the directory of leaky.
        "far::away" => "leaky",
        _ => "",
    };
    let text = filter.text.to_lowercase();
    (filter.threads.is_empty()
        || filter.threads.contains(thread)
        || filter.threads.iter().any(|t| t == number))
        && (filter.allocators.is_empty() || filter.allocators.contains(allocator))
        && (filter.packages.is_empty()
            || frames
                .iter()
                .any(|(function, ..)| filter.packages.iter().any(|p| p == package(function))))
        && (text.is_empty()
            || frames.iter().any(|(function, file, _)| {
                function.to_lowercase().contains(&text) || file.to_lowercase().contains(&text)
            }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_filter_keeps_the_matching_sites_unchanged(program in program(), filter in filters()) {
        let report = &program.report;
        let part = filtered(report, &filter);
        assert_sound(&part)?;
        let mut expected = rows(report);
        expected.retain(|key, _| passes(&filter, key));
        prop_assert_eq!(rows(&part), expected);
        prop_assert_eq!(&part.timeline, &report.timeline);
        if filter.is_empty() {
            prop_assert_eq!(&part, report);
        }
    }

    #[test]
    fn folding_and_readable_names_lose_nothing(program in program()) {
        let report = &program.report;
        let folds = [Fold::Runtime, Fold::Packages, Fold::AllButOwn];
        let results = folds.map(|fold| folded(report, fold));
        for result in results.iter().chain([&readable(report), &inverted(report)]) {
            assert_sound(result)?;
            prop_assert_eq!(&result.totals, &report.totals);
            prop_assert!(result.sites.len() <= report.sites.len());
        }
    }

    #[test]
    fn stacks_that_are_inverted_twice_are_unchanged(program in program()) {
        let turned = inverted(&program.report);
        let mut expected = BTreeMap::new();
        for ((thread, allocator, context, mut frames), row) in rows(&program.report) {
            frames.reverse();
            expected.insert((thread, allocator, context, frames), row);
        }
        prop_assert_eq!(rows(&turned), expected);
        prop_assert_eq!(rows(&inverted(&turned)), rows(&program.report));
    }

    #[test]
    fn both_sides_of_a_sandwich_have_all_stacks_with_the_function(program in program(), wanted in 0u32..8) {
        let report = &program.report;
        let wanted = report.frames[wanted as usize];
        let found = sandwich(report, |_, frame| frame.function == wanted.function);
        let name = report.strings.get(wanted.function);
        let (mut callees, mut callers) = (BTreeMap::new(), BTreeMap::new());
        for ((thread, allocator, context, frames), row) in rows(report) {
            let Some(at) = frames.iter().position(|(function, ..)| function == name) else {
                continue;
            };
            let below = frames[at..].to_vec();
            let mut above = frames[..=at].to_vec();
            above.reverse();
            for (rows, frames) in [(&mut callees, below), (&mut callers, above)] {
                let sums: &mut Row = rows.entry((thread.clone(), allocator, context, frames)).or_default();
                for (sum, tally) in sums.iter_mut().zip(row) {
                    *sum += tally;
                }
            }
        }
        prop_assert_eq!(rows(&found.callees), callees);
        prop_assert_eq!(rows(&found.callers), callers);
        assert_sound(&found.callees)?;
        assert_sound(&found.callers)?;
    }

    #[test]
    fn the_heap_at_a_moment_is_the_result_of_the_events_before_it(
        program in program_in_contexts(), pick: prop::sample::Index,
    ) {
        let report = &program.report;
        let times: Vec<u64> = report.timeline.iter().map(|m| m.at_ms).chain([0, 1, u64::MAX]).collect();
        let t = *pick.get(&times);
        let then = at_moment(report, log(&program), t, MemoryLimit::NONE).unwrap();
        assert_sound(&then)?;
        let mut model = report.clone();
        sum_up(&mut model, before(&program.events, t));
        prop_assert_eq!(then.totals.live, model.totals.live);
        let kept = |rows: BTreeMap<Key, Row>| -> BTreeMap<Key, [Tally; 2]> {
            rows.into_iter().map(|(key, row)| (key, [row[1], row[2]])).collect()
        };
        prop_assert_eq!(kept(rows(&then)), kept(rows(&model)));
        if let Some(first) = report.timeline.iter().find(|m| m.at_ms == t) {
            prop_assert_eq!(then.totals.live.bytes, if t == 0 { 0 } else { first.heap });
        }
    }

    #[test]
    fn a_range_has_the_blocks_that_were_allocated_in_it_and_are_live_after_it(
        program in program_in_contexts(), picks: [prop::sample::Index; 3],
    ) {
        let report = &program.report;
        let times: Vec<u64> = report.timeline.iter().map(|m| m.at_ms).chain([0, 1, u64::MAX]).collect();
        let [t1, t2, t3] = picks.map(|pick| *pick.get(&times));
        let part = in_range(report, log(&program), t1, t2, t3, MemoryLimit::NONE).unwrap();
        assert_sound(&part)?;
        // Blocks from outside of the range have a call stack of their own.
        let mut model = report.clone();
        let elsewhere = stack(&mut model, &[7; 99]);
        let mut now = 0;
        let marked: Vec<Event> = program.events.iter().map(|event| {
            let mut event = *event;
            match &mut event {
                Event::Memory { at_ms, .. } => now = *at_ms,
                Event::Allocation { stack, .. } if now < t1 || now >= t2 && t2 != u64::MAX => *stack = elsewhere,
                _ => {}
            }
            event
        }).collect();
        sum_up(&mut model, before(&marked, t3));
        let mut expected = rows(&model);
        expected.retain(|(.., frames), row| frames.len() != 99 && row[1].count > 0);
        let mut found = rows(&part);
        found.retain(|_, row| row[1].count > 0);
        prop_assert_eq!(
            found.into_iter().map(|(key, row)| (key, row[1])).collect::<Vec<_>>(),
            expected.into_iter().map(|(key, row)| (key, row[1])).collect::<Vec<_>>()
        );
    }

    #[test]
    fn temporary_blocks_are_those_freed_within_the_threshold(program in program(), threshold in 0usize..9) {
        let counted = temporary(&program.report, log(&program), threshold).unwrap();
        let mut lists: BTreeMap<ThreadId, Vec<(u64, u64)>> = BTreeMap::new();
        let mut sum = Tally::default();
        for event in &program.events {
            match *event {
                Event::Allocation { thread, address, size, .. } => {
                    lists.entry(thread).or_default().push((address, size));
                }
                Event::Deallocation { thread, allocator, address, size } => {
                    let list = lists.entry(thread).or_default();
                    let hit = list.iter().rev().take(threshold + 1).find(|(at, bytes)| {
                        *at == address && (allocator != Allocator::Munmap || *bytes == size)
                    });
                    if let Some(&(_, bytes)) = hit {
                        sum += Tally { count: 1, bytes };
                    }
                }
                Event::Memory { .. } => {}
            }
        }
        let mut found = Tally::default();
        for site in &counted.sites {
            found += site.temporary;
        }
        prop_assert_eq!(found, sum);
        if threshold == 1 {
            prop_assert_eq!(&counted, &program.report);
        }
    }

    #[test]
    fn merged_reports_add_up(programs in prop::collection::vec(program(), 0..4)) {
        let reports: Vec<Report> = programs.into_iter().map(|program| program.report).collect();
        let one = merged(&reports);
        assert_sound(&one)?;
        let mut expected: BTreeMap<Key, Row> = BTreeMap::new();
        for (key, row) in reports.iter().flat_map(rows) {
            for (sum, tally) in expected.entry(key).or_default().iter_mut().zip(row) {
                *sum += tally;
            }
        }
        prop_assert_eq!(rows(&one), expected);
        let events: u64 = reports.iter().map(|report| report.about.events).sum();
        prop_assert_eq!(one.about.events, events);
        prop_assert!(one.timeline.is_sorted_by_key(|moment| moment.at_ms));
        let counts = one.totals.sizes.iter().map(|size| size.count).sum::<u64>();
        prop_assert_eq!(counts, one.totals.allocated.count);
        let mut merger = Merger::default();
        reports.into_iter().for_each(|report| merger.add(report));
        let other = merger.finish();
        assert_sound(&other)?;
        prop_assert_eq!(rows(&other), rows(&one));
        prop_assert_eq!(&other.timeline, &one.timeline);
        prop_assert_eq!(&other.totals, &one.totals);
        prop_assert_eq!(&other.process_memory, &one.process_memory);
        prop_assert_eq!(&other.conditions.notes, &one.conditions.notes);
        prop_assert_eq!(&other.conditions.hooks, &one.conditions.hooks);
    }

    #[test]
    fn a_difference_is_the_growth_from_one_report_to_the_other(old in program(), new in program()) {
        let (old, new) = (old.report, new.report);
        let found = diff(&old, &new);
        let by_stack_names = |report: &Report| {
            let mut sums: BTreeMap<_, Row> = BTreeMap::new();
            for ((_, _, _, frames), row) in rows(report) {
                for (sum, tally) in sums.entry(frames).or_default().iter_mut().zip(row) {
                    *sum += tally;
                }
            }
            sums
        };
        let (before, after) = (by_stack_names(&old), by_stack_names(&new));
        let row = |sums: &Sums| -> Row { std::array::from_fn(|at| Measure::ALL[at].of_sums(sums)) };
        let mut expected: BTreeMap<_, (Row, Row)> = BTreeMap::new();
        for (frames, row) in &before {
            expected.entry(frames.clone()).or_default().0 = *row;
        }
        for (frames, row) in &after {
            expected.entry(frames.clone()).or_default().1 = *row;
        }
        expected.retain(|_, (before, after)| before != after);
        let stacks: BTreeMap<_, _> = found.by_stack.iter()
            .map(|(stack, change)| (names(&found.tables, *stack), (row(&change.before), row(&change.after))))
            .collect();
        prop_assert_eq!(stacks, expected);

        for &measure in Measure::ALL {
            for unit in [Unit::Bytes, Unit::Count] {
                let growth = found.total.growth(measure, unit);
                let sum = |report: &Report| i128::from(unit.of(measure.of_sums(&by_stack(report)[0])));
                prop_assert_eq!(growth, sum(&new) - sum(&old));
                prop_assert_eq!(growth, sum(&found.grown()) - sum(&found.shrunk()));
                let own: i128 = found.by_own_site.iter().map(|(_, c)| c.growth(measure, unit)).sum();
                prop_assert_eq!(growth, own);
                let empty = found.by_stack.iter().find(|(stack, _)| *stack == StackId::EMPTY);
                let roots: i128 = found.tree().iter().filter(|node| node.depth == 1)
                    .map(|node| node.total.growth(measure, unit)).sum();
                prop_assert_eq!(growth, roots + empty.map_or(0, |(_, c)| c.growth(measure, unit)));
            }
        }
        assert_sound(&found.grown())?;
        assert_sound(&found.shrunk())?;
        prop_assert!(diff(&old, &old).by_stack.is_empty());
        prop_assert!(diff(&new, &new).tree().is_empty());
        prop_assert!(CallTree::of(&diff(&old, &old).grown()).nodes.is_empty());
    }
}
