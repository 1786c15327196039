//! Tests of the page as a file: its content, text that it must not have, and a policy that allows exactly its own code.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // clippy does not count helpers of tests as tests

#[path = "../examples/sample_page/report.rs"]
mod report;

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heapray_report::Report;
use heapray_report::model::Tally;
use heapray_report::page::{Page, SourceFiles};
use heapray_report::views::{Leaks, Names, leaks, named};
use serde_json::Value;

fn page(report: &Report) -> String {
    let mut page = Vec::new();
    heapray_report::page::flamegraph(report, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// Makes a page with everything that an event log adds.
fn whole_page(report: &Report) -> String {
    let mut page = Vec::new();
    let intervals = report::extras::intervals(report);
    Page {
        report,
        intervals: Some(&intervals),
        has_log: true,
        sources: None,
    }
    .write(&mut page)
    .unwrap();
    String::from_utf8(page).unwrap()
}

/// Returns the text between `open` and the next `close`.
fn between<'a>(text: &'a str, open: &str, close: &str) -> &'a str {
    let (_, rest) = text.split_once(open).expect(open);
    rest.split_once(close).expect(close).0
}

fn data(page: &str) -> Vec<u8> {
    let packed = between(page, "type=\"application/octet-stream\">", "</script>");
    let packed = STANDARD.decode(packed).unwrap();
    let mut data = Vec::new();
    flate2::read::ZlibDecoder::new(packed.as_slice())
        .read_to_end(&mut data)
        .unwrap();
    data
}

/// Computes `'sha256-…'` with coreutils, to compare it with heapray's.
fn policy_hash(text: &str) -> Option<String> {
    let child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        assert!(std::env::var_os("CI").is_none(), "sha256sum is missing");
        println!("skipped: there is no sha256sum");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap().stdout;
    let hex = std::str::from_utf8(&output).unwrap();
    let hash: Vec<u8> = (0..64)
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect();
    Some(format!("'sha256-{}'", STANDARD.encode(hash)))
}

#[test]
fn the_policy_allows_the_pages_own_script_and_style_and_nothing_else() {
    let page = page(&report::sample(0));
    let policy = between(
        &page,
        "http-equiv=\"Content-Security-Policy\" content=\"",
        "\"",
    );
    let script = between(&page, "<script type=\"module\">", "</script>");
    let style = between(&page, "<style>", "</style>");
    let directive = |name: &str| {
        let parts = policy.split("; ").filter_map(|part| part.split_once(' '));
        parts
            .into_iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    };
    assert_eq!(directive("default-src"), Some("'none'"));
    assert_eq!(directive("img-src"), Some("data:"));
    for (name, text) in [("script-src", script), ("style-src", style)] {
        if let Some(hash) = policy_hash(text) {
            assert_eq!(directive(name), Some(hash.as_str()), "{name}");
        }
    }
    assert!(!policy.contains("unsafe"));
    // Each of these would end the script, or hide its end from the parser.
    assert!(!script.contains("<!--"));
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
}

#[test]
fn the_page_names_nothing_outside_of_itself() {
    let page = page(&report::sample(0));
    let namespace = "http://www.w3.org/2000/svg";
    let mut rest = page.replace(namespace, "");
    // Where a click on a place leads. Nothing is loaded from there.
    for sources in [
        "https://github.com/rust-lang/rust/blob/",
        "https://docs.rs/crate/",
    ] {
        assert_eq!(rest.matches(sources).count(), 1);
        rest = rest.replace(sources, "");
    }
    for reference in [
        "http:", "https:", "src=", "url(", "@import", "import(", "fetch(", "style=\"", "onclick",
    ] {
        assert!(!rest.contains(reference), "{reference}");
    }
    assert_eq!(rest.matches("href=").count(), 1);
    assert!(rest.contains("<link rel=\"icon\" href=\"data:image/svg+xml,"));
}

#[test]
fn hostile_names_are_never_markup_in_the_page() {
    let mut report = report::sample(0);
    report.about.command_line = "/bin/x<script>alert(1)\"&y --flag <b>".to_owned();
    report.conditions.notes = vec![report::HOSTILE.to_owned()];
    let page = page(&report);
    assert!(page.contains("<title>x&lt;script&gt;alert(1)&quot;&amp;y · heapray</title>"));
    assert_eq!(page.matches("alert(").count(), 1, "nowhere else");
    assert!(!page.contains("<b>"));
}

