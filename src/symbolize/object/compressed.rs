//! What is compressed otherwise than with zlib: few programs need it, and each format takes a library.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};

use ruzstd::decoding::StreamingDecoder;

use crate::os::unique::unique;

/// The most memory that a decompressor may use.
const MEMORY_KIB: u32 = 64 << 10;

/// The most bytes of a table of symbols that is in a program's own file. The largest of Fedora's are a few megabytes.
const MOST_SYMBOLS: u64 = 256 << 20;

/// Decompresses zstd. Returns `None` if the content is damaged or larger than `size`.
pub(super) fn zstd(mut bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    // lld writes a frame for each megabyte.
    while !bytes.is_empty() {
        let decoder = StreamingDecoder::new(&mut bytes).ok()?;
        let room = (size - content.len()) as u64;
        decoder.take(room + 1).read_to_end(&mut content).ok()?;
        if content.len() > size {
            return None;
        }
    }
    Some(content)
}

/// Decompresses xz, into a file that has no name.
pub(super) fn xz_file(bytes: &[u8]) -> io::Result<File> {
    let reader = lzma_rust2::XzReader::new_mem_limit(bytes, true, MEMORY_KIB);
    let mut file = nameless()?;
    io::copy(&mut reader.take(MOST_SYMBOLS), &mut file)?;
    file.flush()?;
    Ok(file)
}

/// Returns a new file without a name. It is gone when it is closed.
fn nameless() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("heapray-{:016x}", unique()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}
