//! Any bytes are a debug file or not, and a report that gets names from them keeps its call sites.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use heapray::symbolize::{ElfFile, FoundBefore, SymbolFiles, can_name_later, name_later};
use heapray_report::Report;
use heapray_report::model::{
    Allocator, ContextId, Frame, FrameId, Module, Place, Site, StackId, Tally, Thread, ThreadId,
};
use libfuzzer_sys::fuzz_target;

/// Code of the module, in addresses of the file.
const CODE: std::ops::Range<u64> = 0x100..0x500;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("heapray-fuzz-names-{}", std::process::id()))
});

fuzz_target!(|bytes: &[u8]| {
    fs::write(&*FILE, bytes).expect("the folder for temporary files can be written to");
    let files = SymbolFiles {
        binaries: vec![FILE.clone()],
        ..SymbolFiles::default()
    };
    let report = report();
    let _ = can_name_later(&report, &files);
    let mut before = FoundBefore::default();
    let named = name_later(&report, &files, &mut before).report;
    let count = |report: &Report| -> u64 { report.sites.iter().map(|site| site.live.count).sum() };
    assert_eq!(count(&named), count(&report), "each call site stays");
    let again = name_later(&report, &files, &mut before).report;
    assert_eq!(count(&again), count(&report), "also the second time");
    before.load("c0ffee", bytes);
});

/// Returns a report with call sites all over the code.
fn report() -> Report {
    let build_id = ElfFile::read(&FILE).map_or_else(String::new, |elf| elf.build_id);
    let mut report = Report {
        modules: vec![Module {
            path: FILE.to_string_lossy().into_owned(),
            build_id,
            start: CODE.start,
            limit: CODE.end,
            address: CODE.start,
            ..Module::default()
        }],
        ..Report::default()
    };
    let name = report.strings.intern("main");
    report.threads.push(Thread {
        tid: 1,
        name,
        threads: 1,
    });
    for (nth, address) in CODE.step_by(7).enumerate() {
        let function = report.strings.intern(&format!("names+{address:#x}"));
        report.frames.push(Frame {
            function,
            file: function,
            line: 0,
        });
        report.places.push(Place {
            module: Some(0),
            address,
            inlined: false,
        });
        let frame = FrameId(u32::try_from(nth).expect("a small number"));
        let one = Tally { count: 1, bytes: 8 };
        report.sites.push(Site {
            thread: ThreadId(0),
            stack: report.stacks.child(StackId::EMPTY, frame),
            context: ContextId::NONE,
            allocator: Allocator::Malloc,
            allocated: one,
            high_water: one,
            live: one,
            temporary: Tally::default(),
            oldest_live_ms: None,
        });
    }
    report
}
