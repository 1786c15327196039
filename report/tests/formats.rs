//! Tests that every format has the sums of its report, and that names of any kind do no harm.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use heapray_report::Report;
use heapray_report::formats::{Format, Options};
use heapray_report::memray::read;
use heapray_report::model::{ContextId, Frame, StackId, Tally};
use heapray_report::views::{Measure, Unit};
use proptest::prelude::*;
use serde_json::Value;
use support::{program, skeleton, stack};

fn write(format: Format, report: &Report, options: &Options) -> Vec<u8> {
    let mut out = Vec::new();
    format.write(report, options, &mut out).unwrap();
    out
}

fn text(format: Format, report: &Report, options: &Options) -> String {
    String::from_utf8(write(format, report, options)).unwrap()
}

fn json(format: Format, report: &Report, options: &Options) -> Value {
    serde_json::from_slice(&write(format, report, options)).unwrap()
}

fn sum(report: &Report, measure: Measure) -> Tally {
    let mut sum = Tally::default();
    for site in &report.sites {
        sum += measure.of(site);
    }
    sum
}

/// Parses CSV as in RFC 4180.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.push(chars.next().unwrap()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(!quoted && row.is_empty() && cell.is_empty());
    rows
}

fn options() -> impl Strategy<Value = Options> {
    (0usize..4, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(measure, count, by_thread, lines)| Options {
            measure: Measure::ALL[measure],
            unit: if count { Unit::Count } else { Unit::Bytes },
            by_thread,
            lines,
            ..Options::default()
        },
    )
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

proptest! {
    #[test]
    fn collapsed_stacks_sum_up_to_the_report(program in program(), options in options()) {
        let mut total = 0;
        for line in text(Format::Collapsed, &program.report, &options).lines() {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            prop_assert!(!stack.split(';').any(|name| name.trim().is_empty()), "{line}");
            total += weight.parse::<u64>().unwrap();
        }
        prop_assert_eq!(total, options.unit.of(sum(&program.report, options.measure)));
    }

    #[test]
    fn speedscope_profiles_sum_up_to_the_report(program in program(), options in options()) {
        let file = json(Format::Speedscope, &program.report, &options);
        let frames = file["shared"]["frames"].as_array().unwrap();
        let mut by_unit: BTreeMap<String, u64> = BTreeMap::new();
        for profile in file["profiles"].as_array().unwrap() {
            let weights = profile["weights"].as_array().unwrap();
            let samples = profile["samples"].as_array().unwrap();
            prop_assert_eq!(weights.len(), samples.len());
            let total: u64 = weights.iter().map(number).sum();
            prop_assert_eq!(total, number(&profile["endValue"]));
            for frame in samples.iter().flat_map(|sample| sample.as_array().unwrap()) {
                prop_assert!((number(frame) as usize) < frames.len());
            }
            *by_unit.entry(profile["unit"].as_str().unwrap().to_owned()).or_default() += total;
        }
        let expected = sum(&program.report, options.measure);
        let of = |unit| by_unit.get(unit).copied().unwrap_or(0);
        prop_assert_eq!((of("bytes"), of("none")), (expected.bytes, expected.count));
    }

    #[test]
    fn csv_rows_sum_up_to_the_report(program in program(), options in options()) {
        let rows = parse_csv(&text(Format::Csv, &program.report, &options));
        prop_assert_eq!(&rows[0][..3], ["allocator", "num_allocations", "size"]);
        let mut total = Tally::default();
        for row in &rows[1..] {
            prop_assert_eq!(row.len(), rows[0].len());
            total += Tally { count: row[1].parse().unwrap(), bytes: row[2].parse().unwrap() };
            for frame in row[5].split('|').filter(|frame| !frame.is_empty()) {
                prop_assert_eq!(frame.split(';').count(), 3, "{}", frame);
            }
        }
        prop_assert_eq!(total, sum(&program.report, options.measure));
    }

    #[test]
    fn gprof2dot_events_sum_up_to_the_report(program in program(), options in options()) {
        let file = json(Format::Gprof2dot, &program.report, &options);
        let functions = file["functions"].as_array().unwrap().len();
        let mut total = 0;
        for event in file["events"].as_array().unwrap() {
            total += number(&event["cost"][0]);
            let chain = event["callchain"].as_array().unwrap();
            prop_assert!(!chain.is_empty());
            prop_assert!(chain.iter().all(|function| (number(function) as usize) < functions));
        }
        prop_assert_eq!(total, options.unit.of(sum(&program.report, options.measure)));
    }

    #[test]
    fn every_part_of_the_json_sums_up_to_the_report(program in program()) {
        let report = &program.report;
        let file = json(Format::Json, report, &Options::default());
        prop_assert_eq!(&file["schema"], "heapray-report");
        let tree = &file["tree"];
        let parts = [
            file["table"].as_array().unwrap().clone(),
            file["own_lines"].as_array().unwrap().clone(),
            file["threads"].as_array().unwrap().clone(),
            [&[tree["own"].clone()], &tree["nodes"].as_array().unwrap()[..]].concat(),
        ];
        for (name, measure) in [
            ("allocated", Measure::Allocated),
            ("high_water", Measure::HighWater),
            ("live", Measure::Live),
            ("temporary", Measure::Temporary),
        ] {
            let expected = sum(report, measure);
            for rows in &parts {
                let of = |key: &str| rows.iter().map(|row| row[name][key].as_u64().unwrap_or(0)).sum::<u64>();
                prop_assert_eq!((of("count"), of("bytes")), (expected.count, expected.bytes), "{}", name);
            }
        }
        prop_assert_eq!(number(&file["totals"]["live"]["bytes"]), report.totals.live.bytes);
        // The nodes are in preorder: each is at most one level deeper than the previous one.
        let depths: Vec<u64> = tree["nodes"].as_array().unwrap().iter().map(|n| number(&n["depth"])).collect();
        prop_assert!(depths.first().is_none_or(|&first| first == 1));
        prop_assert!(depths.windows(2).all(|pair| pair[1] <= pair[0] + 1));
    }

    #[test]
    fn the_memray_file_holds_the_report(program in program()) {
        let file = write(Format::Memray, &program.report, &Options::default());
        let back = read(&file[..]).unwrap().report;
        prop_assert_eq!(sum(&back, Measure::Live), sum(&program.report, Measure::Live));
    }
}

/// Names with a special meaning in some format.
const HOSTILE: [&str; 10] = [
    "</text></svg><script>alert(1)</script>",
    "\"quoted\", \\ and 'so'",
    "two\nlines\r\tand a tab",
    "\u{1b}[31mred\u{7}\0",
    "=cmd|' /C calc'!A0",
    "a;b|c",
    "closure 12",
    " ",
    "\u{202e}\u{85}名前",
    "\u{1b}]0;x\u{7}\u{9b}2J\u{fffe}\u{ffff}\u{200f}\u{61c}\u{2067}\u{2028}|",
];

/// Makes a report with hostile names of functions, files and a thread.
fn hostile() -> Report {
    let mut report = skeleton(1);
    report.about.command_line = HOSTILE.concat();
    report.threads[0].name = report.strings.intern(HOSTILE[4]);
    report.frames.clear();
    for name in HOSTILE {
        let name = report.strings.intern(name);
        report.frames.push(Frame {
            function: name,
            file: name,
            line: 7,
        });
    }
    let path: Vec<u32> = (0..HOSTILE.len() as u32).collect();
    let events =
        [path.as_slice(), &[4], &[]].map(|path| heapray_report::model::Event::Allocation {
            thread: heapray_report::model::ThreadId(0),
            context: ContextId::NONE,
            allocator: heapray_report::model::Allocator::Malloc,
            address: 0x1000 * (1 + path.len() as u64),
            size: 100,
            stack: stack(&mut report, path),
        });
    support::sum_up(&mut report, &events);
    report
}

/// Returns whether a character changes how the text around it is shown, or is not a character.
fn acts(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
    ) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
}

