//! Names that a capture lacks, from files of the same build.

use std::path::Path;

use heapray::symbolize::{FoundNames, NamedLater, SymbolFiles, can_name_later, name_later};
use heapray_report::Report;
use heapray_report::model::Module;
use heapray_report::units::grouped;

use crate::context::Context;

/// Looks up the names that `report` lacks where files of the same build are, on this machine. Says so if it finds any.
pub(crate) fn look_up_by_itself(report: &mut Report, context: &Context) -> Option<NamedLater> {
    let files = SymbolFiles::default();
    if !context.symbolizes() || !can_name_later(report, &files) {
        return None;
    }
    let mut named = name_later(report, &files);
    *report = std::mem::take(&mut named.report);
    for found in named.modules.iter().filter(|found| found.with_lines > 0) {
        context.note(&format!(
            "{} (--no-symbolize leaves it as it is)",
            line(found, report)
        ));
    }
    Some(named)
}

/// Returns a line about what was found of a module.
pub(crate) fn line(found: &FoundNames, report: &Report) -> String {
    let module = report.modules.get(found.module);
    let path = module.map_or("", |module| &*module.path);
    let FoundNames {
        addresses,
        named,
        with_lines,
        ..
    } = found;
    let [addresses, named, with_lines] =
        [addresses, named, with_lines].map(|count| grouped(*count as u64));
    format!("{path}: {with_lines} of {addresses} addresses have a line now, {named} a function")
}

/// Returns how a file of the module is recognized.
pub(crate) fn identity(module: &Module) -> String {
    match (&*module.build_id, &*module.hash) {
        ("", "") => "without a build id".to_owned(),
        ("", hash) => format!("without a build id, htlhash {hash}"),
        (build_id, _) => format!("build id {build_id}"),
    }
}

/// Returns the file name of a path.
pub(crate) fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(
        || path.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}