#[test]
fn the_numbers_in_the_page_are_the_reports() {
    let report = report::sample(3_000);
    let data = data(&whole_page(&report));
    let mut rest = data.as_slice();
    let head = head(&mut rest);
    let count = |name: &str| usize::try_from(head["counts"][name].as_u64().unwrap()).unwrap();
    assert_eq!(
        count("nodes"),
        report.stacks.len(),
        "every stack of the sample allocates"
    );

    let bytes: u64 = (0..count("strings")).map(|_| number(&mut rest)).sum();
    rest = &rest[usize::try_from(bytes).unwrap()..];
    for _ in 0..5 * count("frames") + 2 * count("nodes") + 4 * count("rows") {
        number(&mut rest);
    }
    let mut column = || -> u64 { (0..count("rows")).map(|_| number(&mut rest)).sum() };
    let mut tally = || Tally {
        count: column(),
        bytes: column(),
    };
    assert_eq!(tally(), report.totals.live);
    assert_eq!(tally(), report.totals.high_water);
    assert_eq!(tally(), report.totals.allocated);
    tally();
    column();
    for _ in 0..2 * count("survivors") {
        number(&mut rest);
    }
    let mut survivors = || -> u64 { (0..count("survivors")).map(|_| number(&mut rest)).sum() };
    let survived = [survivors(), survivors()];
    assert_eq!(
        survived,
        [report.totals.live.count, report.totals.live.bytes]
    );
    for _ in 0..3 * count("intervals") {
        number(&mut rest);
    }
    let mut lived = || -> u64 { (0..count("intervals")).map(|_| number(&mut rest)).sum() };
    let lived = [lived(), lived()];
    let allocated = report.totals.allocated;
    assert_eq!(lived, [allocated.count, allocated.bytes]);
    for _ in 0..2 * count("sizes") + 4 * count("moments") {
        number(&mut rest);
    }
    assert!(rest.is_empty(), "nothing follows");
}

/// Function, file and line of each line that the page ranks, and its entry in the head.
fn ranked(page: &str) -> Vec<((String, String, u64), Value)> {
    let data = data(page);
    let mut rest = data.as_slice();
    let head = head(&mut rest);
    let count = |name: &str| head["counts"][name].as_u64().unwrap();
    let lengths: Vec<u64> = (0..count("strings")).map(|_| number(&mut rest)).collect();
    let strings: Vec<String> = lengths
        .into_iter()
        .map(|length| {
            let (text, others) = rest.split_at(usize::try_from(length).unwrap());
            rest = others;
            String::from_utf8(text.to_vec()).unwrap()
        })
        .collect();
    let mut column = || -> Vec<u64> { (0..count("frames")).map(|_| number(&mut rest)).collect() };
    let [functions, _, files, lines] = [(); 4].map(|()| column());
    let text = |number: u64| strings[usize::try_from(number).unwrap()].clone();
    let entries = head["leaks"]["list"].as_array().unwrap();
    entries
        .iter()
        .map(|entry| {
            let frame = usize::try_from(entry["frame"].as_u64().unwrap()).unwrap();
            let place = (text(functions[frame]), text(files[frame]), lines[frame]);
            (place, entry.clone())
        })
        .collect()
}

#[test]
fn the_ranking_in_the_page_is_that_of_the_views() {
    for (nodes, most) in [(0, 5), (3_000, 20)] {
        let report = report::sample(nodes);
        let plain = named(&report, Names::Plain).unwrap();
        let Leaks::Ranked(expected) = leaks(&plain) else {
            panic!("the sample has a history");
        };
        let page = page(&report);
        let ranked = ranked(&page);
        assert_eq!(ranked.len(), most);
        for ((place, entry), leak) in ranked.iter().zip(&expected) {
            let frame = plain.frames[leak.frame.0 as usize];
            let text = |id| plain.strings.get(id).to_owned();
            let of_leak = (text(frame.function), text(frame.file), frame.line.into());
            assert_eq!(*place, of_leak);
            assert_eq!(entry["own"], leak.is_own);
            assert_eq!(entry["bytes"], leak.live.bytes);
            assert_eq!(entry["blocks"], leak.live.count);
            assert_eq!(entry["per_hour"], leak.growth_bytes_per_hour);
            assert_eq!(entry["confidence"], leak.confidence.name());
            assert_eq!(entry["evidence"], serde_json::json!(leak.evidence));
            assert_eq!(entry["against"], serde_json::json!(leak.against));
        }
        let data = data(&page);
        let head = head(&mut data.as_slice());
        assert_eq!(head["leaks"]["left_out"], expected.len() - most);
        assert_eq!(head["leaks"]["unknown"], Value::Null);
    }
}

