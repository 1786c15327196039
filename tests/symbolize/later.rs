//! Tests of names that are added to a capture later: stacks of this program, recorded without names, get those of its file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heapray::collector::snapshot::Module;
use heapray::symbolize::{
    FoundBefore, NameMode, NamedLater, ReportOptions, SymbolFiles, can_name_later, name_later,
    resolve,
};
use heapray_report::Report;
use heapray_report::memray::{self, MemoryLimit, SameNames, Version};
use heapray_report::model::Tally;

use crate::child::{Scratch, objcopy};
use crate::oracles::random_addresses;
use crate::process::{has_tool, modules, stack_table};

/// What each call site holds, by its frames: function, full name, file and line.
pub(crate) type Sums = BTreeMap<Vec<(String, String, String, u32)>, Tally>;

pub(crate) const OPTIONS: ReportOptions =
    ReportOptions::new().names(NameMode::Both).by_address(true);

/// Returns a path where this program is not.
fn gone() -> PathBuf {
    Path::new("/nowhere").join(exe().file_name().unwrap())
}

fn exe() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Returns the modules of this process, with the program at `path`.
fn modules_at(path: &Path) -> Vec<Module> {
    let mut modules = modules();
    let exe = exe();
    for module in modules.iter_mut().filter(|module| module.path == exe) {
        module.is_main = false;
        module.path = path.to_owned();
    }
    modules
}

fn stacks() -> Vec<Vec<u64>> {
    stacks_of(&random_addresses())
}

/// Returns call stacks of random addresses.
pub(crate) fn stacks_of(addresses: &[u64]) -> Vec<Vec<u64>> {
    let depths = [1, 2, 5, 3, 9].into_iter().cycle();
    let mut rest = addresses;
    let mut stacks = Vec::new();
    for depth in depths {
        let Some((stack, others)) = rest.split_at_checked(depth) else {
            break;
        };
        stacks.push(stack.to_vec());
        rest = others;
    }
    // The same function again and again, at other addresses of it.
    let first = addresses[0];
    stacks.extend((1..20).map(|step| vec![addresses[1], first + step]));
    stacks
}

fn recorded(stacks: &[Vec<u64>], path: &Path, options: &ReportOptions) -> Report {
    recorded_in(stacks, modules_at(path), options)
}

/// Returns what a capture of `stacks` says, which were recorded in a process of `modules`.
pub(crate) fn recorded_in(
    stacks: &[Vec<u64>],
    modules: Vec<Module>,
    options: &ReportOptions,
) -> Report {
    let report = resolve(&stack_table(modules, stacks), options).report;
    let mut bytes = Vec::new();
    memray::write_aggregated(&report, Version::V13, &mut bytes).unwrap();
    let read = memray::read_as(&bytes[..], MemoryLimit::default(), SameNames::Apart).unwrap();
    assert!(read.complete);
    read.report
}

fn named(report: &Report) -> NamedLater {
    let files = SymbolFiles {
        binaries: vec![exe()],
        ..SymbolFiles::default()
    };
    assert!(can_name_later(report, &files));
    assert!(!can_name_later(report, &SymbolFiles::default()));
    name_later(report, &files, &mut FoundBefore::default())
}

/// Returns what each call site of a program at `path` holds.
pub(crate) fn sums(report: &Report, path: &Path) -> Sums {
    let text = |id| report.strings.get(id).to_owned();
    // Code without a file has the path of its module.
    let file = |id| {
        let file = text(id);
        if Path::new(&file) == path {
            "the program".to_owned()
        } else {
            file
        }
    };
    let mut sums = Sums::new();
    for site in &report.sites {
        let frames = report.stacks.leaf_to_root(site.stack).map(|id| {
            let frame = report.frames[id.0 as usize];
            let full = report.full_names.get(id.0 as usize);
            let full = full.copied().unwrap_or(frame.function);
            (
                text(frame.function),
                text(full),
                file(frame.file),
                frame.line,
            )
        });
        *sums.entry(frames.collect()).or_default() += site.live;
    }
    sums
}

pub(crate) fn assert_same(later: &Sums, at_hand: &Sums) {
    for (frames, tally) in at_hand {
        assert_eq!(later.get(frames), Some(tally), "{frames:?}");
    }
    assert_eq!(later.len(), at_hand.len());
}

