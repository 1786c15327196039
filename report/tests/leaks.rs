//! Tests the ranking of lines that leak: against programs of known truth, and in cases that are easily judged wrong.
#![allow(clippy::unwrap_used)]

#[path = "support/session.rs"]
mod session;

use heapray_report::Report;
use heapray_report::memray::{Version, read, write_aggregated, write_all};
use heapray_report::views::{
    Confidence, Filter, Fold, Leaks, filtered, folded, leaks, merged, readable,
};
use leak_programs::Program;
use session::{Session, accused, function};

/// Returns each program for which `wanted` holds with three seeds, or as many as `LEAK_SEEDS` says.
fn programs(wanted: fn(&Program) -> bool) -> impl Iterator<Item = Program> {
    let seeds = std::env::var("LEAK_SEEDS").map_or(3, |seeds| seeds.parse().unwrap());
    let all = Program::all().into_iter().filter(wanted);
    all.flat_map(move |program| {
        (0..seeds).map(move |number: u64| Program {
            seed: program.seed + number * 7919,
            ..program.clone()
        })
    })
}

fn report_of(program: &Program) -> Report {
    Session::new().run(program).finish()
}

fn named(name: &str) -> Program {
    Program::named(name).unwrap()
}

#[test]
fn the_line_that_leaks_is_named_first_whatever_the_traffic_does() {
    let (mut right, mut wrong) = (0, Vec::new());
    for program in programs(|program| program.leaks().is_some()) {
        let report = report_of(&program);
        let list = accused(&report);
        let truth = [program.leaks(), program.also_grows()];
        let is_true = |name: &String| truth.iter().flatten().any(|site| site.name() == name);
        if list.first().is_some_and(is_true) {
            right += 1;
        } else {
            wrong.push(format!("{} {}: {list:?}", program.name, program.seed));
        }
    }
    println!("right: {right}, wrong: {wrong:?}");
    assert!(right > 200, "{right} programs");
    assert!(wrong.len() * 20 <= right + wrong.len(), "{wrong:#?}");
}

#[test]
fn nothing_is_accused_in_a_program_that_does_not_leak() {
    let mut runs = 0;
    for program in programs(|program| program.leaks().is_none()) {
        let list = accused(&report_of(&program));
        assert!(
            list.is_empty(),
            "{} {}: {list:?}",
            program.name,
            program.seed
        );
        runs += 1;
    }
    assert!(runs > 100, "{runs}");
}

#[test]
fn leaks_are_ordered_by_confidence_and_then_by_growth() {
    let mut session = Session::new();
    session.serve_until(20_000, |session, now| {
        session.allocate("shop::large", 200);
        session.allocate("shop::larger", 400);
        if now % 2000 == 1000 {
            session.allocate("shop::largest_and_seldom", 90_000);
        }
        if now % 1000 == 0 {
            session.allocate("shop::little", 500);
        }
    });
    let report = session.finish();
    let ranked = leaks(&report);
    let list: Vec<_> = ranked
        .list()
        .iter()
        .map(|leak| (function(&report, leak), leak.confidence))
        .collect();
    assert_eq!(
        list,
        [
            ("shop::larger", Confidence::High),
            ("shop::large", Confidence::High),
            ("shop::largest_and_seldom", Confidence::Medium),
            ("shop::little", Confidence::Low),
        ]
    );
    let growth = ranked.list()[0].growth_bytes_per_hour;
    // 400 bytes each 10 ms.
    assert!((140_000_000..148_000_000).contains(&growth), "{growth}");
    let survival = ranked.list()[0].survival.unwrap();
    assert!((0.99..=1.0).contains(&survival), "{survival}");
    assert_eq!(ranked.list()[0].live.count, 2000);
}

#[test]
fn a_table_that_the_line_made_in_a_heavy_start_up_hides_no_leak() {
    let mut session = Session::new();
    // A third of all bytes, at one time: more than the first tenth of the work, which is not looked at.
    for _ in 0..100 {
        session.allocate("shop::entry", 10_000);
    }
    session.serve_until(20_000, |session, now| {
        if now % 100 == 0 {
            session.allocate("shop::entry", 100);
        }
    });
    assert_eq!(accused(&session.finish()), ["shop::entry"]);
}

