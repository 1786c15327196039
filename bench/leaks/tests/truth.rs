//! What a program says of itself is true: the site that leaks does, and no other site grows.

mod replay;

use leak_programs::{Cause, Operation, Program, Site};
use replay::Replay;
use std::sync::LazyLock;

/// The programs with their replays: with their own seeds, and with others.
static REPLAYS: LazyLock<Vec<(Program, Replay)>> = LazyLock::new(|| {
    let other_seed = |program: Program| Program {
        seed: program.seed + 1_000,
        ..program
    };
    let programs = Program::all()
        .into_iter()
        .chain(Program::all().into_iter().map(other_seed));
    programs
        .map(|program| {
            let replay = Replay::of(&program);
            (program, replay)
        })
        .collect()
});

/// Returns how long a block lives if the site's live bytes follow the traffic. `None`: they are bounded.
fn life_ms(program: &Program, site: Site) -> Option<f64> {
    match (site, program.cause) {
        (Site::RequestBody | Site::ResponseBuffer | Site::LogLine, _) => Some(40.0),
        (Site::Session, Cause::SessionsFollowTraffic) => Some(6_000.0),
        (Site::Session, _) => Some(3_000.0),
        (Site::Suspect, Cause::TtlCache) => Some(5_000.0),
        (Site::Suspect, Cause::Queue) => Some(4_000.0),
        _ => None,
    }
}

/// Returns the most bytes that an innocent site may have live after 55 % of the work.
fn most_expected(program: &Program, replay: &Replay, site: Site) -> u64 {
    let before = replay.most[0][site as usize];
    match life_ms(program, site) {
        None => before + before / 50 + 1_024,
        // A few blocks more may be in flight by chance.
        Some(life_ms) => (before as f64 * replay.growth_by_traffic(life_ms) * 1.25) as u64 + 65_536,
    }
}

#[test]
fn the_steps_are_possible_and_as_many_as_expected() {
    for (program, replay) in REPLAYS.iter() {
        assert!(
            (40_000..300_000).contains(&replay.steps),
            "{}: {}",
            program.name,
            replay.steps
        );
    }
}

#[test]
fn an_innocent_site_never_grows_after_55_percent_of_the_work_but_with_the_traffic() {
    for (program, replay) in REPLAYS.iter() {
        let guilty = [program.leaks(), program.also_grows()];
        for site in Site::ALL
            .into_iter()
            .filter(|site| !guilty.contains(&Some(*site)))
        {
            let (after, expected) = (
                replay.most[1][site as usize],
                most_expected(program, replay, site),
            );
            assert!(
                after <= expected,
                "{}: {site:?} has {after} bytes live, not {expected}",
                program.name
            );
        }
    }
}

/// Returns how many blocks of a site live at the end, eight times as long as such blocks do on average, or longer.
fn old_blocks(program: &Program, replay: &Replay, site: Site) -> usize {
    // One request in 20 is slow, and takes 1.5 s at most.
    let Some(old_ms) = life_ms(program, site).map(|life_ms| (life_ms as u32 * 8).max(1_600)) else {
        return 0;
    };
    replay.ages_ms[site as usize]
        .iter()
        .filter(|&&age_ms| age_ms > old_ms)
        .count()
}

#[test]
fn of_a_site_that_follows_the_traffic_no_more_than_chance_lives_long_unless_it_leaks() {
    for (program, replay) in REPLAYS.iter() {
        for site in Site::ALL {
            let (old, leaks) = (
                old_blocks(program, replay, site),
                program.leaks() == Some(site),
            );
            let is_leak_by_age = leaks && life_ms(program, site).is_some();
            assert_eq!(
                old > 5,
                is_leak_by_age,
                "{}: {site:?} has {old} old blocks",
                program.name
            );
        }
    }
}

#[test]
fn a_site_that_leaks_would_not_pass_as_an_innocent_one() {
    for (program, replay) in REPLAYS.iter() {
        let Some(site) = program.leaks() else {
            continue;
        };
        // Too little among too many live bytes: only the lifetimes of the blocks show these leaks.
        if matches!(
            program.cause,
            Cause::UnclosedSessions | Cause::SlowUnderChurnAndTable
        ) {
            continue;
        }
        let (after, expected) = (
            replay.most[1][site as usize],
            most_expected(program, replay, site),
        );
        assert!(
            after > expected,
            "{}: {site:?} has {after} bytes live",
            program.name
        );
    }
}

#[test]
fn a_site_that_leaks_keeps_bytes_of_every_part_of_the_work() {
    for (program, replay) in REPLAYS.iter() {
        let Some(site) = program.leaks() else {
            continue;
        };
        let [first, middle, last] = replay.kept.map(|kept| kept[site as usize]);
        let grown = replay.live[2][site as usize].saturating_sub(replay.live[0][site as usize]);
        let figures = format!(
            "{}: kept {first} {middle} {last}, grown by {grown}",
            program.name
        );
        if matches!(program.cause, Cause::GrowingVector | Cause::RehashingMap) {
            // One block, and what it keeps is not seen from outside.
            assert!(grown * 2 > last, "{figures}");
            continue;
        }
        assert!(middle * 8 > last && last * 8 > middle, "{figures}");
        assert!(
            first > 0 || program.cause == Cause::FeatureFlag,
            "{figures}"
        );
        // Where sessions leak, fewer live sessions may outweigh the leak.
        assert!(
            grown * 2 > middle + last || program.cause == Cause::UnclosedSessions,
            "{figures}"
        );
    }
}

#[test]
fn a_slow_leak_is_at_most_a_hundredth_of_the_live_bytes() {
    let slow = [Cause::SlowUnderChurn, Cause::SlowUnderChurnAndTable];
    for (program, replay) in REPLAYS
        .iter()
        .filter(|(program, _)| slow.contains(&program.cause))
    {
        let kept: u64 = replay.kept[1..]
            .iter()
            .map(|kept| kept[Site::Suspect as usize])
            .sum();
        let total: u64 = replay.live[2].iter().sum();
        // Two thirds of the leak: the first third has the table too.
        assert!(
            kept * 3 / 2 <= total / 100,
            "{}: {kept} of {total}",
            program.name
        );
    }
}

#[test]
fn a_container_that_grows_for_ever_doubles_five_times_and_once_near_the_end() {
    let growing = [Cause::GrowingVector, Cause::RehashingMap];
    for (program, _) in REPLAYS
        .iter()
        .filter(|(program, _)| growing.contains(&program.cause))
    {
        let (mut requests, mut doublings_at) = (0, Vec::new());
        for step in program.steps() {
            match step.operation {
                Operation::Allocate {
                    site: Site::RequestBody,
                    ..
                } => requests += 1,
                Operation::Allocate {
                    site: Site::SuspectIndex,
                    ..
                }
                | Operation::Resize {
                    site: Site::SuspectIndex,
                    ..
                } => doublings_at.push(requests),
                _ => {}
            }
        }
        // The first is the first allocation.
        let last = doublings_at.last().copied().unwrap_or(0) as f64 / f64::from(requests);
        assert!(
            doublings_at.len() > 6,
            "{}: {doublings_at:?} of {requests}",
            program.name
        );
        assert!((0.75..0.95).contains(&last), "{}: {last}", program.name);
    }
}
