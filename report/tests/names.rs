//! Names are shortened as `names.json` says, which the page's script is held to as well.
#![allow(clippy::unwrap_used)]

use heapray_report::views::{brief_name, is_plumbing, logical_name, plain_name};
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
fn a_name_that_is_nested_without_end_stays_as_it_is() {
    let name = format!("{}x{}::f", "<".repeat(100_000), ">".repeat(100_000));
    assert_eq!(plain_name(&name), name);
}

#[test]
fn python_names_stay() {
    for name in ["<module>", "<listcomp>", "Cart.add"] {
        assert_eq!(logical_name(name), name);
    }
}

proptest! {
    #[test]
    fn no_name_is_too_strange(name in "[<>:{}&*() a-zß'-]{0,40}", any: String) {
        for name in [name, any] {
            brief_name(&name);
            is_plumbing(&name);
            prop_assert!(logical_name(&name).len() <= name.len());
        }
    }
}