#[test]
fn a_report_without_times_says_that_it_cannot_be_told() {
    let report = report_of(&named("steady-one-of-hundred"));
    let mut packed = Vec::new();
    write_aggregated(&report, Version::V13, &mut packed).unwrap();
    // The second LZ4 frame is what memray's own captures do not have.
    let mut plain = Vec::new();
    std::io::Read::read_to_end(
        &mut lz4_flex::frame::FrameDecoder::new(&packed[..]),
        &mut plain,
    )
    .unwrap();
    let aggregated = read(&plain[..]).unwrap();
    assert!(aggregated.complete);
    let Leaks::Unknown(reason) = leaks(&aggregated.report) else {
        panic!("nothing can be known");
    };
    assert!(
        reason.contains("does not tell when memory was allocated"),
        "{reason}"
    );
    assert!(leaks(&aggregated.report).list().is_empty());
}

#[test]
fn a_session_that_is_too_short_says_so() {
    let mut session = Session::new();
    session.serve_until(50, |session, _| {
        session.allocate("shop::leak", 100_000);
    });
    let Leaks::Unknown(reason) = leaks(&session.finish()) else {
        panic!("too short");
    };
    assert!(reason.contains("too short"), "{reason}");
}

#[test]
fn a_full_cache_whose_entries_are_replaced_does_not_leak() {
    for (entries, turns) in [(300, 1), (300, 5), (30, 60)] {
        let mut cache = std::collections::VecDeque::new();
        let mut session = Session::new();
        // It is full after a part of the work; each entry is replaced `turns` times.
        let requests = entries * (turns + 1);
        session.serve_until(requests * 10, |session, _| {
            cache.push_back(session.allocate("shop::cache", 2000));
            if cache.len() > entries as usize {
                session.free(cache.pop_front().unwrap());
            }
        });
        assert_eq!(
            accused(&session.finish()),
            [""; 0],
            "{entries} entries, {turns} turns"
        );
    }
}

#[test]
fn a_full_cache_of_which_a_part_was_replaced_does_not_leak() {
    // After two fifths of the work it is full. From then on, one request of so many replaces the oldest entry.
    for seldom in [2, 3] {
        let mut cache = std::collections::VecDeque::new();
        let mut session = Session::new();
        session.serve_until(10_000, |session, now| {
            if now > 4_000 && now / 10 % seldom > 0 {
                return;
            }
            cache.push_back(session.allocate("shop::cache", 2000));
            if now > 4_000 {
                session.free(cache.pop_front().unwrap());
            }
        });
        assert_eq!(accused(&session.finish()), [""; 0], "one of {seldom}");
    }
}

#[test]
fn a_vector_that_doubles_until_the_end_leaks_and_one_that_stopped_does_not() {
    for (grows_until, expected) in [(40_000, &["shop::items"][..]), (2_000, &[])] {
        let (mut items, mut capacity) = (0, 0);
        let mut block = None;
        let mut session = Session::new();
        session.serve_until(40_000, |session, now| {
            items += u64::from(now < grows_until);
            if items * 24 > capacity {
                capacity = (2 * capacity).max(96);
                let moved = session.allocate("shop::items", capacity);
                if let Some(old) = block.replace(moved) {
                    session.free(old);
                }
            }
        });
        assert_eq!(accused(&session.finish()), expected, "until {grows_until}");
    }
}

#[test]
fn marks_do_not_change_the_ranking() {
    let report = report_of(&named("bursts-error-clumps"));
    let mut marked = report.clone();
    // A mark in the middle of each generation, with half of its blocks before it.
    let starts = &report.survivors.starts_ms;
    let ends = starts.iter().skip(1).chain([&60_000]);
    marked.survivors.starts_ms = starts
        .iter()
        .zip(ends)
        .flat_map(|(&start, &end)| [start, start + (end - start) / 2])
        .collect();
    marked.survivors.list = report
        .survivors
        .list
        .iter()
        .flat_map(|survivor| {
            let mut halves = [*survivor; 2];
            halves[0].generation *= 2;
            halves[1].generation = halves[0].generation + 1;
            halves[0].live.bytes -= survivor.live.bytes / 2;
            halves[1].live.bytes /= 2;
            halves[0].live.count -= survivor.live.count / 2;
            halves[1].live.count /= 2;
            halves
        })
        .collect();
    assert_eq!(accused(&marked), accused(&report));
    assert_eq!(leaks(&marked), leaks(&report));
}

