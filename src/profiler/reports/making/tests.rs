//! Tests with a helper process of this test program.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heapray_report::formats::Format;
use heapray_report::memray::{MemoryLimit, read_file};
use heapray_report::model::{Mark, Moment, Survivor, Survivors, Tally};

use super::*;
use crate::capture::event::{Kind, NodeId};
use crate::capture::modules;
use crate::collector::snapshot::{
    Hooks, ModuleId, RawNode, RawSite, RawThread, RawTotals, Snapshot, StackTable,
};

const LIMIT: MemoryLimit = MemoryLimit(64 << 20);

fn keys() -> Vec<OutputKey> {
    let kinds = [
        OutputKind::Report,
        OutputKind::Flamegraph,
        OutputKind::Stats,
        OutputKind::StatsJson,
        OutputKind::Table,
        OutputKind::Tree,
        OutputKind::Summary,
    ];
    let files = Format::ALL.iter().map(|&format| OutputKind::File(format));
    kinds.into_iter().chain(files).map(OutputKey::new).collect()
}

/// Returns a session with two call sites in this test program.
fn session() -> Snapshot {
    modules::refresh();
    let modules = modules::history();
    let main = modules.iter().position(|module| module.is_main).unwrap();
    let node = |parent, function: usize| RawNode {
        parent: NodeId(parent),
        module: ModuleId(u16::try_from(main).unwrap()),
        // As if the call was its first instruction.
        address: function as u64 + 1,
    };
    let tally = |bytes| Tally { count: 2, bytes };
    let site = |node, bytes| RawSite {
        context: 0,
        thread: 1,
        node: NodeId(node),
        kind: Kind::Malloc,
        allocated: tally(bytes),
        high_water: tally(bytes),
        live: tally(bytes),
        temporary: Tally::default(),
        oldest_live_ms: Some(7),
    };
    let none = RawNode {
        parent: NodeId::ROOT,
        module: ModuleId::NONE,
        address: 0,
    };
    let total = Tally {
        count: 4,
        bytes: 4000,
    };
    Snapshot {
        started: UNIX_EPOCH + Duration::from_secs(10),
        taken: UNIX_EPOCH + Duration::new(12, 345_678_901),
        still_recording: false,
        stacks: StackTable {
            nodes: vec![
                none,
                node(0, keys as *const () as usize),
                node(1, session as *const () as usize),
            ],
            sites: vec![site(1, 1000), site(2, 3000)],
            contexts: Vec::new(),
            runs: Default::default(),
            threads: vec![RawThread {
                number: 1,
                tid: 11,
                name: "worker \"1\"\n".into(),
                threads: 1,
            }],
            modules,
        },
        survivors: Survivors {
            starts_ms: vec![0, 100],
            list: vec![Survivor {
                site: 1,
                generation: 1,
                live: tally(3000),
            }],
        },
        history: heapray_report::model::History::default(),
        process_memory: Some(heapray_report::model::ProcessMemory {
            rss: 5_000_000,
            ..Default::default()
        }),
        timeline: vec![Moment {
            at_ms: 5,
            heap: 4000,
            ..Moment::default()
        }],
        marks: vec![Mark {
            name: "warm".into(),
            at_ms: 3,
            live: total,
        }],
        totals: RawTotals {
            events: 4,
            allocated: total,
            live: total,
            high_water: total,
            high_water_ms: 6,
            ..RawTotals::default()
        },
        log: None,
        log_given_up: Some("disk full".into()),
        stacks_bounded: None,
        sampling: None,
        lost_events: u64::MAX,
        lost_since_ms: Some(77),
        stacks_cut: 2,
        stacks_incomplete: 3,
        own_bytes: 4,
        collector_cpu_ns: 5,
        hooks: Hooks::Got,
        notes: vec!["a note".into()],
    }
}

fn of_session() -> Input {
    Input::Session {
        view: View::of(session()),
        key: OutputKey::new(OutputKind::Report),
    }
}

