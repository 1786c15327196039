//! Private directories below the system's temporary one, used where no directory was set: made, known as dead, taken over.
//!
//! ```text
//! /tmp/heapray-memory-leak-4711-0123456789abcdef     the program, its process, 64 random bits
//! ```
//!
//! A process holds the lock of its directory as long as it lives (systemd-tmpfiles(8) respects such locks). The next process
//! of the same program and user takes over what a dead one has left. So there is at most one such directory for each living
//! process, and its bound holds over restarts.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::Archive;
use super::archive::REPORTS;
use super::directory::{is_private, private};
use super::disk::{self, LOOKED_AT, What};
use super::file::is_same;
use super::name::Passing;
use crate::os::{held, unique};

/// Most bytes of the program's name in the directory's name.
const PROGRAM: usize = 40;

/// Returns a new name for a directory of this process.
pub(super) fn new_name() -> String {
    let pid = std::process::id();
    format!("{}{pid}-{:016x}", stem(), unique::unique())
}

/// Returns the prefix of the directories of this program.
fn stem() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    // The kernel appends this if the program's file was replaced.
    let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    let plain: String = name.chars().map(plain).take(PROGRAM).collect();
    format!("heapray-{plain}-")
}

/// Makes the directory at `path` if it is missing, and holds its lock in `lock`.
pub(super) fn make(path: &Path, lock: &mut Option<File>) -> io::Result<()> {
    for _ in 0..10 {
        private(path)?;
        let holds = |file: &File| {
            let (own, there) = (file.metadata(), fs::metadata(path));
            own.is_ok_and(|own| there.is_ok_and(|there| is_same(&own, &there)))
        };
        if lock.as_ref().is_some_and(holds) {
            return Ok(());
        }
        let directory = File::open(path)?;
        // A process that clears up may have removed it before it was locked: then it is made again.
        if held::hold_directory(&directory) && holds(&directory) {
            *lock = Some(directory);
            return Ok(());
        }
    }
    // The directory is used even without the lock: a process that clears up does not touch what is being written.
    Ok(())
}

/// Moves what dead processes of this program and user have left into `own`; `make` makes that if there is anything.
pub(super) fn inherit(own: &Path, make: impl Fn() -> io::Result<()>) {
    let (Some(base), stem) = (own.parent(), stem()) else {
        return;
    };
    let entries = fs::read_dir(base).into_iter().flatten().take(LOOKED_AT);
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let rest = name.to_str().and_then(|name| name.strip_prefix(&stem));
        if path == own || !rest.is_some_and(is_process) || is_private(&path).is_err() {
            continue;
        }
        let Some(_claimed) = held::claim_directory(&path) else {
            continue;
        };
        let moved = move_all(&path, own, &make);
        if let Err(error) = moved {
            let path = path.display();
            tracing::warn!(%path, %error, "what a former process has left cannot be taken over");
        }
    }
}

/// `4711-0123456789abcdef`.
fn is_process(rest: &str) -> bool {
    let Some((pid, unique)) = rest.split_once('-') else {
        return false;
    };
    let digits = |text: &str, hex: bool| {
        let digit = |byte: u8| byte.is_ascii_digit() || hex && byte.is_ascii_hexdigit();
        !text.is_empty() && text.bytes().all(digit)
    };
    digits(pid, false) && digits(unique, true) && unique.len() == 16
}

fn move_all(from: &Path, own: &Path, make: &impl Fn() -> io::Result<()>) -> io::Result<()> {
    disk::sweep(from);
    let found = disk::scan(from);
    if !found.is_empty() {
        make()?;
        Archive::in_directory(own).take_over(&Archive::in_directory(from))?;
    }
    #[cfg(feature = "push")]
    take_over_pushes(from, own, make)?;
    for file in found {
        match file.what {
            // No other file has its name.
            What::Passing(Passing::Log(_)) => move_to(&file.path, own)?,
            What::Output if file.path.ends_with("memray-report.bin") => {
                fs::rename(&file.path, own.join("memray-report.previous.bin"))?;
            }
            // An output that was made from a report, or a previous report.
            What::Output => fs::remove_file(&file.path)?,
            What::Passing(Passing::Draft) | What::Report(_) | What::Note => {}
        }
    }
    // A file that is not ours stays, and so does the directory.
    let _ = fs::remove_dir(from.join(REPORTS));
    let _ = fs::remove_dir(from);
    Ok(())
}

/// Moves the profiles that wait to be pushed. Their names say whose they are.
#[cfg(feature = "push")]
fn take_over_pushes(from: &Path, own: &Path, make: &impl Fn() -> io::Result<()>) -> io::Result<()> {
    use crate::push::FOLDER;
    let (from, own) = (from.join(FOLDER), own.join(FOLDER));
    if is_private(&from).is_err() {
        return Ok(());
    }
    make()?;
    private(&own)?;
    let entries = fs::read_dir(&from)?.take(LOOKED_AT);
    for entry in entries.flatten() {
        move_to(&entry.path(), &own)?;
    }
    let _ = fs::remove_dir(from);
    Ok(())
}

fn move_to(path: &Path, directory: &Path) -> io::Result<()> {
    let to: PathBuf = path
        .file_name()
        .map_or_else(|| directory.to_owned(), |name| directory.join(name));
    fs::rename(path, to)
}
