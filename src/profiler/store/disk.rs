//! Heapray's files in a directory: found by name, counted, and cleared of what dead processes have left.
//!
//! A file with two links counts once. Open files without a name are not seen.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::ReportId;
use super::archive::REPORTS;
use super::directory::is_private;
use super::name::Passing;
use crate::os::held;

/// Most files that are looked at in a directory, so that it takes bounded time.
pub(super) const LOOKED_AT: usize = 10_000;

/// One of our files.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) what: What,
    pub(super) len: u64,
    pub(super) modified: SystemTime,
    /// Device and inode.
    pub(super) inode: (u64, u64),
}

/// The kind of a file, by its name and place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Passing(Passing),
    /// A finished output under the name that its users know.
    Output,
    /// A kept report.
    Report(ReportId),
    Note,
}

/// Lists our files in `directory` and in its folder of kept reports.
pub(super) fn scan(directory: &Path) -> Vec<Found> {
    let mut found = entries(directory, |name| {
        let output = || is_output(name).then_some(What::Output);
        Passing::of(name).map(What::Passing).or_else(output)
    });
    let reports = directory.join(REPORTS);
    if is_private(&reports).is_ok() {
        found.extend(entries(&reports, |name| {
            let id = |ending: &str| ReportId::parse(name.to_str()?.strip_suffix(ending)?);
            let report = || id(".bin").map(What::Report);
            let note = || id(".note").map(|_| What::Note);
            let passing = Passing::of(name).map(What::Passing);
            passing.or_else(report).or_else(note)
        }));
    }
    found
}

fn entries(directory: &Path, what: impl Fn(&OsStr) -> Option<What>) -> Vec<Found> {
    let entries = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .take(LOOKED_AT);
    let ours = entries.flatten().filter_map(|entry| {
        let what = what(&entry.file_name())?;
        let about = entry.metadata().ok().filter(Metadata::is_file)?;
        Some(Found {
            path: entry.path(),
            what,
            len: about.len(),
            modified: about.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            inode: inode(&about),
        })
    });
    ours.collect()
}

fn inode(about: &Metadata) -> (u64, u64) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (about.dev(), about.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = about;
        (0, super::name::unique())
    }
}

/// Returns whether `name` is like `memray-report.bin`: a stem, how it was made, an extension.
fn is_output(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    [
        ("memray-report.", "bin"),
        ("memray-flamegraph.", "html"),
        ("memray-stats.", "txt"),
    ]
    .into_iter()
    .any(|(stem, extension)| {
        let rest = name.strip_prefix(stem);
        let making = rest.and_then(|rest| rest.strip_suffix(extension));
        making.is_some_and(|making| {
            let known = ["", "full", "each", "v12", "previous"];
            making.split('.').all(|part| known.contains(&part))
        })
    })
}

/// Bytes of files, each of which may have several links.
#[derive(Debug, Default)]
pub(super) struct Sum {
    files: HashMap<(u64, u64), (u64, u32)>,
    pub(super) bytes: u64,
}

impl Sum {
    pub(super) fn of<'f>(found: impl IntoIterator<Item = &'f Found>) -> Sum {
        let mut sum = Sum::default();
        for file in found {
            let (_, names) = sum.files.entry(file.inode).or_insert((file.len, 0));
            *names += 1;
            if *names == 1 {
                sum.bytes += file.len;
            }
        }
        sum
    }

    /// Returns whether the file has no other link here.
    pub(super) fn is_last(&self, file: &Found) -> bool {
        self.files
            .get(&file.inode)
            .is_some_and(|(_, names)| *names == 1)
    }

    /// Notes that one link of a file was removed.
    pub(super) fn remove(&mut self, file: &Found) {
        if let Some((len, names)) = self.files.get_mut(&file.inode) {
            *names -= 1;
            if *names == 0 {
                self.bytes -= *len;
                self.files.remove(&file.inode);
            }
        }
    }
}

/// Returns how many bytes heapray has in `directory`.
pub(super) fn bytes(directory: &Path) -> u64 {
    Sum::of(&scan(directory)).bytes
}

/// Removes what dead processes have left and nobody can use: drafts, reserved disk space, reports without a note.
pub(super) fn sweep(directory: &Path) {
    for file in scan(directory) {
        let useless = match file.what {
            What::Passing(Passing::Draft) => true,
            What::Report(_) => !file.path.with_extension("note").exists(),
            _ => false,
        };
        // A living owner may have written the note meanwhile.
        if useless
            && let Some(_claimed) = held::claim(&file.path)
            && (file.what == What::Passing(Passing::Draft)
                || !file.path.with_extension("note").exists())
        {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(&file.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_known_by_name() {
        for ours in [
            "memray-report.bin",
            "memray-report.previous.bin",
            "memray-report.full.each.v12.bin",
            "memray-flamegraph.full.html",
            "memray-stats.txt",
        ] {
            assert!(is_output(OsStr::new(ours)), "{ours}");
        }
        for other in [
            "memray-report.mine.bin",
            "memray-report-4711.bin",
            "memray-table.txt",
            "report.bin",
        ] {
            assert!(!is_output(OsStr::new(other)), "{other}");
        }
    }
}
