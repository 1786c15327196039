//! The primitive encodings: varints and deltas. Everything is little-endian (capture format, section 0).

use crate::varint::{encode, zigzag};

/// Appends `n` as unsigned LEB128.
#[inline]
pub(super) fn put_varint(out: &mut Vec<u8>, n: u64) {
    encode(n, |byte| out.push(byte));
}

/// Appends `n` zig-zag coded: 0, -1, 1, -2, … become 0, 1, 2, 3, ….
#[inline]
pub(super) fn put_signed(out: &mut Vec<u8>, n: i64) {
    put_varint(out, zigzag(n));
}

/// Appends `text`, which contains no NUL, and a NUL.
pub(super) fn put_cstr(out: &mut Vec<u8>, text: &str) {
    debug_assert!(!text.contains('\0'), "names are cleaned before");
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Field that is written as the difference to its last value, modulo 2^64. It starts at 0 and is never reset.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Running(u64);

impl Running {
    /// Returns the difference to write for `value`.
    #[inline]
    pub(super) fn difference_to(&mut self, value: u64) -> i64 {
        let difference = value.wrapping_sub(self.0) as i64;
        self.0 = value;
        difference
    }

    /// Returns the value that was written as `difference`.
    #[inline]
    pub(super) fn add(&mut self, difference: i64) -> u64 {
        self.0 = self.0.wrapping_add(difference as u64);
        self.0
    }
}

/// Returns the stored form of an address: memray drops the three lowest bits. Blocks that are not 8-aligned (a Rust
/// allocator may return any address) would collide, so those bits move to the top, where addresses have none.
#[inline]
pub(super) fn pack_address(address: u64) -> u64 {
    (address >> 3) ^ ((address & 7) << 58)
}

/// Inverts [`pack_address`]. Exact for every address below 2^61.
#[inline]
pub(super) fn unpack_address(field: u64) -> u64 {
    ((field & ((1 << 58) - 1)) << 3) | ((field >> 58) & 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn deltas_wrap_round(values: Vec<u64>) {
            let (mut write, mut read) = (Running::default(), Running::default());
            for value in values {
                prop_assert_eq!(read.add(write.difference_to(value)), value);
            }
        }

        #[test]
        fn addresses_below_2_to_the_61_are_kept_whole(address in 0u64..1 << 61) {
            prop_assert_eq!(unpack_address(pack_address(address)), address);
            // The address as memray reads it.
            if address % 8 == 0 {
                prop_assert_eq!(pack_address(address) << 3, address);
            }
        }
    }
}