#[test]
fn an_idle_tail_of_ten_times_the_load_hides_no_leak_and_makes_none() {
    for leaks in [true, false] {
        let mut sessions = std::collections::VecDeque::new();
        let mut session = Session::new();
        session.serve_until(10_000, |session, now| {
            sessions.push_back(session.allocate("shop::session", 3000));
            if sessions.len() > 50 {
                session.free(sessions.pop_front().unwrap());
            }
            if leaks && now % 100 == 0 {
                session.allocate("shop::forgotten", 512);
            }
        });
        // A heartbeat, and nothing else.
        for beat in 1..=100 {
            session.advance_to(10_000 + beat * 1000);
            let block = session.allocate("shop::heartbeat", 100);
            session.free(block);
        }
        let expected: &[&str] = if leaks { &["shop::forgotten"] } else { &[] };
        assert_eq!(accused(&session.finish()), expected);
    }
}

#[test]
fn the_ranking_is_the_same_after_the_report_went_through_its_file() {
    for name in [
        "steady-one-of-hundred",
        "bursts-rehashing-map",
        "idle-head-unbounded-cache",
        "ramp-up-lru-cache",
    ] {
        let (report, events) = Session::with_events()
            .run(&named(name))
            .finish_with_events();
        let (mut aggregated, mut all) = (Vec::new(), Vec::new());
        write_aggregated(&report, Version::V13, &mut aggregated).unwrap();
        write_all(&report, events.into_iter().map(Ok), Version::V13, &mut all).unwrap();
        // What memray would have written: the events alone.
        let mut events_alone = Vec::new();
        std::io::Read::read_to_end(
            &mut lz4_flex::frame::FrameDecoder::new(&all[..]),
            &mut events_alone,
        )
        .unwrap();
        let before = leaks(&report);
        for file in [aggregated, all, events_alone] {
            let back = read(&file[..]).unwrap();
            assert!(back.complete, "{name}");
            let after = leaks(&back.report);
            assert_eq!(accused(&back.report), accused(&report), "{name}");
            for (before, after) in before.list().iter().zip(after.list()) {
                assert_eq!(
                    (
                        after.live,
                        after.confidence,
                        &after.evidence,
                        &after.against
                    ),
                    (
                        before.live,
                        before.confidence,
                        &before.evidence,
                        &before.against
                    ),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn a_part_of_a_report_and_a_sum_of_reports_name_the_same_line() {
    for name in [
        "idle-head-every-request",
        "day-and-night-slow-under-churn",
        "bursts-unclosed-sessions",
    ] {
        let program = named(name);
        let report = report_of(&program);
        let first = &accused(&report)[0];
        assert_eq!(first, program.leaks().unwrap().name());

        let replica = report_of(&Program {
            seed: program.seed + 7919,
            ..program.clone()
        });
        assert_eq!(&accused(&merged(&[report.clone(), replica]))[0], first);
        for fold in [Fold::Runtime, Fold::Packages, Fold::AllButOwn] {
            assert_eq!(&accused(&folded(&report, fold))[0], first, "{fold:?}");
        }
        assert_eq!(&accused(&readable(&report))[0], first);
        let text = first.rsplit("::").next().unwrap().to_owned();
        let part = filtered(
            &report,
            &Filter {
                text,
                ..Filter::default()
            },
        );
        assert_eq!(&accused(&part)[0], first);
    }
}

#[test]
fn a_capture_with_more_moments_than_a_session_has_is_refused() {
    let mut report = report_of(&named("few-requests-nothing"));
    let moment = report.history.moments[0];
    for (moments, complete) in [(256, true), (257, false)] {
        report.history.moments.resize(moments, moment);
        let mut file = Vec::new();
        write_aggregated(&report, Version::V13, &mut file).unwrap();
        let back = read(&file[..]);
        assert_eq!(back.is_ok_and(|back| back.complete), complete, "{moments}");
    }
}
