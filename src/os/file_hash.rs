//! OpenTelemetry's hash of a file, by which a program without a build id is known.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use heapray_report::sha256;

/// Bytes at the beginning and at the end that are hashed.
const PART: u64 = 4096;

/// Returns `htlhash`: of the first and the last 4,096 bytes and the length. `None` if the file cannot be read.
///
/// <https://opentelemetry.io/docs/specs/otel/profiles/mappings/#algorithm-for-processexecutablebuild_idhtlhash>
pub(crate) fn of(path: &Path) -> Option<[u8; 16]> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok().filter(|about| about.is_file())?;
    let length = about.len();
    let part = |from: u64| -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; PART.min(length) as usize];
        file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    };
    let mut input = part(0).ok()?;
    input.extend(part(length.saturating_sub(PART)).ok()?);
    input.extend(length.to_be_bytes());
    sha256(&input).first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_specification() {
        let path = std::env::temp_dir().join(format!("heapray-hash-{}", std::process::id()));
        // head -c N of `yes`, by `(head -c 4096 F; tail -c 4096 F; printf …) | sha256sum`.
        let expected = [
            (0, "af5570f5a1810b7af78caf4bc70a660f"),
            (100, "c97119f0a14f461973303955b21eec0b"),
            (10_000, "78ffc154074fb81648dbe68ae67bddb8"),
        ];
        for (length, expected) in expected {
            let text: Vec<u8> = b"y\n".iter().copied().cycle().take(length).collect();
            std::fs::write(&path, text).unwrap();
            let hash = of(&path).unwrap();
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, expected, "{length}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(of(&path), None);
        assert_eq!(of(Path::new("/proc/self")), None);
    }
}
