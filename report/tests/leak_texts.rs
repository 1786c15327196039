//! Tests what users and scripts read about leaks: the text, the JSON, and the lines in the statistics.
#![allow(clippy::unwrap_used)]

#[path = "support/session.rs"]
mod session;

use heapray_report::Report;
use heapray_report::formats::json;
use heapray_report::known::Known;
use heapray_report::model::{Frame, FrameId, StackId};
use heapray_report::stats::{self, JsonOptions};
use heapray_report::texts::{self, Options};
use serde_json::{Value, json};
use session::Session;

/// A service that leaks at one line, and keeps a little at another.
fn leaking() -> Report {
    let mut session = Session::new();
    session.allocate("shop::settings::load", 300_000);
    session.serve_until(20_000, |session, now| {
        session.allocate("shop::cart::remember", 400);
        if now % 1000 == 0 {
            session.allocate("shop::log::rotate", 500);
        }
    });
    session.finish()
}

fn harmless() -> Report {
    let mut session = Session::new();
    session.serve_until(20_000, |_, _| {});
    session.finish()
}

fn text(report: &Report, options: &Options) -> String {
    let mut out = Vec::new();
    texts::leaks(report, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn as_json(report: &Report, most: Option<usize>) -> Value {
    let mut out = Vec::new();
    json::leaks(report, most, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn stats_json(report: &Report) -> Value {
    let mut out = Vec::new();
    stats::json(report, &JsonOptions::default(), &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn the_text_has_the_likeliest_leak_first_with_its_reasons_and_its_call_stack() {
    assert_eq!(
        text(&leaking(), &Options::default()),
        "\
Still live at the end: 1.110MB in 2,021 allocations
shop --serve

Lines that keep more the more the program does, the likeliest leak first:

1. shop::cart::remember  src/cart.rs:12
   high confidence, 800.000kB live in 2,000 blocks, 143.997MB more an hour
   for      grew by 672 kB in 1,681 blocks within 16.8 s
            blocks of 8 of 8 parts of the work are still live
            keeps 100 % of the bytes that it allocates
   stack    alloc::vec::Vec::with_capacity  library/alloc/src/vec/mod.rs:482
          * shop::cart::remember  src/cart.rs:12
            … 3 calls …
          * shop::main  src/main.rs:3

2. shop::log::rotate  src/log.rs:13
   low confidence, 10.000kB live in 20 blocks, 1.750MB more an hour
   for      grew by 8.17 kB in 16 blocks within 16.8 s
            blocks of 8 of 8 parts of the work are still live
            keeps 100 % of the bytes that it allocates
   stack    alloc::vec::Vec::with_capacity  library/alloc/src/vec/mod.rs:482
          * shop::log::rotate  src/log.rs:13
            … 3 calls …
          * shop::main  src/main.rs:3

* the service's own code
"
    );
}

/// The same service; its owner knows that the cart remembers.
fn known() -> Report {
    let mut report = leaking();
    report.about.known.push(Known {
        function: "shop::cart::*".into(),
        reason: "carts are kept for a day".into(),
        ..Known::default()
    });
    report
}

#[test]
fn what_is_known_is_summed_apart_and_not_ranked() {
    let report = known();
    let text = text(&report, &Options::default());
    assert!(text.contains("\n1. shop::log::rotate"), "{text}");
    let known =
        "\nKnown, and not ranked:\n   carts are kept for a day: 800.000kB live in 2,000 blocks\n";
    assert!(text.ends_with(known), "{text}");

    let expected = json!([{
        "function": "shop::cart::*",
        "file": "",
        "reason": "carts are kept for a day",
        "live_bytes": 800_000,
        "live_blocks": 2_000,
    }]);
    let file = as_json(&report, None);
    assert_eq!(file["known"], expected);
    assert_eq!(file["candidates"][0]["function"], "shop::log::rotate");
    assert_eq!(stats_json(&report)["heapray"]["known"], expected);
    let statistics = stats::text(&report);
    assert!(statistics.contains("carts are kept for a day: 800.000kB live in 2,000 blocks"));
    assert!(!statistics.contains("Probably leaking"), "{statistics}");
    assert_eq!(stats_json(&leaking())["heapray"]["known"], json!([]));
}

#[test]
fn a_text_says_how_many_lines_it_does_not_show() {
    let one = Options {
        max_rows: Some(1),
        ..Options::default()
    };
    let text = text(&leaking(), &one);
    assert!(text.contains("\nand 1 more line, less likely\n"), "{text}");
    assert!(!text.contains("rotate"), "{text}");
}

#[test]
fn a_program_that_does_not_leak_gets_a_sentence_and_an_empty_list() {
    let report = harmless();
    let text = text(&report, &Options::default());
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        "Nothing grows with the work: no line keeps more the more the program does."
    );
    assert_eq!(as_json(&report, None), json!({ "candidates": [] }));
    assert!(!stats::text(&report).contains("leaking"));
    let stats = stats_json(&report);
    assert_eq!(stats["heapray"]["leaks"], json!([]));
    assert_eq!(stats["heapray"]["leaks_unknown"], Value::Null);
}

#[test]
fn where_it_cannot_be_told_the_reason_and_another_way_are_named() {
    let mut report = leaking();
    report.history = Default::default();
    let text = text(&report, &Options::default());
    for part in [
        "\nWhether anything leaks cannot be told.\n",
        "does not tell when memory was allocated",
        "`heapray diff` of two captures",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let found = as_json(&report, None);
    assert_eq!(found["candidates"], json!([]));
    let reason = found["unknown"].as_str().unwrap();
    assert!(reason.contains("does not tell when"), "{reason}");
    assert!(!stats::text(&report).contains("leaking"));
    assert_eq!(stats_json(&report)["heapray"]["leaks_unknown"], reason);
}

#[test]
fn the_json_has_every_figure_of_the_text() {
    let report = leaking();
    let found = as_json(&report, None);
    let [leak, little] = &found["candidates"].as_array().unwrap()[..] else {
        panic!("{found:#}");
    };
    assert_eq!(leak["function"], "shop::cart::remember");
    assert_eq!(leak["file"], "src/cart.rs");
    assert_eq!(leak["line"], 12);
    assert_eq!(leak["live_bytes"], 800_000);
    assert_eq!(leak["live_blocks"], 2000);
    assert_eq!(leak["confidence"], "high");
    assert!(leak["growth_bytes_per_hour"].as_u64() > Some(140_000_000));
    assert!(leak["survival"].as_f64() > Some(0.99));
    assert_eq!(leak["evidence"].as_array().unwrap().len(), 3);
    assert_eq!(leak["against"], json!([]));
    let stack = leak["stack"].as_array().unwrap();
    assert_eq!(stack.len(), 6);
    assert_eq!(
        stack[0],
        json!({
            "function": "alloc::vec::Vec::with_capacity",
            "file": "/rustc/0123/library/alloc/src/vec/mod.rs",
            "line": 482,
        })
    );
    assert_eq!(stack[5]["function"], "shop::main");
    assert_eq!(little["confidence"], "low");

    let first = as_json(&report, Some(1));
    assert_eq!(first, json!({ "candidates": [leak] }));
    assert_eq!(
        stats_json(&report)["heapray"]["leaks"],
        json!([leak, little])
    );
}

#[test]
fn the_statistics_name_what_probably_leaks_and_nothing_that_may_be_a_coincidence() {
    let text = stats::text(&leaking());
    let (memrays, ours) = text.split_once("\n\n💧 Still live at the end:").unwrap();
    assert!(!memrays.contains("leaking"));
    let (_, leaks) = ours.split_once("\n💧 Probably leaking:\n").unwrap();
    let (leaks, _) = leaks.split_once("\n\n").unwrap();
    assert_eq!(
        leaks,
        "\t- shop::cart::remember:src/cart.rs:12 -> 800.000kB live, 143.997MB more an hour, high confidence"
    );
}

#[test]
fn a_place_is_never_cut_and_everything_else_fits_the_width() {
    let mut report = leaking();
    let long = format!("{}::remember", "very_long_module_name::".repeat(9));
    let folder = format!("/srv/{}cart.rs", "deep/".repeat(30));
    let (function, file) = (report.strings.intern(&long), report.strings.intern(&folder));
    let name = report.strings.intern("shop::cart::remember");
    for frame in &mut report.frames {
        if frame.function == name {
            (frame.function, frame.file) = (function, file);
        }
    }
    for width in [0, 80, 100, 137] {
        let options = Options {
            width,
            ..Options::default()
        };
        let text = text(&report, &options);
        assert!(text.contains(&format!("{folder}:12\n")), "{text}");
        let wide = text
            .lines()
            .filter(|line| line.chars().count() > width.max(Options::MIN_WIDTH));
        assert_eq!(wide.count(), 1, "{text}");
    }
}

#[test]
fn deep_stacks_are_folded_and_still_show_the_line() {
    let mut report = leaking();
    // The leaking line, called by 100 recursions, each through a library.
    let name = report.strings.intern("tree::walk");
    let own = report.strings.intern("src/tree.rs");
    let library = report
        .strings
        .intern("/home/dev/.cargo/registry/src/index-1949/rayon-1.0.0/src/lib.rs");
    let first = report.frames.len() as u32;
    for file in [own, library, library] {
        report.frames.push(Frame {
            function: name,
            file,
            line: report.frames.len() as u32,
        });
    }
    let leak = heapray_report::views::leaks(&report).list()[0].clone();
    let path: Vec<FrameId> = report.stacks.leaf_to_root(leak.stack).take(2).collect();
    let recursion = (0..300).map(|n| FrameId(first + n % 3));
    let deep = recursion
        .chain(path.into_iter().rev())
        .fold(StackId::EMPTY, |at, frame| report.stacks.child(at, frame));
    for site in &mut report.sites {
        if site.stack == leak.stack {
            site.stack = deep;
        }
    }
    let one = Options {
        max_rows: Some(1),
        ..Options::default()
    };
    let text = text(&report, &one);
    let (_, stack) = text.split_once("   stack").unwrap();
    let rows: Vec<&str> = stack.lines().take_while(|row| !row.is_empty()).collect();
    assert_eq!(rows.len(), 12, "{text}");
    assert!(
        rows[1].ends_with("* shop::cart::remember  src/cart.rs:12"),
        "{text}"
    );
    assert!(rows[11].ends_with("… 291 calls …"), "{text}");
}

#[test]
fn no_name_acts_on_the_terminal() {
    let mut report = leaking();
    let hostile = "shop::\u{1b}[31mcart\n\u{202e}::remember";
    let (function, file) = (
        report.strings.intern(hostile),
        report.strings.intern(&format!("src/{hostile}.rs")),
    );
    for frame in &mut report.frames {
        frame.function = function;
        if report.strings.get(frame.file).starts_with("src/") {
            frame.file = file;
        }
    }
    report.about.command_line = hostile.into();
    let acts = |text: &str| {
        text.contains(|c: char| (c.is_control() && !"\n\t".contains(c)) || c == '\u{202e}')
    };
    let shown = text(&report, &Options::default());
    assert!(shown.contains("::remember") && !acts(&shown), "{shown}");
    let json = as_json(&report, None);
    assert!(!json["candidates"].as_array().unwrap().is_empty());
    assert!(
        !acts(&json.to_string()) && !json.to_string().contains("\\n"),
        "{json}"
    );
}
