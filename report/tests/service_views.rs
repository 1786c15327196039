//! Tests of folding, readable names and the parts of the resident memory, on call stacks like those of services.
#![allow(clippy::unwrap_used)]

use heapray_report::Report;
use heapray_report::model::{
    About, Allocator, AllocatorMemory, ContextId, Frame, FrameId, ProcessMemory, Site, StackId,
    Tally, Thread, ThreadId,
};
use heapray_report::views::{Fold, Kind, Origins, Part, Share, folded, readable, resident_parts};
use proptest::prelude::*;

const REGISTRY: &str = "/home/dev/.cargo/registry/src/index-1949";

fn tally(count: u64, bytes: u64) -> Tally {
    Tally { count, bytes }
}

fn empty_report() -> Report {
    let mut report = Report {
        about: About {
            command_line: "/usr/bin/shop".into(),
            ..About::default()
        },
        ..Report::default()
    };
    let name = report.strings.intern("worker");
    report.threads.push(Thread {
        tid: 1,
        name,
        threads: 1,
    });
    report
}

/// Adds a site with frames (function, file, line), root first. The tallies are allocated, live and temporary.
fn add(
    report: &mut Report,
    allocator: Allocator,
    frames: &[(&str, &str, u32)],
    [allocated, live, temporary]: [Tally; 3],
) {
    let mut stack = StackId::EMPTY;
    for (function, file, line) in frames {
        let frame = Frame {
            function: report.strings.intern(function),
            file: report.strings.intern(&file.replace('~', REGISTRY)),
            line: *line,
        };
        let known = report.frames.iter().position(|known| *known == frame);
        let id = known.unwrap_or_else(|| {
            report.frames.push(frame);
            report.frames.len() - 1
        });
        stack = report.stacks.child(stack, FrameId(id as u32));
    }
    report.sites.push(Site {
        context: ContextId::NONE,
        thread: ThreadId(0),
        stack,
        allocator,
        allocated,
        high_water: live,
        live,
        temporary,
        oldest_live_ms: None,
    });
    report.totals.allocated += allocated;
    report.totals.live += live;
    report.totals.high_water += live;
}

fn lines(report: &Report) -> Vec<Vec<String>> {
    report
        .sites
        .iter()
        .map(|site| {
            let mut path: Vec<String> = report
                .stacks
                .leaf_to_root(site.stack)
                .map(|frame| {
                    let frame = report.frames[frame.0 as usize];
                    format!("{}:{}", report.strings.get(frame.function), frame.line)
                })
                .collect();
            path.reverse();
            path
        })
        .collect()
}

/// Makes a report of an axum service whose handler awaits a function that fills a vector.
fn service() -> Report {
    let mut report = empty_report();
    let frames = [
        ("_start", "/usr/bin/shop", 0),
        ("main", "/usr/bin/shop", 0),
        (
            "std::sys::backtrace::__rust_begin_short_backtrace",
            "/rustc/0a/library/std/src/sys/backtrace.rs",
            166,
        ),
        ("shop::main", "src/main.rs", 12),
        (
            "tokio::runtime::runtime::Runtime::block_on",
            "~/tokio-1.54.1/src/runtime/runtime.rs",
            342,
        ),
        (
            "tokio::runtime::task::harness::Harness<T,S>::run",
            "~/tokio-1.54.1/src/runtime/task/harness.rs",
            31,
        ),
        (
            "<hyper::server::Connection<I,S> as core::future::future::Future>::poll",
            "~/hyper-1.6.0/src/server.rs",
            9,
        ),
        (
            "axum::routing::route::Route<E>::call::{{closure}}",
            "~/axum-0.8.1/src/routing/route.rs",
            50,
        ),
        (
            "<core::pin::Pin<P> as core::future::future::Future>::poll",
            "/rustc/0a/library/core/src/future/future.rs",
            124,
        ),
        ("shop::api::get::{{closure}}", "src/api.rs", 20),
        ("shop::cart::Cart<T>::add", "src/cart.rs", 6),
        ("shop::cart::Cart<T>::add::{{closure}}", "src/cart.rs", 7),
        (
            "serde_json::de::from_slice",
            "~/serde_json-1.0.1/src/de.rs",
            2500,
        ),
        (
            "alloc::vec::Vec<T,A>::push",
            "/rustc/0a/library/alloc/src/vec/mod.rs",
            2000,
        ),
        ("malloc", "/lib/x86_64-linux-gnu/libc.so.6", 0),
    ];
    add(
        &mut report,
        Allocator::Malloc,
        &frames,
        [tally(2, 20), tally(1, 10), tally(0, 0)],
    );
    report
}

