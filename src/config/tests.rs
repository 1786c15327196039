//! The table of settings in `docs/configuration.md`, made from their declarations, and tests that hold for each setting.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::declared::every_setting;
use super::flight::{Slopes, Thresholds};
use super::hosts::HostNames;
use super::own_crates::CratePatterns;
use super::prefix::Prefixes;
use super::push::PushTargets;
use super::source_url::{Commits, SourceUrls};
use super::store::StoreTargets;
use super::token::Tokens;
use super::values::{
    Line, OrEmpty, PathOf, Seconds, Sizes, Times, Truth, Values as _, WholeNumbers, Words,
};
use super::{ConfigError, MemoryChildren, MemoryMetric, MemoryRole, SymbolMode, overhead};

struct Row {
    method: &'static str,
    variable: &'static str,
    /// The lines of the comment.
    doc: &'static [&'static str],
    /// Set if the default is a text that is parsed like the variable.
    is_value: bool,
    default: &'static str,
    bounds: String,
    example: &'static str,
    /// Returns whether the environment may have this text.
    allows: fn(&str) -> bool,
}

macro_rules! rows {
    ($($group:ident { $(
        $(#[doc = $doc:literal])*
        fn $name:ident($($argument:ident: $argument_type:ty),*) -> $type:ty {
            variable: $variable:literal,
            given: $given:expr,
            values: $values:expr,
            default: $default:ident($default_text:literal),
            example: $example:literal,
        }
    )* })*) => {
        /// Returns all settings, in the order of the table.
        fn rows() -> Vec<Row> {
            vec![$($(Row {
                method: stringify!($name),
                variable: $variable,
                doc: &[$($doc),*],
                is_value: stringify!($default) == "Value",
                default: $default_text,
                bounds: $values.bounds(),
                example: $example,
                allows: |text| $values.read(text.into()).is_ok(),
            }),*),*]
        }
    };
}

every_setting!(rows);

impl Row {
    /// Returns the comment's first paragraph.
    fn meaning(&self) -> String {
        let lines = self.doc.iter().map(|line| line.trim());
        let paragraph: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        paragraph.join(" ")
    }

    fn default(&self) -> String {
        if self.is_value {
            format!("`{}`", self.default)
        } else {
            self.default.into()
        }
    }

    fn markdown(&self) -> String {
        format!(
            "| `{}` | `{}` | {} | {} | {} | `{}` |\n",
            self.variable,
            self.method,
            self.meaning(),
            self.default(),
            self.bounds,
            self.example,
        )
    }
}

fn markdown() -> String {
    let head = "| variable | method of `Builder` | meaning | default | allowed | example |\n\
                |---|---|---|---|---|---|\n";
    head.to_owned() + &rows().iter().map(Row::markdown).collect::<String>()
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// With `UPDATE_EXPECTED=1` the table is rewritten, and must be reviewed.
#[test]
fn the_table_in_the_documentation_is_what_is_declared() {
    const FIRST: &str = "| variable |";
    let path = file("docs/configuration.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let start = text.find(FIRST).unwrap();
    let end = text[start..]
        .find("\n\n")
        .map_or(text.len(), |at| start + at + 1);
    let expected = markdown();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        let text = [&text[..start], &expected, &text[end..]].concat();
        std::fs::write(path, text).unwrap();
        return;
    }
    assert_eq!(
        text[start..end],
        expected,
        "UPDATE_EXPECTED=1 writes it anew"
    );
}

/// The defaults in the README's short table are in its second column.
#[test]
fn the_readme_has_the_declared_defaults() {
    let text = std::fs::read_to_string(file("README.md")).unwrap();
    let mut compared = 0;
    for row in rows() {
        let Some(line) = text
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", row.variable)))
        else {
            continue;
        };
        let cell = line.split(" | ").nth(1).unwrap();
        assert_eq!(cell, row.default(), "{line}");
        compared += 1;
    }
    assert!(compared > 5, "{compared}");
}

/// A variable that is neither declared nor read elsewhere has been renamed or misspelt.
#[test]
fn every_variable_that_the_documentation_names_exists() {
    const ELSEWHERE: [&str; 1] = ["MEMRAY_PROFILER_FUNCTION_FILE"];
    let mut known: BTreeSet<&str> = rows().iter().map(|row| row.variable).collect();
    known.extend(ELSEWHERE);
    let docs = std::fs::read_dir(file("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|it| it == "md"));
    for path in docs.chain([file("README.md"), file("src/lib.rs")]) {
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("MEMRAY_PROFILER") {
            let end = text[at..]
                .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
            let name = &text[at..end.map_or(text.len(), |end| at + end)];
            let is_known = match name.strip_suffix('_') {
                // `MEMRAY_PROFILER_TRIGGER_…`
                Some(_) => known.iter().any(|it| it.starts_with(name)),
                None => known.contains(name),
            };
            assert!(is_known, "{}: {name}", path.display());
        }
    }
}

#[test]
fn every_setting_has_a_name_a_meaning_and_an_example_of_its_own() {
    let rows = rows();
    for names in [
        rows.iter().map(|row| row.variable).collect::<BTreeSet<_>>(),
        rows.iter().map(|row| row.method).collect(),
    ] {
        assert_eq!(names.len(), rows.len());
    }
    for row in rows {
        let meaning = row.meaning();
        assert!(
            meaning.ends_with('.') && !meaning.contains("]("),
            "{meaning:?}"
        );
        assert!((row.allows)(row.example), "{}: its example", row.variable);
        assert!(
            !row.is_value || (row.allows)(row.default),
            "{}: its default",
            row.variable
        );
    }
}

/// Everything is enabled, so that every setting is read.
const ON: [(&str, &str); 2] = [
    ("MEMRAY_PROFILER", "true"),
    ("MEMRAY_PROFILER_MEMORY_LOG", "true"),
];

#[test]
fn a_bad_value_from_the_environment_blames_its_variable() {
    for row in rows() {
        let bad = ["\u{1}", ""].into_iter().find(|text| !(row.allows)(text));
        let bad = bad.unwrap_or_else(|| panic!("{} may be anything", row.variable));
        let error = super::Settings::default().resolve(|name| {
            let on = || ON.iter().find(|(variable, _)| *variable == name);
            let value = if name == row.variable { bad } else { on()?.1 };
            Some(value.into())
        });
        assert_eq!(error.unwrap_err().setting(), row.variable);
    }
}

#[test]
fn a_bad_value_from_the_code_blames_the_method() {
    use crate::{Builder, OomThreshold, builder};
    const TOO_LONG: Duration = Duration::from_secs(367 * 86_400);
    type Set = fn(Builder) -> Builder;
    let bad: [(&str, Set); 25] = [
        ("dir", |it| it.dir("")),
        ("overhead_limit", |it| it.overhead_limit((64 << 20) - 1)),
        ("own_crates", |it| it.own_crates(["shop::cart"])),
        ("known_sites", |it| it.known_sites("")),
        ("source_url", |it| it.source_url("https://git.example/")),
        ("commit", |it| it.commit("")),
        ("keep", |it| it.keep(1001)),
        ("oom_threshold", |it| {
            it.oom_threshold(OomThreshold::Percent(101))
        }),
        ("oom_exit_code", |it| it.oom_exit_code(0)),
        ("trigger_slope", |it| it.trigger_slope(1, TOO_LONG)),
        ("trigger_pause", |it| it.trigger_pause(TOO_LONG)),
        ("trigger_keep", |it| it.trigger_keep(101)),
        ("contexts", |it| it.contexts(0)),
        ("push", |it| it.push("https://profiles.example.com")),
        ("push_interval", |it| it.push_interval(Duration::ZERO)),
        ("push_token", |it| it.push_token("hunter 2")),
        ("store", |it| it.store("bucket")),
        ("prefix", |it| it.prefix("x")),
        ("token", |it| it.token("hunter 2")),
        ("hosts", |it| it.hosts(["a:80"])),
        ("job_name", |it| it.job_name("a\tb")),
        ("job_version", |it| it.job_version("1\n0")),
        ("memory_dir", |it| it.memory_dir("")),
        ("memory_interval", |it| {
            it.memory_interval(Duration::from_secs(3601))
        }),
        ("memory_limit", |it| it.memory_limit((64 << 10) - 1)),
    ];
    // Any value of their types is allowed.
    let never_bad = [
        "enabled",
        "log_limit",
        "sample",
        "continuous",
        "keep_bytes",
        "helper",
        "oom",
        "trigger_size",
        "trigger_step",
        "sigusr2",
        "push_queue",
        "debug_pprof",
        "by_route",
        "symbols",
        "routes_below_prefix",
        "memory_log",
        "memory_role",
        "memory_children",
        "memory_metric",
    ];
    let mut covered: BTreeSet<&str> = never_bad.into();
    let on = || {
        builder()
            .ignore_environment()
            .enabled(true)
            .memory_log(true)
    };
    for (method, set) in bad {
        let error = set(on()).config().unwrap_err();
        assert_eq!(error.setting(), format!("Builder::{method}"));
        covered.insert(method);
    }
    assert_eq!(covered, rows().iter().map(|row| row.method).collect());
}

/// The environment overrides the code, so a good variable hides a bad value in the code.
#[test]
fn the_environment_has_the_last_word_over_a_bad_value_from_the_code() {
    let settings = super::Settings {
        keep: Some(Err("1001".into())),
        ..super::Settings::default()
    };
    let read = |keep: Option<&'static str>| -> Result<u32, ConfigError> {
        let config = settings.resolve(|name| match name {
            "MEMRAY_PROFILER" => Some("true".into()),
            "MEMRAY_PROFILER_KEEP" => keep.map(OsString::from),
            _ => None,
        });
        config.map(|config| config.keep)
    };
    assert_eq!(read(Some("7")).unwrap(), 7);
    assert_eq!(read(None).unwrap_err().setting(), "Builder::keep");
}
