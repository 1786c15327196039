//! Pages in the user's browser.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Opens a page: a file, or an address.
pub(crate) fn open(page: &OsStr) -> Result<(), Failure> {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let mut command = Command::new(program);
    command
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Other(format!(
            "{program} fails ({status}): open {} yourself",
            page.to_string_lossy()
        ))),
        Err(error) => Err(Failure::io(format!("cannot start {program}"), error)),
    }
}