#[test]
fn folded_runs_are_named_after_their_packages() {
    let report = service();
    let kept = |fold| lines(&folded(&report, fold)).remove(0).join(" > ");
    assert_eq!(
        kept(Fold::Runtime),
        "[std]:0 > shop::main:12 > [tokio, hyper, axum and 1 more]:0 > shop::api::get::{{closure}}:20 > \
         shop::cart::Cart<T>::add:6 > shop::cart::Cart<T>::add::{{closure}}:7 > serde_json::de::from_slice:2500 > \
         [alloc]:0"
    );
    let packages = kept(Fold::Packages);
    assert!(
        packages.contains("shop::main:12 > [tokio, hyper, axum]:0 > <core::pin::Pin<P>"),
        "{packages}"
    );
    assert!(
        packages.contains("{{closure}}:7 > [serde_json]:0 > alloc::vec"),
        "{packages}"
    );
    let own = kept(Fold::AllButOwn);
    assert!(
        own.ends_with("Cart<T>::add::{{closure}}:7 > [serde_json, alloc]:0"),
        "{own}"
    );

    // A folded frame still counts as code of the package whose name it has.
    let own = folded(&report, Fold::AllButOwn);
    let origins = Origins::of(&own);
    let kinds: Vec<Kind> = (0..own.frames.len() as u32)
        .map(|n| origins.kind(FrameId(n)))
        .collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Own).count(), 4);
    assert!(kinds.contains(&Kind::Package));

    let mut native = empty_report();
    let start = [("_start", "/usr/bin/shop", 0), ("main", "/usr/bin/shop", 0)];
    add(&mut native, Allocator::Malloc, &start, [tally(1, 1); 3]);
    let native = folded(&native, Fold::Runtime);
    assert_eq!(lines(&native), [["[shop]:0"]]);
    assert_eq!(Origins::of(&native).kind(FrameId(0)), Kind::Native);
}

#[test]
fn readable_stacks_are_the_functions_that_were_written() {
    let readable = readable(&service());
    assert_eq!(
        lines(&readable).remove(0),
        [
            "_start:0",
            "main:0",
            "shop::main:12",
            "tokio::runtime::task::harness::Harness::run:31",
            "shop::api::get:20",
            "shop::cart::Cart::add:7",
            "serde_json::de::from_slice:2500",
            "alloc::vec::Vec::push:2000",
            "malloc:0",
        ]
    );
}

#[test]
fn true_recursion_and_a_leaf_of_the_runtime_stay() {
    let mut report = empty_report();
    let walk = ("shop::walk", "src/walk.rs", 3);
    let poll = ("tokio::io::Read::poll", "~/tokio-1.54.1/src/io.rs", 8);
    add(
        &mut report,
        Allocator::Malloc,
        &[walk, walk, poll],
        [tally(1, 1); 3],
    );
    assert_eq!(
        lines(&readable(&report)),
        [["shop::walk:3", "shop::walk:3", "tokio::io::Read::poll:8"]]
    );
}

fn bytes_of(parts: &[Part], name: &str) -> u64 {
    parts
        .iter()
        .find(|part| part.name == name)
        .map_or(0, |part| part.bytes)
}

#[test]
fn the_resident_size_is_the_sum_of_its_parts() {
    let mut report = empty_report();
    let main = ("shop::main", "src/main.rs", 1);
    add(
        &mut report,
        Allocator::Malloc,
        &[main],
        [tally(1, 600), tally(1, 600), tally(0, 0)],
    );
    add(
        &mut report,
        Allocator::Mmap,
        &[main],
        [tally(1, 999), tally(1, 999), tally(0, 0)],
    );
    report.process_memory = Some(ProcessMemory {
        rss: 3_000,
        anonymous: Some(2_400),
        files: Some(500),
        shared: Some(100),
        swapped: None,
        stacks: Some(50),
        stack_count: 2,
        own_mapped: 200,
        own_heap: 30,
        allocators: vec![AllocatorMemory::new("glibc", 700, 400)],
        cgroup: Some(5_000),
        cgroup_limit: None,
    });
    let parts = resident_parts(&report);
    let found: Vec<(&str, u64, Share)> = parts.iter().map(|p| (p.name, p.bytes, p.share)).collect();
    assert_eq!(
        found,
        [
            ("Live blocks", 600, Share::Resident),
            ("Rounding and unrecorded blocks", 70, Share::Resident),
            ("Kept by the allocator", 400, Share::Resident),
            ("Thread stacks", 50, Share::Resident),
            ("Heapray", 230, Share::Resident),
            ("Mapped files", 500, Share::Resident),
            ("Shared memory", 100, Share::Resident),
            ("Unexplained", 1_050, Share::Resident),
            ("Control group", 5_000, Share::Beside),
        ]
    );
    let rest = parts
        .iter()
        .find(|part| part.name == "Unexplained")
        .unwrap();
    assert!(
        rest.explanation.contains("999.000B mapped with mmap"),
        "{}",
        rest.explanation
    );
    assert!(resident_parts(&empty_report()).is_empty());
}

proptest! {
    #[test]
    fn parts_add_up_for_all_figures(
        [rss, live, mapped, in_use, kept]: [u32; 5],
        [stacks, own_mapped, own_heap, files, shared]: [u32; 5],
        known: bool,
    ) {
        let mut report = empty_report();
        let of = |bytes: u32| tally(1, u64::from(bytes));
        add(&mut report, Allocator::Malloc, &[], [of(live); 3]);
        add(&mut report, Allocator::Mmap, &[], [of(mapped); 3]);
        let some = |bytes: u32| known.then_some(u64::from(bytes));
        report.process_memory = Some(ProcessMemory {
            rss: rss.into(),
            files: some(files),
            shared: some(shared),
            stacks: some(stacks),
            own_mapped: own_mapped.into(),
            own_heap: own_heap.into(),
            allocators: vec![AllocatorMemory::new("x", in_use.into(), kept.into())],
            ..ProcessMemory::default()
        });
        let parts = resident_parts(&report);
        let sum = |share: Share| -> u64 { parts.iter().filter(|p| p.share == share).map(|p| p.bytes).sum() };
        prop_assert_eq!(sum(Share::Resident) - sum(Share::NotResident), u64::from(rss));
        prop_assert_eq!(bytes_of(&parts, "Live blocks"), u64::from(live));
        prop_assert!(bytes_of(&parts, "Unexplained") == 0 || bytes_of(&parts, "Not resident") == 0);
    }
}