#[test]
fn offsets_get_the_names_that_they_would_have_had() {
    let stacks = stacks();
    let gone = &gone();
    for full in [false, true] {
        let options = OPTIONS.full(full);
        let at_hand = recorded(&stacks, &exe(), &options);
        let offsets = recorded(&stacks, gone, &options);
        assert_eq!(offsets.about.untrimmed, full);
        let named = named(&offsets);
        assert_same(&sums(&named.report, gone), &sums(&at_hand, &exe()));
        let [of_program, ..] = &named.modules[..] else {
            panic!("the program lacks names");
        };
        assert!(
            of_program.named >= of_program.addresses * 9 / 10,
            "{of_program:?}"
        );
        let notes = named.report.conditions.notes.join("\n");
        assert!(!notes.contains("offsets"), "{notes}");
        // The addresses are still those of the process.
        let known: Vec<u64> = stacks.iter().flatten().map(|address| address - 1).collect();
        for place in &named.report.places {
            assert!(known.contains(&place.address), "{place:?}");
        }
    }
}

#[test]
fn functions_without_lines_get_their_lines_and_inlined_calls() {
    if !has_tool("objcopy") {
        return;
    }
    let scratch = Scratch::new("later");
    let without_lines = scratch.program();
    let named_alike = without_lines.with_file_name(exe().file_name().unwrap());
    std::fs::rename(&without_lines, &named_alike).unwrap();
    let without_lines = named_alike;
    objcopy(&["--strip-debug"], &[&without_lines]);
    let stacks = stacks();
    let options = OPTIONS.full(true);
    let at_hand = recorded(&stacks, &exe(), &options);
    let functions = recorded(&stacks, &without_lines, &options);
    let named = named(&functions);
    assert_same(
        &sums(&named.report, &without_lines),
        &sums(&at_hand, &exe()),
    );
}

#[test]
fn a_report_stays_as_it_is_without_files() {
    let stacks = stacks();
    let report = recorded(&stacks, &exe(), &OPTIONS);
    let files = SymbolFiles {
        sysroot: Some("/nowhere".into()),
        ..SymbolFiles::default()
    };
    let named = name_later(&report, &files, &mut FoundBefore::default());
    assert_same(&sums(&named.report, &exe()), &sums(&report, &exe()));
    assert_eq!(named.report.totals, report.totals);
}

#[test]
fn files_of_another_build_are_not_used() {
    let stacks = stacks();
    let gone = &gone();
    let report = recorded(&stacks, gone, &OPTIONS);
    let other = PathBuf::from(heapray_c_fixtures::THREAD_CONTEXT);
    let text = PathBuf::from("/proc/self/cmdline");
    let files = SymbolFiles {
        binaries: vec![other.clone(), text.clone()],
        ..SymbolFiles::default()
    };
    let named = name_later(&report, &files, &mut FoundBefore::default());
    assert_same(&sums(&named.report, gone), &sums(&report, gone));
    let strangers: Vec<_> = named
        .strangers
        .iter()
        .map(|stranger| (stranger.path.clone(), stranger.id.is_some()))
        .collect();
    assert_eq!(strangers, [(text, false), (other, true)]);
}

#[test]
fn what_was_found_before_needs_no_file() {
    let report = recorded(&stacks(), &gone(), &OPTIONS);
    let files = SymbolFiles {
        binaries: vec![exe()],
        ..SymbolFiles::default()
    };
    let mut before = FoundBefore::default();
    let first = name_later(&report, &files, &mut before);
    let written: Vec<(String, Vec<u8>)> = before
        .changed()
        .map(|(build_id, text)| (build_id.to_owned(), text))
        .collect();
    assert_eq!(written.len(), 1);
    assert_eq!(before.changed().count(), 0, "nothing is new now");

    let mut loaded = FoundBefore::default();
    for (build_id, text) in &written {
        loaded.load(build_id, text);
        assert!(loaded.has(build_id));
    }
    let second = name_later(&report, &SymbolFiles::default(), &mut loaded);
    assert_eq!(loaded.changed().count(), 0);
    assert_same(
        &sums(&second.report, &gone()),
        &sums(&first.report, &gone()),
    );
    let about = |named: &NamedLater| format!("{:?}", named.report.about);
    assert_eq!(about(&second), about(&first));
    assert_eq!(second.modules, first.modules);

    // Files that are known by now are not strangers.
    let third = name_later(&report, &files, &mut loaded);
    assert!(third.strangers.is_empty());

    let (build_id, text) = &written[0];
    for broken in [&text[..text.len() / 2], b"", b"[]", b"{\"form\":0}"] {
        let mut loaded = FoundBefore::default();
        loaded.load(build_id, broken);
        let named = name_later(&report, &SymbolFiles::default(), &mut loaded);
        assert!(named.modules.iter().all(|found| found.with_lines == 0));
    }
}
