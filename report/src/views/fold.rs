//! Folds frames that a reader need not see: each run of them becomes one frame with the names of its packages.

use super::rebuild::{placed, restack};
use super::{Kind, Origins};
use crate::Report;
use crate::model::{Frame, Place, StrId};

/// Choice of the folded frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Frames that run the service: the standard library, async runtimes, web frameworks, and the native code between them
    /// and the system.
    Runtime,
    /// Every package that is not the service's own. The standard library and native code stay.
    Packages,
    /// Everything except the service's own code.
    AllButOwn,
}

/// Packages that run services. Packages whose names begin with one of these and `_` belong to the same family
/// (`tower_http`).
const RUNTIME: [&str; 24] = [
    "tokio",
    "hyper",
    "axum",
    "tower",
    "http",
    "h2",
    "mio",
    "futures",
    "tracing",
    "async_std",
    "async_executor",
    "async_io",
    "async_task",
    "smol",
    "polling",
    "actix",
    "warp",
    "rocket",
    "poem",
    "salvo",
    "tonic",
    "rayon",
    "crossbeam",
    "pin_project_lite",
];

/// Native code of the system, which does not belong to any library.
const SYSTEM: [&str; 6] = [
    "libc",
    "libpthread",
    "libgcc_s",
    "ld-linux-x86-64",
    "ld-linux-aarch64",
    "ld-musl",
];

/// Number of packages of a run that are named; the others are counted.
const NAMED: usize = 3;

/// Returns `report` with the frames folded that `fold` names.
///
/// A run of folded frames becomes one frame named after the packages in it, from the root: `[std, tokio, hyper and 2 more]`.
/// Native code is named only if there is nothing else. The name does not have the number of frames, so that runs that differ
/// in nothing else become one frame. If a stack ends in a run, the folded frame is the leaf. Memory, sites and totals are
/// the same as before, in fewer stacks.
#[must_use]
pub fn folded(report: &Report, fold: Fold) -> Report {
    let origins = Origins::of(report);
    let by_package: Vec<bool> = origins
        .packages()
        .iter()
        .map(|package| match fold {
            Fold::AllButOwn => package.kind != Kind::Own,
            Fold::Packages => package.kind == Kind::Package,
            Fold::Runtime => match package.kind {
                Kind::Language => true,
                Kind::Package => is_runtime(&package.name),
                Kind::Native => is_system(&package.name),
                Kind::Own => false,
            },
        })
        .collect();
    let mut run: Vec<u32> = Vec::new();
    restack(report, |path, strings, out| {
        // The code that starts a program is native, and belongs to the runtime: the frames between the root and other frames
        // of the runtime.
        let mut starting = fold == Fold::Runtime;
        run.clear();
        let mut in_run = false;
        for &frame in path {
            let package = origins.index(frame);
            let is_folded = package.is_some_and(|package| {
                let native = origins.kind(frame) == Kind::Native;
                by_package[package as usize] || starting && native
            });
            starting &= is_folded;
            if is_folded {
                run.extend(package.filter(|package| !run.contains(package)));
                in_run = true;
            } else {
                if in_run {
                    let name = strings.intern(&run_name(&origins, &run));
                    out.push(folded_frame(name));
                    run.clear();
                    in_run = false;
                }
                out.push(placed(report, frame));
            }
        }
        if in_run {
            let name = strings.intern(&run_name(&origins, &run));
            out.push(folded_frame(name));
        }
    })
}

fn folded_frame(function: StrId) -> (Frame, Place) {
    let frame = Frame {
        function,
        ..Frame::default()
    };
    (frame, Place::default())
}

fn is_runtime(name: &str) -> bool {
    RUNTIME.iter().any(|family| {
        name.strip_prefix(family)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    })
}

fn is_system(name: &str) -> bool {
    let library = name.split(".so").next().unwrap_or(name);
    SYSTEM.contains(&library)
}

fn run_name(origins: &Origins, run: &[u32]) -> String {
    let package = |&number: &u32| &origins.packages()[number as usize];
    let mut of_code: Vec<&str> = Vec::new();
    let mut native: Vec<&str> = Vec::new();
    for package in run.iter().map(package) {
        let names = match package.kind {
            Kind::Native => &mut native,
            _ => &mut of_code,
        };
        names.push(&package.name);
    }
    let names = if of_code.is_empty() { native } else { of_code };
    let named = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => format!("[{named}]"),
        more => format!("[{named} and {more} more]"),
    }
}
