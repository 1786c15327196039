//! Tests of `--by` and `--where`.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use support::{Folder, all, by_route, err, out, run};

/// Returns the live bytes of each route of a capture, as `stats --by` tells them.
fn live_by_route(arguments: &[&str]) -> BTreeMap<String, u64> {
    let command = [&["stats", "--json", "--by", "route"], arguments].concat();
    let output = run(&command);
    assert!(output.status.success(), "{}", err(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json["contexts"].as_array().unwrap().iter();
    let live = rows.map(|row| {
        let bytes = row["live"]["bytes"].as_u64().unwrap();
        (row["value"].as_str().unwrap().to_owned(), bytes)
    });
    live.collect()
}

fn routes(live: &[(&str, u64)]) -> BTreeMap<String, u64> {
    let live = live.iter();
    live.map(|&(route, bytes)| (route.to_owned(), bytes))
        .collect()
}

#[test]
fn call_stacks_are_shown_by_route_or_those_of_one_route() {
    let folder = Folder::new();
    let capture = folder.put("capture.bin", &by_route(1));
    let both = routes(&[("GET /a", 7000), ("GET /b", 6000)]);
    assert_eq!(live_by_route(&[&capture]), both);
    let one = routes(&[("GET /a", 7000)]);
    assert_eq!(live_by_route(&["--where", "route=GET /a", &capture]), one);
    // A part by time has contexts, too.
    for time in [&[][..], &["--since", "10ms"], &["--live-at", "10s"]] {
        let command = [&["tree", "--leaks", "--by", "route", &capture], time].concat();
        let tree = out(&run(&command));
        let at = |name: &str| tree.find(name).unwrap_or_else(|| panic!("{name}: {tree}"));
        assert!(at("[GET /a]") < at("[GET /b]"), "{tree}");
        let command = [
            &["tree", "--leaks", "--where", "route=GET /b", &capture],
            time,
        ]
        .concat();
        let part = out(&run(&command));
        assert!(
            part.contains("6.000kB") && !part.contains("7.000kB"),
            "{part}"
        );
    }
}

#[test]
fn captures_are_added_up_by_route_or_for_one_route() {
    let folder = Folder::new();
    let small = folder.put("small.bin", &by_route(1));
    let large = folder.put("large.bin", &by_route(10));
    let merged = folder.name("merged.bin");
    let merge = |options: &[&str]| {
        let command = [
            &["merge", "--force", &small, &large, "-o", &merged],
            options,
        ]
        .concat();
        let output = run(&command);
        assert!(output.status.success(), "{}", err(&output));
    };
    merge(&[]);
    let both = routes(&[("GET /a", 77_000), ("GET /b", 66_000)]);
    assert_eq!(live_by_route(&[&merged]), both);
    merge(&["--where", "route=GET /b"]);
    assert_eq!(live_by_route(&[&merged]), routes(&[("GET /b", 66_000)]));
    merge(&["--by", "route"]);
    let tree = out(&run(&["tree", "--leaks", &merged]));
    assert!(
        tree.contains("[GET /a]") && tree.contains("[GET /b]"),
        "{tree}"
    );
}

#[test]
fn a_key_that_no_context_has_is_named_with_those_that_there_are() {
    let folder = Folder::new();
    let capture = folder.put("capture.bin", &by_route(1));
    let plain = folder.put("plain.bin", &all());
    for command in [
        &["tree", "--by", "tenant"][..],
        &["table", "--where", "tenant=acme"],
        &["stats", "--where", "tenant=acme"],
        &["stats", "--by", "tenant"],
        &["merge", "--by", "tenant", &capture],
    ] {
        let refused = |capture: &str, expected: &str| {
            let output = run(&[command, &[capture]].concat());
            assert_eq!(output.status.code(), Some(64), "{command:?}");
            let said = err(&output);
            assert!(said.contains(expected), "{command:?}: {said}");
        };
        refused(&capture, "no context has the key tenant; there are route");
        if command[0] != "merge" {
            refused(&plain, "this capture has no contexts");
        }
    }
}
