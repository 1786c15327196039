//! Names that were found before, in the user's cache folder: a second report of the same build does not wait for its debug file.
//!
//! One file for each build, `$XDG_CACHE_HOME/heapray/names/BUILD-ID.json`. Whatever goes wrong here costs only time.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use heapray::symbolize::FoundBefore;
use heapray_report::Report;

/// Most bytes of all files. The ones that were used longest ago are removed.
const MOST: u64 = 256 << 20;
/// Most bytes of a file that is read.
const LARGEST: u64 = 128 << 20;

/// Adds the names that were found before of the builds in `report`.
pub(crate) fn load(report: &Report, before: &mut FoundBefore) {
    let Some(folder) = folder() else {
        return;
    };
    for module in &report.modules {
        let Some(path) = file(&folder, &module.build_id) else {
            continue;
        };
        let is_read = |about: &fs::Metadata| about.is_file() && about.len() <= LARGEST;
        if before.has(&module.build_id) || !path.metadata().is_ok_and(|about| is_read(&about)) {
            continue;
        }
        if let Ok(text) = fs::read(&path) {
            before.load(&module.build_id, &text);
            // It is in use: others are removed first. A file that cannot be changed is removed earlier.
            let _ = fs::File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
    }
}

/// Writes the names that are new in `before`.
pub(crate) fn save(before: &mut FoundBefore) {
    let Some(folder) = folder() else {
        return;
    };
    let mut has_written = false;
    for (build_id, text) in before.changed() {
        if let Some(path) = file(&folder, build_id) {
            has_written |= write(&folder, &path, &text).is_ok();
        }
    }
    if has_written {
        remove_beyond(&folder, MOST);
    }
}

fn write(folder: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text)?;
    file.persist(path)?;
    Ok(())
}

/// Removes the files that were used longest ago, until there are at most `most` bytes.
fn remove_beyond(folder: &Path, most: u64) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(SystemTime, u64, PathBuf)> = files
        .filter_map(|file| {
            let about = file.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((about.modified().ok()?, about.len(), file.path()))
        })
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(_, length, _)| length).sum();
    for (_, length, path) in files {
        if total <= most {
            return;
        }
        if fs::remove_file(path).is_ok() {
            total -= length;
        }
    }
}

/// Returns the file of a build; `None` if that is not a build id, which may come from a hostile capture.
fn file(folder: &Path, build_id: &str) -> Option<PathBuf> {
    let is_id = (2..=128).contains(&build_id.len())
        && build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| folder.join(format!("{build_id}.json")))
}

fn folder() -> Option<PathBuf> {
    let folder = |name: &str| {
        let value = env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from).filter(|path| path.is_absolute())
    };
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("heapray/names"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn files_that_were_used_longest_ago_are_removed_first() {
        let folder = tempfile::tempdir().unwrap();
        for (name, age) in [("aa", 30), ("bb", 10), ("cc", 20)] {
            let path = file(folder.path(), name).unwrap();
            write(folder.path(), &path, &[b' '; 100]).unwrap();
            let used = SystemTime::now() - Duration::from_secs(age);
            fs::File::open(&path).unwrap().set_modified(used).unwrap();
        }
        remove_beyond(folder.path(), 250);
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["bb.json", "cc.json"]);
    }

    #[test]
    fn a_build_id_does_not_lead_out_of_the_folder() {
        for id in ["", "../../etc/passwd", "ab/cd", "a", "zz"] {
            assert_eq!(file(Path::new("/cache"), id), None, "{id}");
        }
    }
}
