//! This process's arguments, for reports and for the event log that a crash leaves.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use heapray_report::memray::in_one_line;
use heapray_report::secrets::without_secrets;

/// Largest number of bytes of a command line that is kept.
const LIMIT: usize = 4096;

/// Returns the arguments, joined by blanks; empty where the system does not report them.
pub(crate) fn read() -> String {
    let mut raw = Vec::new();
    let limit = LIMIT as u64 + 1;
    if let Ok(file) = File::open("/proc/self/cmdline") {
        // After an error, use what was read before it.
        let _ = file.take(limit).read_to_end(&mut raw);
    }
    joined(&raw)
}

/// Returns the file name of the program as it was called; empty where the system does not report it.
pub(crate) fn program() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default();
    in_one_line(&name.to_string_lossy()).into_owned()
}

/// Returns what the service is called in stores: as it was `said`, or else like its program.
#[cfg(any(feature = "push", feature = "store"))]
pub(crate) fn service(said: Option<String>) -> String {
    let program = || Some(program()).filter(|name| !name.is_empty());
    let name = said.or_else(program);
    name.unwrap_or_else(|| "unknown_service".to_owned())
}

/// Returns NUL-terminated arguments as one line, made of at most [`LIMIT`] bytes.
fn joined(raw: &[u8]) -> String {
    let cut = raw.len() > LIMIT;
    let raw = &raw[..raw.len().min(LIMIT)];
    let raw = raw.strip_suffix(b"\0").unwrap_or(raw);
    let text = String::from_utf8_lossy(raw);
    let mut line = without_secrets(text.split('\0')).join(" ");
    if cut {
        line.push('…');
    }
    in_one_line(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_joined_and_bounded() {
        assert_eq!(
            joined(b"/bin/app\0--port\x007000\0"),
            "/bin/app --port 7000"
        );
        assert_eq!(joined(b""), "");
        assert_eq!(joined(b"a\0\xff\0"), "a \u{fffd}");
        let long = joined(&[b'x'; LIMIT + 1]);
        assert_eq!(long.len(), LIMIT + '…'.len_utf8());
        assert!(!read().is_empty());
        assert_eq!(joined(b"a\0--token\0s3cret\0"), "a --token (hidden)");
    }
}
