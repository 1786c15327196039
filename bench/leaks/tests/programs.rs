//! The programs as a collection: their names, their number, and that a program is the same each time.

use leak_programs::{Cause, Program, Site, Traffic};
use std::collections::{HashMap, HashSet};

#[test]
fn names_are_unique_and_in_kebab_case_and_lead_back_to_the_program() {
    let programs = Program::all();
    assert!((90..=130).contains(&programs.len()), "{}", programs.len());
    let names: HashSet<&str> = programs
        .iter()
        .map(|program| program.name.as_str())
        .collect();
    assert_eq!(names.len(), programs.len());
    for program in &programs {
        assert!(
            program
                .name
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '-'),
            "{}",
            program.name
        );
        assert_eq!(Program::named(&program.name).as_ref(), Some(program));
    }
    assert_eq!(Program::named("steady-nothing-at-all"), None);
}

#[test]
fn each_traffic_has_four_leaks_and_three_harmless_causes_and_each_cause_three_kinds_of_traffic() {
    let mut by_traffic: HashMap<Traffic, [u32; 2]> = HashMap::new();
    let mut by_cause: HashMap<Cause, u32> = HashMap::new();
    for program in Program::all() {
        by_traffic.entry(program.traffic).or_default()[usize::from(program.leaks().is_none())] += 1;
        *by_cause.entry(program.cause).or_default() += 1;
    }
    for traffic in Traffic::ALL {
        let [leaking, harmless] = by_traffic[&traffic];
        assert!(
            leaking >= 4 && harmless >= 3,
            "{traffic:?}: {leaking} leaking, {harmless} harmless"
        );
    }
    for cause in Cause::ALL {
        assert!(by_cause[&cause] >= 3, "{cause:?}: {}", by_cause[&cause]);
    }
    assert_eq!(
        Cause::ALL
            .iter()
            .filter(|cause| cause.leaks().is_some())
            .count(),
        14
    );
}

#[test]
fn a_seed_gives_the_same_steps_again_and_another_seed_gives_others() {
    for program in Program::all() {
        assert!(program.steps().eq(program.steps()), "{}", program.name);
        let other = Program {
            seed: program.seed + 1_000,
            ..program.clone()
        };
        assert!(!program.steps().eq(other.steps()), "{}", program.name);
    }
}

#[test]
fn the_cause_does_not_change_the_requests_above_it() {
    let requests = |cause| {
        let program = Program {
            name: String::new(),
            traffic: Traffic::Steady,
            cause,
            seed: 7,
        };
        let is_request = |step: &leak_programs::Step| {
            matches!(
                step.operation,
                leak_programs::Operation::Allocate {
                    site: Site::RequestBody,
                    ..
                }
            )
        };
        program
            .steps()
            .filter(is_request)
            .map(|step| step.at_ms)
            .collect::<Vec<u64>>()
    };
    assert_eq!(requests(Cause::Nothing), requests(Cause::EveryRequest));
}