fn kept(bytes: &[u8], id: u64) -> KeptInput {
    let path = std::env::temp_dir().join(format!("heapray-kept-{}-{id}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let file = Arc::new(File::open(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    KeptInput {
        id: ReportId::parse(&id.to_string()).unwrap(),
        file: Output::opened(file, bytes.len() as u64),
    }
}

fn made(making: &mut Making, key: OutputKey) -> Vec<u8> {
    let mut out = Vec::new();
    making.output(key, true, &mut out).unwrap();
    out
}

fn helped(input: Input) -> Making {
    let mut making = Making::new(input, &Wanted::default());
    making.begin().unwrap();
    assert!(
        matches!(making.place, Place::Helper(_)),
        "there is no helper"
    );
    making
}

fn here(input: Input) -> Making {
    let here = Here::of(&input, &Wanted::default()).unwrap();
    let mut making = Making::new(input, &Wanted::default());
    making.place = Place::Here(Box::new(here));
    making
}

fn kill(making: &Making) {
    let Place::Helper(helped) = &making.place else {
        panic!("there is no helper")
    };
    let pid = libc::pid_t::try_from(helped.pid()).unwrap();
    // SAFETY: no precondition; the child is not waited for as long as the helper lives.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

#[test]
fn a_helper_makes_the_same_bytes_as_this_process() {
    let (mut there, mut here) = (helped(of_session()), here(of_session()));
    for key in keys() {
        let (there, here) = (made(&mut there, key), made(&mut here, key));
        assert!(there == here && !here.is_empty(), "{key:?}");
    }
    assert_eq!(there.lines().largest, here.lines().largest);
    let table = String::from_utf8(made(&mut there, OutputKey::new(OutputKind::Table))).unwrap();
    assert!(table.contains("making/tests.rs"), "{table}");
}

#[test]
fn a_helper_reads_kept_reports() {
    let report = made(&mut here(of_session()), OutputKey::new(OutputKind::Report));
    let input = |since| Input::Kept {
        report: kept(&report, 7),
        since,
        limit: LIMIT,
    };
    for is_compared in [false, true] {
        let since = || is_compared.then(|| Box::new((kept(&report, 6), SystemTime::UNIX_EPOCH)));
        let input = || input(since());
        let (mut there, mut here) = (helped(input()), here(input()));
        for key in keys() {
            let (there, here) = (made(&mut there, key), made(&mut here, key));
            // Nothing has grown since.
            assert!(!here.is_empty() || is_compared, "{key:?}");
            assert!(there == here, "{key:?}");
        }
    }
    let mut damaged = helped(Input::Kept {
        report: kept(b"no report", 5),
        since: None,
        limit: LIMIT,
    });
    for _ in 0..2 {
        let key = OutputKey::new(OutputKind::Table);
        let failure = damaged.output(key, true, &mut Vec::new()).unwrap_err();
        assert!(matches!(failure, Failure::Damaged(id) if id.to_string() == "5"));
    }
}

#[test]
fn what_kills_the_helper_does_not_get_to_this_process() {
    for begun in [false, true] {
        let mut making = helped(of_session());
        let table = OutputKey::new(OutputKind::Table);
        if begun {
            made(&mut making, table);
        }
        kill(&making);
        let failure = making.output(table, true, &mut Vec::new()).unwrap_err();
        let Failure::Io(error) = failure else {
            panic!("{failure:?}")
        };
        assert!(error.to_string().contains("signal 9"), "{error}");
        assert!(!making.has_moved());
        // The next one has a helper of its own.
        made(&mut making, table);
        assert!(matches!(making.place, Place::Helper(_)));
    }
}

#[test]
fn the_report_of_a_session_that_has_ended_is_written_without_a_helper() {
    let mut making = helped(of_session());
    kill(&making);
    let key = OutputKey::new(OutputKind::Report);
    assert!(making.output(key, true, &mut Vec::new()).is_err());
    assert!(making.has_moved());
    let report = read_file(io::Cursor::new(made(&mut making, key))).unwrap();
    let conditions = report.report.conditions;
    let is_told = |note: &String| note.contains("signal 9 ended the process");
    assert!(
        conditions.notes.iter().any(is_told),
        "{:?}",
        conditions.notes
    );
    assert_eq!(report.report.totals.live.bytes, 4000);
    assert!(!making.has_moved());
}

#[test]
fn what_nobody_waits_for_is_not_made() {
    let mut making = Making::new(of_session(), &Wanted::while_it(|| false));
    let key = OutputKey::new(OutputKind::Report);
    let began = std::time::Instant::now();
    assert!(making.output(key, true, &mut Vec::new()).is_err());
    assert!(!making.has_moved() && !matches!(making.place, Place::Here(_)));
    assert!(began.elapsed() < Duration::from_secs(60));
}
