//! Tests of contexts that make room for others.

use super::super::Tables;
use super::model::Model;
use super::{CLOCK, check, event, event_of, feed, in_time, tally, with_log};
use crate::capture::event::{Event, Kind, NodeId};
use heapray_report::model::Tally;
use proptest::prelude::*;

/// Counts what was done in a context under another, if it holds nothing.
fn retire(tables: &mut Tables, model: &mut Model, context: u32, other: u32) {
    if context != other && model.holds_nothing(context) {
        tables.retire(&[(context, other)].into_iter().collect());
        model.retire(context, other);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_was_done_in_a_retired_context_is_counted_under_another(
        parts in prop::collection::vec(
            (prop::collection::vec(event(), 0..50), 1u32..4, 1u32..4),
            1..6,
        ),
        logs in any::<bool>(),
        batch in any::<bool>(),
    ) {
        let (mut tables, mut model) = (Tables::new(CLOCK), Model::default());
        if logs {
            tables = with_log();
        }
        let ends = parts.iter().scan(0, |end, part| {
            *end += part.0.len();
            Some((*end, part.1, part.2))
        });
        let events: Vec<Event> = parts.iter().flat_map(|part| &part.0).copied().collect();
        let mut rest = &in_time(events)[..];
        for (end, context, other) in ends.collect::<Vec<_>>() {
            // There are more events than before: the starts of threads.
            let (now, later) = rest.split_at(end.min(rest.len()));
            feed(&mut tables, &mut model, now, batch);
            retire(&mut tables, &mut model, context, other);
            check(&mut tables, &model)?;
            rest = later;
        }
        feed(&mut tables, &mut model, rest, batch);
        check(&mut tables, &model)?;
    }
}

#[test]
fn contexts_that_come_and_go_take_no_more_and_more_memory() {
    let mut tables = Tables::new(CLOCK);
    let mut after_a_while = 0;
    for context in 10..3_010_u32 {
        let change = |context| event_of(1, Kind::Context, 0, u64::from(context));
        tables.apply(&change(context));
        for node in 0..4 {
            let block = |kind| Event {
                node: NodeId(if kind == Kind::Free { 0 } else { node }),
                ..event_of(1, kind, 64, 100)
            };
            tables.apply(&block(Kind::Malloc));
            tables.apply(&block(Kind::Free));
        }
        tables.apply(&change(0));
        if context % 100 == 9 {
            tables.retire(
                &(context - 99..=context)
                    .map(|context| (context, 1))
                    .collect(),
            );
        }
        if context == 1_009 {
            after_a_while = tables.memory_bytes();
        }
    }
    assert!(tables.memory_bytes() <= after_a_while);
    let export = tables.export();
    let all: Vec<Tally> = export
        .stacks
        .sites
        .iter()
        .map(|site| site.allocated)
        .collect();
    assert_eq!(all, [tally(3000, 300_000); 4]);
}
