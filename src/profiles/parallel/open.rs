//! Opens a page in the browser of this machine's desktop, if there is one.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// Opens the page in the desktop's browser if that is wanted and there is one; otherwise logs the page's path.
pub(super) fn show(path: &Path, display: bool) {
    let full = std::path::absolute(path);
    let full = full.as_deref().unwrap_or(path);
    let shown = display && has_desktop() && open(full);
    let path = full.display();
    if shown {
        tracing::info!(%path, "heapray shows the page of a parallel profile");
    } else {
        tracing::info!(%path, "heapray wrote the page of a parallel profile");
    }
}

fn has_desktop() -> bool {
    cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

fn open(path: &Path) -> bool {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let child = Command::new(opener)
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return false;
    };
    // A thread must wait for the program's end, which may be as late as the browser's.
    let waiting = std::thread::Builder::new()
        .name("heapray-open".to_owned())
        .spawn(move || drop(child.wait()));
    waiting.is_ok()
}
