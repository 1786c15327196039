//! Input of a capture: unpacks the LZ4 frame if there is one, and decodes primitives with a position for messages.

use std::borrow::Cow;
use std::io::{self, Chain, Cursor, Read};

use lz4_flex::frame::FrameDecoder;

use super::codec::Running;
use super::limit::TooLarge;
use crate::clean::in_one_line;
use crate::varint::unzigzag;

/// Longest accepted string or line table. memray has no limit; real ones have kilobytes.
pub(super) const LONGEST: u64 = 4 << 20;

const LZ4_MAGIC: [u8; 4] = 0x184D_2204u32.to_le_bytes();

/// Reason why decoding cannot go on.
#[derive(Debug)]
pub(super) enum Stop {
    /// The input ends in the middle of something.
    Cut,
    /// The next bytes make no sense.
    Damaged(String),
    /// The data do not fit into the memory limit.
    TooLarge(TooLarge),
    /// The input failed.
    Io(io::Error),
}

pub(super) type Decoded<T> = Result<T, Stop>;

/// Returns [`Stop::Damaged`].
pub(super) fn damaged<T>(what: impl Into<String>) -> Decoded<T> {
    Err(Stop::Damaged(what.into()))
}

type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// Container of the capture's bytes.
enum Container<R: Read> {
    Bare(TrailingZeros<Whole<R>>),
    Lz4(FrameDecoder<Whole<R>>),
    /// The bytes after the last whole LZ4 frame are not one. memray ignores them too.
    Ended,
}

/// Buffered reader of the uncompressed capture.
pub(super) struct Source<R: Read> {
    container: Container<R>,
    frames_read: bool,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    /// Position of `buffer[0]` in the uncompressed capture.
    base: u64,
}

impl<R: Read> std::fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source at byte {}", self.position())
    }
}

impl<R: Read> Source<R> {
    /// Makes a source. As in memray, the first four bytes decide whether the input is an LZ4 frame.
    pub(super) fn new(mut input: R) -> io::Result<Self> {
        let mut first = Vec::with_capacity(4);
        input.by_ref().take(4).read_to_end(&mut first)?;
        let packed = first == LZ4_MAGIC;
        let whole = Cursor::new(first).chain(input);
        Ok(Source {
            container: if packed {
                Container::Lz4(FrameDecoder::new(whole))
            } else {
                Container::Bare(TrailingZeros::new(whole))
            },
            frames_read: false,
            buffer: vec![0; 64 << 10].into_boxed_slice(),
            at: 0,
            end: 0,
            base: 0,
        })
    }

    /// Returns whether the bytes come out of an LZ4 frame.
    pub(super) fn is_packed(&self) -> bool {
        !matches!(self.container, Container::Bare(_))
    }

    /// Returns a number that changes at least every 64 KiB.
    #[inline]
    pub(super) fn buffer_at(&self) -> u64 {
        self.base
    }

    /// Returns the number of bytes of the uncompressed capture that were taken so far.
    pub(super) fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Reads more bytes. Returns false at the end of the input.
    #[cold]
    fn refill(&mut self) -> Decoded<bool> {
        self.base += self.end as u64;
        (self.at, self.end) = (0, 0);
        loop {
            let read = match &mut self.container {
                Container::Bare(input) => input.read(&mut self.buffer),
                Container::Lz4(input) => input.read(&mut self.buffer),
                Container::Ended => return Ok(false),
            };
            match read {
                Ok(0) => match &mut self.container {
                    // The end of one frame. Another may follow directly.
                    Container::Lz4(_) if !self.frames_read => self.frames_read = true,
                    _ => return Ok(false),
                },
                Ok(n) => {
                    self.end = n;
                    self.frames_read = false;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.container_failed(error),
            }
        }
    }

    fn container_failed(&mut self, error: io::Error) -> Decoded<bool> {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Err(Stop::Cut);
        }
        let Some(problem) = error
            .get_ref()
            .and_then(|e| e.downcast_ref::<lz4_flex::frame::Error>())
        else {
            return Err(Stop::Io(error));
        };
        if self.frames_read {
            self.container = Container::Ended;
            return Ok(false);
        }
        damaged(format!("the LZ4 frame is damaged: {problem:?}"))
    }

