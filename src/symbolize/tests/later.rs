//! Tests of reports that are named again.

use super::{BIAS, Fake, functions, module, push, site, snapshot};
use crate::capture::event::{Kind, NodeId};
use crate::collector::snapshot::ModuleId;
use crate::symbolize::assemble::assemble;
use crate::symbolize::{FoundBefore, NameMode, ReportOptions, SymbolFiles, name_later};

const GENERATED: &str = "app::generated @ src/gen.rs : 0";
const HELPER: &str = "app::helper @ src/help.rs : 7";

#[test]
fn a_frame_is_a_part_of_code_without_a_line_only_where_it_is_inlined() {
    // The lookup answers for the last address first: there, equal frames are met as inlined calls.
    let frames = [
        vec![GENERATED],
        vec![GENERATED, HELPER],
        vec![HELPER],
        vec!["app::main @ src/main.rs : 3", HELPER],
    ];
    let mut fake = Fake::default();
    for (offset, frames) in (0x1000..).zip(&frames) {
        fake.places
            .insert(offset, frames.iter().map(ToString::to_string).collect());
    }
    let mut snapshot = snapshot(vec![module("/nowhere/app", true)]);
    let mut add = |parent, offset, bytes| {
        let node = push(&mut snapshot, parent, ModuleId(0), BIAS + offset + 1);
        let site = site(1, node, Kind::Malloc, bytes);
        snapshot.stacks.sites.push(site);
        node
    };
    for (size, offset) in [(100, 0x1000), (200, 0x1001), (300, 0x1003)] {
        let node = add(NodeId::ROOT, offset, size);
        add(node, 0x1002, size + 1);
    }
    let options = ReportOptions::new().names(NameMode::Both).by_address(true);
    let report = assemble(&snapshot, &options, &mut fake).report;
    let named = name_later(
        &report,
        &SymbolFiles::default(),
        &mut FoundBefore::default(),
    )
    .report;
    let stacks = |report: &heapray_report::Report| {
        let mut stacks: Vec<_> = report
            .sites
            .iter()
            .map(|site| (site.allocated.bytes, functions(report, site.stack)))
            .collect();
        stacks.sort();
        stacks
    };
    assert_eq!(stacks(&report).len(), 6);
    assert_eq!(stacks(&named), stacks(&report));
}
