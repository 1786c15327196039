//! The process that was recorded, and the directories of its sources.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use heapray_report::memray::in_one_line;
use heapray_report::model::{self, About, Mark};

use super::places::FrameTable;
use super::trim::library_dir;
use crate::collector::Process;
use crate::collector::snapshot::Module;

/// memray's number for `malloc` (capture format, section 1).
const MALLOC: u8 = 3;

/// The most directories of one kind that a report names.
const DIRS_LIMIT: usize = 64;

/// Returns the directories of the sources of the frames in `table`.
pub(super) fn code(table: &FrameTable) -> About {
    let dirs = Dirs::of(
        table
            .files()
            .into_iter()
            .map(|file| table.strings.get(file)),
    );
    About {
        library_dir: dirs.library,
        package_dirs: dirs.packages.into_iter().take(DIRS_LIMIT).collect(),
        source_dirs: dirs.sources.into_iter().take(DIRS_LIMIT).collect(),
        producer: concat!("heapray ", env!("CARGO_PKG_VERSION")).to_owned(),
        python_allocator: MALLOC,
        ..About::default()
    }
}

/// Returns `about` with the data of `process`.
pub(crate) fn process(about: About, process: Process) -> About {
    About {
        command_line: process.command_line,
        pid: process.pid,
        start_ms: unix_ms(process.started),
        ..about
    }
}

/// Converts `module` for formats that contain addresses.
pub(super) fn module(module: &Module) -> model::Module {
    // A module without code has no addresses, but it stays in the list, so that the numbers of the others do not change.
    let (start, limit, offset) = module.code.map_or((module.start, module.end, 0), |code| {
        (code.start, code.end, code.offset)
    });
    model::Module {
        path: in_one_line(&module.path.to_string_lossy()).into_owned(),
        build_id: module
            .build_id
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        start,
        limit,
        offset,
    }
}

/// Returns `mark` with a name that is safe to show: one line without control characters.
pub(crate) fn mark(mark: &Mark) -> Mark {
    Mark {
        name: in_one_line(&mark.name).into_owned(),
        ..mark.clone()
    }
}

pub(super) fn unix_ms(time: SystemTime) -> i64 {
    let ms =
        |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => ms(since),
        Err(before) => -ms(before.duration()),
    }
}

/// Directories of sources, as the compiler named them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Dirs {
    library: String,
    packages: BTreeSet<String>,
    sources: BTreeSet<String>,
}

impl Dirs {
    fn of<'f>(files: impl Iterator<Item = &'f str>) -> Dirs {
        let mut dirs = Dirs::default();
        for file in files {
            if let Some(dir) = library_dir(file) {
                if dirs.library.is_empty() {
                    dirs.library = dir.to_owned();
                }
            } else if let Some(dir) = package_dir(file) {
                dirs.packages.insert(dir.to_owned());
            } else if let Some(dir) = source_dir(file) {
                dirs.sources.insert(dir.to_owned());
            }
        }
        dirs
    }
}

/// Returns the directory of a cargo package. Cargo unpacks packages below `$CARGO_HOME/registry/src/<index>`, and checks git
/// dependencies out below `$CARGO_HOME/git/checkouts/<repository>/<commit>`.
fn package_dir(file: &str) -> Option<&str> {
    let below = |marker: &str, depth: usize| {
        let start = file.find(marker)? + marker.len();
        let end = file[start..].match_indices('/').nth(depth - 1)?.0;
        Some(&file[..start + end])
    };
    below("/registry/src/", 1).or_else(|| below("/git/checkouts/", 2))
}

/// Returns the directory of a Rust source outside of the library and packages: up to `src`, if the path has one.
fn source_dir(file: &str) -> Option<&str> {
    let dir = &file[..=file.strip_suffix(".rs")?.rfind('/')?];
    if file.starts_with("/rustc/") || file.starts_with("/rust/deps/") {
        return None;
    }
    match dir.rfind("/src/") {
        Some(at) => Some(&dir[..at + "/src".len()]),
        None => dir.strip_suffix('/'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_grouped_by_kind() {
        let files = [
            "/rustc/1.95.0/library/core/src/fmt/mod.rs",
            "/rust/deps/hashbrown-0.15.5/src/raw/mod.rs",
            "/home/dev/.cargo/registry/src/index-19/bytes-1.11.0/src/lib.rs",
            "/home/dev/.cargo/registry/src/index-19/tokio-1.54.1/src/runtime/mod.rs",
            "/home/dev/.cargo/git/checkouts/axum-1a/2b3c/axum/src/lib.rs",
            "/home/me/app/src/main.rs",
            "/home/me/app/src/routes/perform.rs",
            "/home/me/src/other/src/lib.rs",
            "/home/me/app/tests/it.rs",
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "malloc.c",
            "lib.rs",
            "",
        ];
        assert_eq!(
            Dirs::of(files.into_iter()),
            Dirs {
                library: "/rustc/1.95.0/library".into(),
                packages: [
                    "/home/dev/.cargo/git/checkouts/axum-1a/2b3c",
                    "/home/dev/.cargo/registry/src/index-19",
                ]
                .map(String::from)
                .into(),
                sources: [
                    "/home/me/app/src",
                    "/home/me/app/tests",
                    "/home/me/src/other/src"
                ]
                .map(String::from)
                .into(),
            }
        );
    }

    #[test]
    fn times_before_the_epoch_are_negative() {
        let second = std::time::Duration::from_secs(1);
        assert_eq!(unix_ms(UNIX_EPOCH + second), 1000);
        assert_eq!(unix_ms(UNIX_EPOCH - second), -1000);
    }
}