    /// Returns the next byte without taking it, or `None` at the end of the input.
    #[inline]
    pub(super) fn peek(&mut self) -> Decoded<Option<u8>> {
        if self.at == self.end && !self.refill()? {
            return Ok(None);
        }
        Ok(Some(self.buffer[self.at]))
    }

    /// Returns the next byte without taking it, if it was read already.
    #[inline]
    pub(super) fn at_hand(&self) -> Option<u8> {
        self.buffer[self.at..self.end].first().copied()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Decoded<u8> {
        if self.at == self.end && !self.refill()? {
            return Err(Stop::Cut);
        }
        let byte = self.buffer[self.at];
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(bytes)
    }

    pub(super) fn u64(&mut self) -> Decoded<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Decoded<i32> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    #[inline(always)]
    pub(super) fn varint(&mut self) -> Decoded<u64> {
        let rest = &self.buffer[self.at..self.end];
        if let Some(&first) = rest.first()
            && first < 0x80
        {
            self.at += 1;
            return Ok(u64::from(first));
        }
        if let Some(&bytes) = rest.first_chunk()
            && let Some((value, length)) = short_varint(bytes)
        {
            self.at += length;
            return Ok(value);
        }
        self.long_varint()
    }

    #[cold]
    fn long_varint(&mut self) -> Decoded<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        damaged("a number of more than 64 bits")
    }

    #[inline]
    pub(super) fn signed(&mut self) -> Decoded<i64> {
        Ok(unzigzag(self.varint()?))
    }

    /// Reads a field that is stored as the difference to its last value.
    #[inline]
    pub(super) fn delta(&mut self, last: &mut Running) -> Decoded<u64> {
        Ok(last.add(self.signed()?))
    }

    /// Reads bytes up to a NUL, which is taken but not returned. Bytes that are not UTF-8 become U+FFFD.
    pub(super) fn cstr(&mut self) -> Decoded<String> {
        let mut bytes = Vec::new();
        loop {
            if self.at == self.end && !self.refill()? {
                return Err(Stop::Cut);
            }
            let rest = &self.buffer[self.at..self.end];
            let nul = rest.iter().position(|&b| b == 0);
            let taken = &rest[..nul.unwrap_or(rest.len())];
            if bytes.len() + taken.len() > LONGEST as usize {
                return damaged("a string without an end");
            }
            bytes.extend_from_slice(taken);
            self.at += taken.len() + usize::from(nul.is_some());
            if nul.is_some() {
                return Ok(text(bytes));
            }
        }
    }

    /// Reads `length` bytes. Memory is taken as the bytes come, not by the claimed length.
    pub(super) fn bytes(&mut self, length: u64) -> Decoded<Vec<u8>> {
        if length > LONGEST {
            return damaged(format!("a length of {length} bytes"));
        }
        let mut left = length as usize;
        let mut bytes = Vec::new();
        while left > 0 {
            if self.at == self.end && !self.refill()? {
                return Err(Stop::Cut);
            }
            let n = left.min(self.end - self.at);
            bytes.extend_from_slice(&self.buffer[self.at..self.at + n]);
            self.at += n;
            left -= n;
        }
        Ok(bytes)
    }

    /// Reads a string after its length, as in the extension.
    pub(super) fn text(&mut self) -> Decoded<String> {
        let length = self.varint()?;
        Ok(text(self.bytes(length)?))
    }
}

/// Returns a number of up to 8 bytes, and their count. It decodes all bytes at once: with a loop, the processor would often
/// mispredict the end.
#[inline]
fn short_varint(bytes: [u8; 8]) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(bytes);
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return None;
    }
    let own = word & (ends ^ (ends - 1));
    // Seven bits of each byte, then fourteen of each two, then 28 of each four move together.
    let n = (own & 0x007f_007f_007f_007f) | ((own & 0x7f00_7f00_7f00_7f00) >> 1);
    let n = (n & 0x0000_3fff_0000_3fff) | ((n & 0x3fff_0000_3fff_0000) >> 2);
    let n = (n & 0x0fff_ffff) | ((n & 0x0fff_ffff_0000_0000) >> 4);
    Some((n, ends.trailing_zeros() as usize / 8 + 1))
}

