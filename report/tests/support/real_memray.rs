//! Helpers that find and run the real memray.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heapray_report::Report;
use heapray_report::model::StackId;

use super::names;

/// Finds memray's command, or returns the reason why it is missing.
pub fn memray() -> Result<PathBuf, String> {
    let mut candidates: Vec<PathBuf> = env::var_os("HEAPRAY_MEMRAY")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    if let Some(path) = env::var_os("PATH") {
        candidates.extend(env::split_paths(&path).map(|dir| dir.join("memray")));
    }
    candidates.push("/opt/heapray-venv/bin/memray".into());
    let Some(found) = candidates.into_iter().find(|path| path.is_file()) else {
        return Err("no memray in HEAPRAY_MEMRAY, PATH or /opt/heapray-venv".into());
    };
    let version = Command::new(&found).arg("--version").output();
    let version = version.map_err(|e| format!("{} does not run: {e}", found.display()))?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    if version.starts_with("1.20.") {
        Ok(found)
    } else {
        Err(format!("{} is {version}, not 1.20", found.display()))
    }
}

/// Expands to memray's command. Without it the test is skipped, or fails if `CI` is set.
macro_rules! memray_or_skip {
    () => {
        match $crate::support::real_memray::memray() {
            Ok(path) => path,
            Err(reason) => {
                assert!(std::env::var_os("CI").is_none(), "{reason}");
                println!("skipped: {reason}");
                return;
            }
        }
    };
}

/// Makes an empty directory for the test of that name.
pub fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Returns a call stack as the scripts in tests/memray print it.
pub fn spell(report: &Report, stack: StackId) -> String {
    let frames: Vec<String> = names(report, stack)
        .into_iter()
        .map(|(function, file, line)| format!("{function} {file}:{line}"))
        .collect();
    frames.join(" > ")
}
