//! Tests that names are made plain and short as in `names.json`. The page's script is tested with the same file.
#![allow(clippy::unwrap_used)]

use heapray_report::views::{
    LONGEST_SHOWN, brief_name, is_of_any_type, is_plumbing, logical_name, plain_name, short_name,
    trait_name,
};
use proptest::prelude::*;
use serde_json::Value;

#[test]
fn every_case_of_the_shared_table_holds() {
    let table: Value = serde_json::from_str(include_str!("names.json")).unwrap();
    let cases = table["cases"].as_array().unwrap();
    assert!(cases.len() > 40);
    for case in cases {
        let raw = case["raw"].as_str().unwrap();
        assert_eq!(case["plain"], *plain_name(raw), "{raw}");
        assert_eq!(case["brief"], brief_name(raw), "{raw}");
        assert_eq!(case["logical"], logical_name(raw), "{raw}");
        assert_eq!(case["plumbing"], is_plumbing(raw), "{raw}");
    }
}

#[test]
fn a_name_with_very_deep_nesting_stays_as_it_is() {
    let name = format!("{}x{}::f", "<".repeat(100_000), ">".repeat(100_000));
    assert_eq!(plain_name(&name), name);
}

#[test]
fn hostile_names_take_time_in_proportion_to_their_length() {
    // If each character took a pass over 64 KiB, the test would take minutes.
    for part in [
        "\"",
        "\"\\",
        "'",
        "<\"",
        "operator<",
        "<a as ",
        "<impl ",
        "[a]",
        "{{",
        "(<",
        "o",
    ] {
        let name = part.repeat((64 << 10) / part.len());
        let _ = (plain_name(&name), trait_name(&name), brief_name(&name));
    }
}

#[test]
fn python_names_stay() {
    for name in ["<module>", "<listcomp>", "Cart.add"] {
        assert_eq!(logical_name(name), name);
    }
}

/// Parts of names.
const PARTS: &[&str] = &[
    "<",
    ">",
    "::",
    " as ",
    "impl ",
    " for ",
    "{closure#0}",
    "{{closure}}",
    "{shim:vtable#0}",
    "T",
    "core::fmt",
    "[u8; 4]",
    "[1a2b]",
    "(",
    ")",
    "()",
    "&",
    "'a ",
    "'x'",
    "\"",
    "dyn ",
    " + ",
    "->",
    "operator<",
    "operator",
    "operator ",
    "<<",
    ", ",
    "fn(u8)",
    "{",
    "}",
    "*mut ",
    "::h0123456789abcdef",
    "u8",
    "ß",
    ";",
    ".",
    "</",
    "for<'a> ",
];

proptest! {
    #[test]
    fn any_name_can_be_shortened(
        name in "[<>:{}&*() a-zß'-]{0,40}",
        parts in prop::collection::vec(prop::sample::select(PARTS), 0..14),
        any: String,
        bytes: Vec<u8>,
    ) {
        let bytes = String::from_utf8_lossy(&bytes).into_owned();
        for name in [name, parts.concat(), any, bytes] {
            let plain = plain_name(&name).into_owned();
            prop_assert_eq!(&plain, &*plain_name(&plain), "a plain name stays");
            let short = short_name(&name).into_owned();
            prop_assert_eq!(&short, &*short_name(&short));
            prop_assert!(short.chars().count() <= LONGEST_SHOWN);
            prop_assert!(brief_name(&name).len() <= plain.len());
            prop_assert!(logical_name(&name).len() <= plain.len());
            let _ = (is_plumbing(&name), is_of_any_type(&name));
            if let Some(by_trait) = trait_name(&name) {
                prop_assert_eq!(&by_trait, &*plain_name(&by_trait));
            }
        }
    }
}
