//! Tests of profiles with a limit: nothing is lost, and the limits hold.

use proptest::prelude::*;

use super::super::{MOST_BYTES, MOST_SAMPLES};
use super::{
    Allocator, Labels, Message, Options, Profile, Report, ThreadId, add, add_of, comments, decode,
    decode_with, report, text,
};

const OTHERS: &str = "other call sites";

fn limited(limit: u32) -> Options {
    Options {
        limit,
        ..Options::default()
    }
}

/// Returns the functions of each sample, leaf first and joined by blanks, with its live objects.
fn stacks(profile: &Profile) -> Vec<(String, i64)> {
    let name = |&id: &u64| {
        let line = profile.location[id as usize - 1].line[0];
        text(
            profile,
            profile.function[line.function_id as usize - 1].name,
        )
    };
    let stack = |ids: &[u64]| ids.iter().map(name).collect::<Vec<_>>().join(" < ");
    let samples = profile.sample.iter();
    samples
        .map(|sample| (stack(&sample.location_id), sample.value[2]))
        .collect()
}

/// Returns the sum of each sample type.
fn sums(profile: &Profile) -> Vec<i64> {
    let mut sums = vec![0; profile.sample_type.len()];
    for sample in &profile.sample {
        for (sum, value) in sums.iter_mut().zip(&sample.value) {
            *sum += value;
        }
    }
    sums
}

fn folded_comment(profile: &Profile) -> Option<&str> {
    let mut comments = comments(profile).into_iter();
    comments.find(|comment| comment.contains(OTHERS))
}

/// Makes a report of `roots` functions, each of which calls all functions of the report.
fn wide(roots: u32, leaves: u32) -> Report {
    let mut report = report();
    report.places.clear();
    report.frames.clear();
    for root in 0..roots {
        report.add_frame(&format!("root_{root}"), "src/main.rs", root);
    }
    for leaf in 0..leaves {
        report.add_frame(&format!("leaf_{leaf}"), "src/leaf.rs", leaf);
    }
    for root in 0..roots {
        for leaf in 0..leaves {
            add(&mut report, &[root, roots + leaf], u64::from(1 + leaf));
        }
    }
    report
}

#[test]
fn the_smaller_samples_are_folded_by_root() {
    let report = wide(2, 5);
    let profile = decode_with(&report, &limited(6), MOST_BYTES);
    let expected = [
        ("leaf_3 < root_0", 4),
        ("leaf_4 < root_0", 5),
        ("leaf_3 < root_1", 4),
        ("leaf_4 < root_1", 5),
        ("other call sites < root_0", 1 + 2 + 3),
        ("other call sites < root_1", 1 + 2 + 3),
    ];
    let expected = expected.map(|(stack, live)| (stack.to_owned(), live));
    assert_eq!(stacks(&profile), expected);
    assert_eq!(
        folded_comment(&profile),
        Some("6 of 10 call sites are summed up in \"other call sites\": limit=0 writes them all")
    );
    for limit in [0, 10] {
        let all = decode_with(&report, &limited(limit), MOST_BYTES);
        assert_eq!((all.sample.len(), folded_comment(&all)), (10, None));
    }
}

#[test]
fn where_most_samples_would_be_others_there_is_a_single_one() {
    let report = wide(5, 2);
    let profile = decode_with(&report, &limited(8), MOST_BYTES);
    let stacks = stacks(&profile);
    assert_eq!(stacks.len(), 8);
    assert_eq!(stacks[7], (OTHERS.to_owned(), 1 + 1 + 1));
    let one = decode_with(&report, &limited(1), MOST_BYTES);
    assert_eq!(one.sample.len(), 1);
    assert_eq!(sums(&one), sums(&profile));
}

#[test]
fn a_sample_that_matters_in_one_type_is_kept() {
    let mut report = wide(1, 10);
    // Freed long ago, but as much as all others together.
    let site = &mut report.sites[0];
    site.allocated.bytes = 1000;
    (site.live, site.high_water) = Default::default();
    let profile = decode_with(&report, &limited(3), MOST_BYTES);
    let stacks = stacks(&profile);
    let names: Vec<&str> = stacks.iter().map(|(stack, _)| stack.as_str()).collect();
    let expected = [
        "leaf_0 < root_0",
        "leaf_9 < root_0",
        "other call sites < root_0",
    ];
    assert_eq!(names, expected);
}

