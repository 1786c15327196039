//! Tests that the compiler and clippy give the same messages about a function with and without the attribute.
//!
//! Each file of `diagnostics/` is checked twice, once with its attributes turned into comments of the same length, and all
//! messages are compared, with any version of the compiler. In `refused.rs`, the expected message about the attribute itself
//! is after `//~` on its line.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const WITH: &str = "#[heapray::profile]";
const WITHOUT: &str = "/*eapray::profile*/";

/// Package of its own, below the target directory, with one case per example.
struct Package(PathBuf);

impl Package {
    fn new() -> Package {
        let macros = Path::new(env!("CARGO_MANIFEST_DIR"));
        let heapray = macros.parent().unwrap();
        let dir = heapray.join("target/diagnostics/package");
        std::fs::create_dir_all(dir.join("examples")).unwrap();
        std::fs::create_dir_all(dir.join("src")).unwrap();
        std::fs::write(dir.join("src/lib.rs"), "").unwrap();
        std::fs::copy(heapray.join("Cargo.lock"), dir.join("Cargo.lock")).unwrap();
        let manifest = format!(
            "[package]\nname = \"cases\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dependencies.heapray]\npath = {heapray:?}\ndefault-features = false\nfeatures = [\"macros\"]\n"
        );
        std::fs::write(dir.join("Cargo.toml"), manifest).unwrap();
        Package(dir)
    }

    /// Returns the messages about each case, whose text is made by `text`.
    fn check(&self, cases: &[&str], text: impl Fn(&str) -> String) -> BTreeMap<String, Vec<Value>> {
        for case in cases {
            let file = format!("{case}.rs");
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
            let source = std::fs::read_to_string(source.join(&file)).unwrap();
            std::fs::write(self.0.join("examples").join(&file), text(&source)).unwrap();
        }
        let output = Command::new(env!("CARGO"))
            .args(["clippy", "--offline", "--examples", "--keep-going"])
            .args(["--message-format=json", "--quiet"])
            .current_dir(&self.0)
            .env("CARGO_TARGET_DIR", self.0.with_file_name("target"))
            .env_remove("RUSTFLAGS")
            .output()
            .unwrap();
        let mut said: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            if message["reason"] == "compiler-message" {
                let name = message["target"]["name"].as_str().unwrap().to_owned();
                said.entry(name)
                    .or_default()
                    .push(message["message"].clone());
            }
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!said.is_empty(), "cargo clippy: {errors}");
        said
    }
}

/// Returns all messages about a case, in order.
fn rendered(said: &BTreeMap<String, Vec<Value>>, case: &str) -> String {
    let mut texts: Vec<String> = said
        .get(case)
        .unwrap_or_else(|| panic!("nothing is said of {case}"))
        .iter()
        .map(|message| message["rendered"].as_str().unwrap().replace(WITHOUT, WITH))
        .collect();
    // The compiler's queries run in another order if the code differs.
    texts.sort();
    texts.concat()
}

/// Returns the messages and their places, without notes and advice.
fn headlines(said: &BTreeMap<String, Vec<Value>>, case: &str) -> Vec<(String, String)> {
    let headline = |message: &Value| {
        let spans = message["spans"].as_array().unwrap().iter();
        let primary = spans.filter(|span| span["is_primary"] == true);
        let places = primary.map(|span| {
            format!(
                "{}:{} {}",
                span["line_start"], span["column_start"], span["label"]
            )
        });
        let text = message["message"].as_str().unwrap().to_owned();
        (text, places.collect())
    };
    let mut headlines: Vec<_> = said[case].iter().map(headline).collect();
    headlines.sort();
    headlines
}

#[test]
fn a_profiled_function_gets_the_same_messages() {
    let package = Package::new();
    let cases = ["borrows", "lints", "style", "types"];
    let all = [&cases[..], &["asynchronous"]].concat();
    let with = package.check(&all, str::to_owned);
    let without = package.check(&all, |text| text.replace(WITH, WITHOUT));
    for case in cases {
        let (with, without) = (rendered(&with, case), rendered(&without, case));
        assert!(
            with == without,
            "{case}\nwith:\n{with}\nwithout:\n{without}"
        );
    }
    // The body of an `async` function becomes a block, so additional messages ("expected because of return type") differ.
    assert_eq!(
        headlines(&with, "asynchronous"),
        headlines(&without, "asynchronous")
    );

    let refused = package.check(&["refused"], str::to_owned);
    let source = include_str!("diagnostics/refused.rs");
    let expected = source.lines().zip(1u64..).filter_map(|(line, number)| {
        let (_, text) = line.split_once("//~ ")?;
        Some((number, text.to_owned()))
    });
    let expected: Vec<_> = expected.collect();
    let mut found: Vec<(u64, String)> = refused["refused"]
        .iter()
        .filter(|message| {
            message["level"] == "error" && !message["spans"].as_array().unwrap().is_empty()
        })
        .map(|message| {
            let line = message["spans"][0]["line_start"].as_u64().unwrap();
            (line, message["message"].as_str().unwrap().to_owned())
        })
        .collect();
    found.sort();
    assert_eq!(found, expected);
}