#[test]
fn lines_of_own_code_are_shown_where_the_sources_are_at_hand() {
    let report = report::sample(0);
    let folder = std::env::temp_dir().join(format!("heapray-sources-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("src/index")).unwrap();
    let text: String = (1..400).map(|line| format!("line {line};\n")).collect();
    std::fs::write(folder.join("src/index/mod.rs"), text).unwrap();
    let mut page = Vec::new();
    let sources = SourceFiles {
        root: folder.to_str().unwrap(),
        ..SourceFiles::default()
    };
    Page {
        sources: Some(sources),
        ..Page::of(&report)
    }
    .write(&mut page)
    .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let data = data(&String::from_utf8(page).unwrap());
    let head = head(&mut data.as_slice());
    let source = &head["source"];
    assert_eq!(source["root"], "/build/shop");
    assert_eq!(
        source["url"],
        "https://git.example/shop/blob/v2.1/{file}#L{line}"
    );
    let excerpts = source["excerpts"].as_array().unwrap();
    let leaking = excerpts.iter().find(|excerpt| excerpt[1] == 201).unwrap();
    let lines: Vec<String> = (201..=205).map(|line| format!("line {line};")).collect();
    assert_eq!(leaking[2], serde_json::json!(lines));
}

#[test]
fn the_leak_is_ranked_first_though_the_service_has_been_idle_since() {
    let report = report::sample(0);
    let ((function, file, line), entry) = ranked(&page(&report)).remove(0);
    assert_eq!(function, "shop::index::Index::query");
    assert_eq!((file.as_str(), line), ("/build/shop/src/index/mod.rs", 203));
    assert_eq!(entry["confidence"], "high");
    let data = data(&page(&report));
    let head = head(&mut data.as_slice());
    let work: Vec<u64> = serde_json::from_value(head["generation_allocated"].clone()).unwrap();
    assert_eq!(work.len(), report.survivors.starts_ms.len());
    assert_eq!(work.iter().sum::<u64>(), report.totals.allocated.bytes);
    let all = report.totals.allocated.bytes;
    assert!(work[..20].iter().all(|&bytes| bytes > all / 100));
    assert!(work[21..].iter().all(|&bytes| bytes < all / 100), "idle");
}

#[test]
fn a_page_says_why_it_is_not_known_what_leaks() {
    let mut report = report::sample(0);
    report.history = heapray_report::model::History::default();
    let page = page(&report);
    let data = data(&page);
    let head = head(&mut data.as_slice());
    let reason = head["leaks"]["unknown"].as_str().unwrap();
    assert!(reason.contains("what grows is not known"), "{reason}");
    assert!(ranked(&page).is_empty());
    assert_eq!(head["generation_allocated"], serde_json::json!([]));
}

/// Takes the head from the start of a page's data.
fn head(data: &mut &[u8]) -> Value {
    let length = usize::try_from(number(data)).unwrap();
    let (head, rest) = data.split_at(length);
    *data = rest;
    serde_json::from_slice(head).unwrap()
}

/// One LEB128 number.
fn number(bytes: &mut &[u8]) -> u64 {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let (digits, rest) = bytes.split_at(end + 1);
    *bytes = rest;
    digits
        .iter()
        .rev()
        .fold(0, |value, digit| value << 7 | u64::from(digit & 0x7f))
}

#[test]
fn equal_reports_give_equal_pages_and_an_empty_report_gives_a_page() {
    assert_eq!(page(&report::sample(500)), page(&report::sample(500)));
    let empty = page(&Report::default());
    assert!(empty.contains("<title>report · heapray</title>"));
    assert!(!data(&empty).is_empty());
}

#[test]
fn a_full_disk_is_an_error_and_not_a_panic() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0 == 0 {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            let written = bytes.len().min(self.0);
            self.0 -= written;
            Ok(written)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let report = report::sample(2_000);
    let length = page(&report).len();
    for room in (0..length).step_by(9_973).chain([length - 1]) {
        let error = heapray_report::page::flamegraph(&report, &mut Full(room)).unwrap_err();
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::StorageFull,
            "{room} bytes"
        );
    }
    assert!(heapray_report::page::flamegraph(&report, &mut Full(length)).is_ok());
}