#[test]
fn hostile_names_are_text_in_every_format() {
    let report = hostile();
    let options = Options {
        by_thread: true,
        lines: true,
        title: Some(HOSTILE.concat()),
        ..Options::default()
    };
    for &format in Format::ALL.iter().filter(|format| format.is_text()) {
        let text = text(format, &report, &options);
        let control = |c: char| c.is_control() && c != '\n' && c != '\r' && c != '\t';
        assert!(!text.contains(control), "{format}");
        assert!(!text.contains(acts), "{format}");
        if format.extension().ends_with("json") {
            let names = serde_json::from_str::<Value>(&text).unwrap().to_string();
            assert!(
                names.contains("</text></svg><script>alert(1)</script>"),
                "{format}"
            );
        }
    }
    let lines = text(Format::Collapsed, &report, &Options::default());
    assert_eq!(lines.lines().count(), 3);
    assert!(lines.contains(";closure\u{a0}12;???;"));
    assert!(lines.contains(";a\u{37e}b|c;"));
    assert!(lines.starts_with("<stack trace unavailable> 100\n"));
    let rows = parse_csv(&text(Format::Csv, &report, &options));
    assert_eq!(rows.len(), 4);
    for cell in rows.iter().flatten() {
        assert!(
            !cell.trim_start().starts_with(['=', '+', '-', '@']),
            "{cell}"
        );
    }
    let names: Vec<&str> = rows[1][5]
        .split('|')
        .map(|f| f.split(';').next().unwrap())
        .collect();
    assert_eq!(names.len(), HOSTILE.len());
}

