//! Steps after a peer's run: measures the size of its recording, and makes its flame graph with the peer's tools.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use heapray_bench_workloads::Result;

use crate::contenders::{Contender, Setup};
use crate::process::Done;
use crate::programs::Programs;

/// Adds `recording_bytes`, `page_bytes` and `finish_ns` of a peer whose recording is processed from outside.
pub(crate) fn finish(contender: &Contender, programs: &Programs, done: &mut Done) -> Result<()> {
    let folder = done.folder.path().to_owned();
    let Some(recording) = recording(contender, &folder) else {
        return Ok(());
    };
    let bytes = recording.metadata()?.len() as f64;
    done.values.insert("recording_bytes".into(), bytes);
    let page = folder.join("page");
    let Some(script) = script(contender) else {
        return Ok(());
    };
    let drawer = programs
        .peers
        .as_ref()
        .map(|peers| peers.join("flamegraph"));
    let start = Instant::now();
    // With limits, because the machine may have other users.
    let drawn = Command::new("timeout")
        .args([
            "120",
            "sh",
            "-c",
            &format!("ulimit -v 6000000; set -e; {script}"),
        ])
        .arg(drawer.unwrap_or_default())
        .arg(&recording)
        .arg(&page)
        .arg(&contender.program)
        .arg(tool(contender))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if drawn.success() && page.exists() {
        let values = &mut done.values;
        values.insert("finish_ns".into(), start.elapsed().as_nanos() as f64);
        values.insert("page_bytes".into(), page.metadata()?.len() as f64);
    }
    Ok(())
}

/// Returns the file with a peer's recording.
pub(crate) fn recording(contender: &Contender, folder: &Path) -> Option<PathBuf> {
    let file = match (&contender.setup, contender.id) {
        (Setup::Heaptrack(_), _) => folder.join("heaptrack.zst"),
        (Setup::Python { memray: true, .. }, _) => folder.join("memray.bin"),
        (_, "bytehound") => folder.join("bytehound.dat"),
        (_, "gperftools" | "gperftools-fp") => last_dump(folder)?,
        _ => return None,
    };
    file.exists().then_some(file)
}

/// Returns the last of `gperftools.NNNN.heap`.
fn last_dump(folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|file| Some(file.ok()?.path()));
    files
        .filter(|file| file.extension().is_some_and(|end| end == "heap"))
        .max()
}

/// Returns a shell script for a flame graph. `$0` draws collapsed stacks; `$1` is the recording, `$2` the page to write,
/// `$3` the program, `$4` the peer's tool.
fn script(contender: &Contender) -> Option<&'static str> {
    match (&contender.setup, contender.id) {
        (Setup::Heaptrack(files), _) => {
            files.interpreter.as_ref()?;
            Some(r#""$4" -f "$1" -F "$1.folded" -p 0 -a 0 -T 0; "$0" "$1.folded" "$2""#)
        }
        (Setup::Python { .. }, _) => Some(r#""$4" -m memray flamegraph -f -o "$2" "$1""#),
        (_, "gperftools" | "gperftools-fp") => {
            Some(r#"google-pprof --collapsed "$3" "$1" > "$1.folded"; "$0" "$1.folded" "$2""#)
        }
        _ => None,
    }
}

fn tool(contender: &Contender) -> PathBuf {
    match &contender.setup {
        Setup::Heaptrack(files) => files.print.clone(),
        Setup::Python { python, .. } => python.clone(),
        Setup::Variables(_) => PathBuf::new(),
    }
}
