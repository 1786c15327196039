//! The blocks of a log file, one after another from its first byte. All numbers are little-endian.
//!
//! ```text
//!  0  4   magic: "HRL1" for events, "HRN1" for names
//!  4  4   stored: bytes of the payload in the file; its highest bit is set if the payload is not compressed
//!  8  4   raw: bytes of the payload when decompressed
//! 12  4   events in it; 0 in a block of names
//! 16  8   checksum of the bytes 0..16 and of the payload as stored
//! 24  …   the payload: records (see `codec` and `names`), compressed as one LZ4 block
//! ```

use std::io;

/// Size at which a block's payload is full.
pub(super) const FULL: usize = 128 << 10;
/// Largest size of a payload: a full one and the longest record.
pub(super) const MOST: usize = FULL + 128;
/// Size of a header.
pub(super) const HEADER: usize = 24;
/// Size of a buffer in which a block is put together: room for its header, and its records.
pub(super) const BUFFER: usize = HEADER + MOST;

const EVENTS: u32 = u32::from_le_bytes(*b"HRL1");
const NAMES: u32 = u32::from_le_bytes(*b"HRN1");
const PLAIN: u32 = 1 << 31;

/// Header of a block; see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) stored: usize,
    pub(super) raw: usize,
    pub(super) events: u32,
    pub(super) compressed: bool,
    /// Set if the payload has names.
    pub(super) names: bool,
}

impl Header {
    /// Returns the header's bytes for `payload` as it is stored.
    pub(super) fn encode(self, payload: &[u8]) -> [u8; HEADER] {
        let plain = if self.compressed { 0 } else { PLAIN };
        let mut bytes = [0; HEADER];
        let magic = if self.names { NAMES } else { EVENTS };
        bytes[0..4].copy_from_slice(&magic.to_le_bytes());
        bytes[4..8].copy_from_slice(&(self.stored as u32 | plain).to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.raw as u32).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.events.to_le_bytes());
        let sum = checksum(&[&bytes[..16], payload]);
        bytes[16..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Returns the header in `bytes`. Lengths are checked, so that a corrupt file cannot request a large allocation.
    pub(super) fn decode(bytes: &[u8; HEADER]) -> io::Result<Header> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if word(0) != EVENTS && word(0) != NAMES {
            return Err(invalid("no block begins here"));
        }
        let header = Header {
            stored: (word(4) & !PLAIN) as usize,
            raw: word(8) as usize,
            events: word(12),
            compressed: word(4) & PLAIN == 0,
            names: word(0) == NAMES,
        };
        let fits =
            header.raw <= MOST && header.stored <= lz4_flex::block::get_maximum_output_size(MOST);
        if !fits || (!header.compressed && header.raw != header.stored) {
            return Err(invalid("a block has an impossible length"));
        }
        Ok(header)
    }

    /// Returns whether `payload`, as stored, is what was written after the header in `bytes`.
    pub(super) fn is_whole(bytes: &[u8; HEADER], payload: &[u8]) -> bool {
        checksum(&[&bytes[..16], payload]).to_le_bytes() == bytes[16..]
    }
}

/// Returns an error about corrupt data.
pub(super) fn invalid(what: &'static str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("corrupt event log: {what}"),
    )
}

/// Returns a checksum. Each step is invertible, so that any change within one word changes the sum for certain. Words take
/// turns in four sums, since a processor can work at four at once.
fn checksum(parts: &[&[u8]]) -> u64 {
    let mut sums = [0x243F_6A88_85A3_08D3; 4];
    let mut add = |words: &[[u8; 8]]| {
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum = step(*sum, u64::from_le_bytes(*word));
        }
    };
    for part in parts {
        let (words, rest) = part.as_chunks::<8>();
        let (groups, words) = words.as_chunks::<4>();
        groups.iter().for_each(|group| add(group));
        add(words);
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        add(&[last, (part.len() as u64).to_le_bytes()]);
    }
    sums.into_iter().fold(0, step)
}

fn step(sum: u64, word: u64) -> u64 {
    let sum = (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    sum ^ sum >> 32
}