#[test]
fn threads_that_are_labels_are_not_folded_into_each_other() {
    let mut report = wide(1, 4);
    for site in [1, 3] {
        report.sites[site].thread = ThreadId(1);
    }
    let options = Options {
        labels: Labels {
            thread: true,
            ..Labels::NONE
        },
        limit: 4,
        ..Options::default()
    };
    report.sites.extend_from_within(..);
    add(&mut report, &[0], 100);
    let profile = decode_with(&report, &options, MOST_BYTES);
    let stacks = stacks(&profile);
    assert_eq!(stacks.len(), 4);
    let threads = profile.sample.iter();
    let threads: Vec<&str> = threads.map(|s| text(&profile, s.label[0].str)).collect();
    assert_eq!(threads[2..], ["worker", "unknown thread"]);
    let others = [(2 * (1 + 3)), (2 * 2)].map(|live| ("other call sites < root_0".into(), live));
    assert_eq!(stacks[2..], others);
}

#[test]
fn a_large_report_fits_into_what_pyroscope_takes() {
    let mut report = report();
    report.places.clear();
    report.frames.clear();
    // 20,000 call sites, 30 frames deep, with functions and files of their own.
    let long = "alloc::collections::btree::map::BTreeMap<K,V,A>::insert_".repeat(5);
    for n in 0..20_000 {
        report.add_frame(&format!("{long}{n}"), &format!("src/{n}.rs"), 7);
    }
    for n in 0..20_000 {
        let mut path: Vec<u32> = (0..29).map(|depth| n / 100 + depth).collect();
        path.push(n);
        add(&mut report, &path, u64::from(20_000 - n));
    }
    let profile = decode(&report);
    let bytes = profile.encoded_len();
    // What fits is written, but for a few percent.
    assert!(
        (MOST_BYTES / 100 * 90..=MOST_BYTES).contains(&bytes),
        "{bytes}"
    );
    assert!(profile.sample.len() <= MOST_SAMPLES as usize);
    assert!(folded_comment(&profile).is_some());
    let all = decode_with(&report, &limited(0), MOST_BYTES);
    assert!(all.encoded_len() > MOST_BYTES && all.sample.len() == 20_000);
    assert_eq!(sums(&profile), sums(&all));
}

#[test]
fn by_default_there_are_at_most_16_000_samples() {
    let report = wide(2, 10_000);
    let profile = decode(&report);
    assert_eq!(profile.sample.len(), 16_000);
    assert_eq!(
        sums(&profile),
        sums(&decode_with(&report, &limited(0), MOST_BYTES))
    );
}

type Place = (Vec<u32>, u64, u32, usize);

proptest! {
    #[test]
    fn no_sum_changes_and_the_limits_hold(
        sites in prop::collection::vec(
            (prop::collection::vec(0u32..4, 0..6), 0u64..1000, 0u32..4, 0usize..3),
            0..60,
        ),
        limit in 0u32..30,
        labels in any::<[bool; 2]>(),
        most_bytes in prop_oneof![Just(MOST_BYTES), 0usize..3000],
    ) {
        let mut report = report();
        let sites: Vec<Place> = sites;
        for (path, live, thread, allocator) in &sites {
            let allocator = [Allocator::Malloc, Allocator::Calloc, Allocator::Mmap][*allocator];
            add_of(&mut report, path, *live, ThreadId(*thread), allocator);
        }
        let [thread, allocator] = labels;
        let all = Options { labels: Labels { thread, allocator, ..Labels::NONE }, limit: 0, ..Options::default() };
        let whole = decode_with(&report, &all, most_bytes);
        prop_assert_eq!(folded_comment(&whole), None);
        let options = Options { limit, ..all };
        let part = decode_with(&report, &options, most_bytes);
        prop_assert_eq!(sums(&part), sums(&whole));
        if limit == 0 {
            prop_assert_eq!(&part, &whole);
        } else {
            prop_assert!(part.sample.len() <= limit as usize);
            let is_smallest = part.sample.len() <= 1 && part.location.len() <= 1;
            prop_assert!(part.encoded_len() <= most_bytes || is_smallest);
        }
        let is_whole = part.sample.len() == whole.sample.len();
        prop_assert!(is_whole || folded_comment(&part).is_some());
    }
}