/// Returns a cleaned text, which may be shown on a terminal.
fn text(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
    match in_one_line(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(cleaned) => cleaned,
    }
}

/// Reader without the zeros at the end: memray grows its uncompressed file in advance, and a process that is killed leaves
/// the rest of it empty.
struct TrailingZeros<R> {
    input: R,
    /// Bytes to return; the last is not zero.
    chunk: Vec<u8>,
    at: usize,
    /// Zeros to return before `chunk`.
    before: u64,
    /// Zeros after `chunk`, which are returned if something else follows.
    behind: u64,
}

impl<R: Read> TrailingZeros<R> {
    fn new(input: R) -> Self {
        TrailingZeros {
            input,
            chunk: Vec::new(),
            at: 0,
            before: 0,
            behind: 0,
        }
    }

    /// Reads the next chunk. Returns false at the end of the input.
    fn advance(&mut self, size: usize) -> io::Result<bool> {
        self.at = 0;
        loop {
            self.chunk.resize(size, 0);
            let read = self.input.read(&mut self.chunk);
            self.chunk.truncate(*read.as_ref().unwrap_or(&0));
            let n = read?;
            if n == 0 {
                return Ok(false);
            }
            let kept = self
                .chunk
                .iter()
                .rposition(|&b| b != 0)
                .map_or(0, |i| i + 1);
            self.chunk.truncate(kept);
            if kept > 0 {
                self.before = std::mem::replace(&mut self.behind, (n - kept) as u64);
                return Ok(true);
            }
            self.behind += n as u64;
        }
    }
}

impl<R: Read> Read for TrailingZeros<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() && !self.advance(out.len().clamp(1, 64 << 10))? {
            return Ok(0);
        }
        if self.before > 0 {
            let n = usize::try_from(self.before)
                .unwrap_or(usize::MAX)
                .min(out.len());
            out[..n].fill(0);
            self.before -= n as u64;
            return Ok(n);
        }
        let rest = &self.chunk[self.at..];
        let n = rest.len().min(out.len());
        out[..n].copy_from_slice(&rest[..n]);
        self.at += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::put_varint;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_the_same_with_and_without_bytes_behind_it(shift in 0u32..64, n: u64, behind: [u8; 8]) {
            let n = n >> shift;
            let mut bytes = vec![1]; // else zeros at the end would go
            put_varint(&mut bytes, n);
            let length = bytes.len() as u64;
            for bytes in [bytes.clone(), [&bytes[..], &behind[..]].concat()] {
                let mut bytes = bytes;
                bytes.push(1);
                let mut source = Source::new(&bytes[..]).unwrap();
                source.byte().unwrap();
                prop_assert_eq!(source.varint().unwrap(), n);
                prop_assert_eq!(source.position(), length);
            }
        }

        #[test]
        fn only_the_zeros_at_the_end_are_dropped(
            bytes in prop::collection::vec(0u8..3, 0..300), zeros in 0usize..200, size in 1usize..20,
        ) {
            let whole = [&bytes[..], &vec![0; zeros]].concat();
            let mut input = TrailingZeros::new(&whole[..]);
            let (mut got, mut part) = (Vec::new(), vec![0; size]);
            loop {
                let n = input.read(&mut part).unwrap();
                if n == 0 { break }
                got.extend_from_slice(&part[..n]);
            }
            let kept = bytes.iter().rposition(|&b| b != 0).map_or(0, |i| i + 1);
            prop_assert_eq!(got, &bytes[..kept]);
        }
    }

    #[test]
    fn a_length_that_is_not_there_takes_no_memory() {
        let mut source = Source::new(&b"abcdef"[..]).unwrap();
        assert!(matches!(source.bytes(LONGEST), Err(Stop::Cut)));
        let mut source = Source::new(&b"abcdef"[..]).unwrap();
        assert!(matches!(source.bytes(u64::MAX), Err(Stop::Damaged(_))));
    }
}
