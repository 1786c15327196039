//! Compression of outputs, which are written in small pieces.

use std::io::{self, BufWriter, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

/// Bytes that a compressor gets at once. flate2 1.1 clears its own buffer of 32 KiB for each write, however short.
const PIECE: usize = 32 << 10;

/// Writes to `out` what `data` writes, as zlib in base64: the data of a page.
pub(crate) fn in_page(
    out: &mut dyn Write,
    data: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let encoder = EncoderWriter::new(out, &STANDARD);
    let compressor = ZlibEncoder::new(encoder, Compression::default());
    let mut pieces = BufWriter::with_capacity(PIECE, compressor);
    data(&mut pieces)?;
    pieces.into_inner()?.finish()?.finish()?;
    Ok(())
}

/// Writes to `out` what `data` writes, as gzip.
pub(crate) fn gzip(
    out: &mut dyn Write,
    data: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let compressor = GzEncoder::new(out, Compression::new(4));
    let mut pieces = BufWriter::with_capacity(PIECE, compressor);
    data(&mut pieces)?;
    pieces.into_inner()?.finish()?;
    Ok(())
}