#[test]
fn equal_frames_have_the_same_text_in_all_formats() {
    let mut report = hostile();
    let names = [("shop::get", "src/a.rs"), ("<[u8] as A>::f", "src/b.rs")];
    for (frame, (function, file)) in report.frames.iter_mut().zip(names) {
        frame.function = report.strings.intern(function);
        frame.file = report.strings.intern(file);
    }
    let options = Options {
        lines: true,
        ..Options::default()
    };
    for (function, file) in names {
        // The format of memory over time has no frames.
        let formats = Format::ALL
            .iter()
            .filter(|&&format| format != Format::Mprof);
        for &format in formats.filter(|format| format.is_text()) {
            let text = text(format, &report, &options);
            let escaped = |name: &str| name.replace('<', "&lt;").replace('>', "&gt;");
            let has = |name: &str| text.contains(name) || text.contains(&escaped(name));
            assert!(has(function) && has(file), "{function} in {format}");
        }
    }
}

#[test]
fn an_empty_report_can_be_written_in_every_format() {
    for &format in Format::ALL {
        for by_thread in [false, true] {
            let options = Options {
                by_thread,
                ..Options::default()
            };
            let file = write(format, &Report::default(), &options);
            let lines = matches!(format, Format::Collapsed | Format::Mprof);
            assert!(!file.is_empty() || lines, "{format}");
        }
    }
    let file = json(Format::Speedscope, &Report::default(), &Options::default());
    assert_eq!(file["profiles"].as_array().unwrap().len(), 1);
}

#[test]
fn the_largest_counts_do_not_overflow() {
    let mut report = hostile();
    for site in &mut report.sites {
        site.live = Tally {
            count: u64::MAX,
            bytes: u64::MAX,
        };
        site.high_water = site.live;
    }
    assert_eq!(report.stacks.node(StackId::EMPTY), None);
    for &format in Format::ALL {
        for by_thread in [false, true] {
            let options = Options {
                by_thread,
                ..Options::default()
            };
            assert!(!write(format, &report, &options).is_empty(), "{format}");
        }
    }
}

mod svg {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Checked with a parser that refuses characters outside of XML 1.0.
        #[test]
        fn a_picture_is_well_formed_with_any_names(
            names in prop::collection::vec(any::<String>(), 4),
            strange in prop::collection::vec(
                prop::sample::select(vec!["\0", "\u{1b}[2J", "\u{fffe}", "\u{ffff}", "]]>", "<!--", "&#0;", "\u{d7ff}", "\u{85}", "'", "\"", "\r\n"]), 4,
            ),
            inverted: bool, titled: bool,
        ) {
            let mut report = Report::default();
            let mut names: Vec<String> = names.iter().zip(&strange).map(|(a, b)| format!("{b}{a}{b}")).collect();
            report.about.command_line = names[0].clone();
            let thread = report.strings.intern(&names[1]);
            report.threads.push(heapray_report::model::Thread { tid: 1, name: thread, threads: 1 });
            for name in &names {
                let name = report.strings.intern(name);
                report.frames.push(Frame { function: name, file: name, line: 1 });
            }
            let event = heapray_report::model::Event::Allocation {
                thread: heapray_report::model::ThreadId(0),
                context: ContextId::NONE,
                allocator: heapray_report::model::Allocator::Malloc,
                address: 64,
                size: 100,
                stack: stack(&mut report, &[0, 1, 2, 3]),
            };
            support::sum_up(&mut report, &[event]);
            let options = Options {
                lines: true,
                by_thread: true,
                inverted,
                title: titled.then(|| names.pop().unwrap()),
                ..Options::default()
            };
            for report in [&report, &Report { about: report.about.clone(), ..Report::default() }] {
                let picture = text(Format::Svg, report, &options);
                let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
                if let Err(error) = roxmltree::Document::parse_with_options(&picture, options) {
                    return Err(TestCaseError::fail(format!("{error}: {picture}")));
                }
            }
            let mut peak = Vec::new();
            heapray_report::peak::svg(&report, heapray_report::peak::Order::RootFirst, &mut peak).unwrap();
            let peak = String::from_utf8(peak).unwrap();
            prop_assert!(roxmltree::Document::parse(&peak).is_ok(), "{}", peak);
        }
    }

    #[test]
    fn names_stay_text_and_nothing_is_loaded_from_the_network() {
        let options = Options {
            lines: true,
            title: Some("<b>&".into()),
            ..Options::default()
        };
        for (inverted, reversed) in [(false, false), (true, false), (false, true), (true, true)] {
            let options = Options {
                inverted,
                reversed,
                ..options.clone()
            };
            let svg = text(Format::Svg, &hostile(), &options);
            assert!(!svg.contains("<script>alert"));
            assert!(svg.contains("&lt;script&gt;alert(1)"));
            assert!(!svg.contains("<b>"));
            assert!(svg.contains("300.000B"));
            assert_eq!(
                svg,
                text(Format::Svg, &hostile(), &options),
                "not the same twice"
            );
            assert!(!svg.contains("src=\"http") && !svg.contains("@import"));
        }
        let nothing = Report::default();
        assert!(text(Format::Svg, &nothing, &options).contains("&lt;b&gt;&amp;"));
    }
}
