//! The measured programs, built from this repository, each with another profiler.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heapray_bench_workloads::Result;

/// Paths of the programs.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    /// Directory of the programs with heapray.
    pub(crate) subject: PathBuf,
    /// Directory of the programs with peers, if they could be built.
    pub(crate) peers: Option<PathBuf>,
}

/// Returns the root of the repository that this program was built from.
fn root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    Ok(root
        .ok_or("the benchmark is not in a repository")?
        .to_owned())
}

/// Returns `target/` of the workspace.
pub(crate) fn target_folder() -> Result<PathBuf> {
    // This program is target/release/heapray-bench.
    let this = std::env::current_exe()?;
    let target = this.parent().and_then(Path::parent);
    Ok(target
        .ok_or("this program is in no target folder")?
        .to_owned())
}

/// Builds all programs.
pub(crate) fn build() -> Result<Programs> {
    let (root, target) = (root()?, target_folder()?);
    let mut subject = cargo(&root, &target);
    subject.args(["--package", "heapray-bench-subject"]);
    if !subject.status()?.success() {
        return Err("the measured programs could not be built".into());
    }
    let with_peers = target.join("peers");
    let mut peers = cargo(&root.join("bench/peers"), &with_peers);
    // heapscope walks frame pointers, so all peers and their base of comparison are built in the same way. It asks for a
    // newer compiler than it needs.
    peers
        .env("RUSTFLAGS", "-C force-frame-pointers=yes")
        .args(["--ignore-rust-version", "--keep-going"]);
    if !peers.status()?.success() {
        println!("(not all peers could be built)");
    }
    let peers = with_peers.join("release");
    Ok(Programs {
        subject: target.join("release"),
        peers: peers.join("plain").exists().then_some(peers),
    })
}

fn cargo(folder: &Path, target: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .args(["build", "--release", "--quiet", "--bins", "--lib"])
        .stdout(Stdio::null());
    cargo
}
