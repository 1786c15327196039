//! The last bytes of a packed capture: the place of its sums, for readers that can seek.
//!
//! ```text
//! LZ4 frame            header, threads, code objects | events, or rows | end mark
//! LZ4 frame            the extension (`extension.rs`)
//! u32 0x184D_2A5E      number of a frame that LZ4 readers skip
//! u32 32               length of the rest
//! "heapray\0"
//! u64                  byte of the file at which the extension's frame begins
//! u64                  bytes of the unpacked capture before the |, all that the extension refers to
//! u64                  checksum of the 32 bytes before
//! ```

use std::io::{Read, Seek, SeekFrom};

/// Number of the frame. LZ4 has sixteen such numbers, and memray reads nothing after its end mark.
const SKIPPED_FRAME: [u8; 4] = 0x184D_2A5Eu32.to_le_bytes();
const MAGIC: [u8; 8] = *b"heapray\0";
const SIZE: usize = 40;
const BODY: u32 = SIZE as u32 - 8;

/// Content of the last bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signpost {
    /// Byte of the file at which the extension's LZ4 frame begins.
    pub(super) extension: u64,
    /// Bytes of the unpacked capture with all definitions that the extension refers to.
    pub(super) tables: u64,
}

impl Signpost {
    pub(super) fn to_bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&SKIPPED_FRAME);
        put(&BODY.to_le_bytes());
        put(&MAGIC);
        put(&self.extension.to_le_bytes());
        put(&self.tables.to_le_bytes());
        let sum = checksum(&bytes[..SIZE - 8]);
        bytes[SIZE - 8..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; SIZE]) -> Option<Signpost> {
        let number = |at: usize| {
            let field = bytes[at..].first_chunk().copied();
            u64::from_le_bytes(field.unwrap_or_default())
        };
        let signpost = Signpost {
            extension: number(16),
            tables: number(24),
        };
        // All other fields are the same in each signpost, or follow from these.
        (signpost.to_bytes() == *bytes).then_some(signpost)
    }

    /// Returns the signpost of a capture, or `None` if there is none, or the input fails.
    pub(super) fn find(input: &mut (impl Read + Seek)) -> Option<Signpost> {
        input.seek(SeekFrom::End(-(SIZE as i64))).ok()?;
        let mut bytes = [0; SIZE];
        input.read_exact(&mut bytes).ok()?;
        Signpost::from_bytes(&bytes)
    }
}

/// Returns the FNV-1a hash. It is against accidents: a forged capture can have a forged hash.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    proptest! {
        #[test]
        fn a_signpost_is_found_at_the_end_and_none_where_a_byte_differs(
            before in prop::collection::vec(any::<u8>(), 0..50),
            extension: u64, tables: u64, at in 0..SIZE, change in 1u8..,
        ) {
            let signpost = Signpost { extension, tables };
            let mut bytes = [&before[..], &signpost.to_bytes()].concat();
            prop_assert_eq!(Signpost::find(&mut Cursor::new(&bytes)), Some(signpost));
            bytes[before.len() + at] ^= change;
            prop_assert_eq!(Signpost::find(&mut Cursor::new(&bytes)), None);
            prop_assert_eq!(Signpost::find(&mut Cursor::new(&before)), None);
        }
    }
}
