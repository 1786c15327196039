//! Numbers of varying length: LEB128, seven bits a byte, lowest first, as the page's `decode.js` reads them.

use std::io::{self, Write};

/// Writes `value` in 1 to 10 bytes.
pub(super) fn write(out: &mut impl Write, mut value: u64) -> io::Result<()> {
    let mut bytes = [0u8; 10];
    let mut length = 0;
    loop {
        // Truncation keeps the lowest seven bits.
        let low = (value & 0x7f) as u8;
        value >>= 7;
        bytes[length] = if value == 0 { low } else { low | 0x80 };
        length += 1;
        if value == 0 {
            return out.write_all(&bytes[..length]);
        }
    }
}

/// Writes the step from `before` to `now`, small steps of either sign in few bytes (zigzag).
pub(super) fn write_step(out: &mut impl Write, before: u64, now: u64) -> io::Result<()> {
    let step = now.wrapping_sub(before).cast_signed();
    write(out, ((step << 1) ^ (step >> 63)).cast_unsigned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(in crate::page) fn read(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (&byte, rest) = bytes.split_first().expect("a whole number");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    pub(in crate::page) fn read_step(bytes: &mut &[u8], before: u64) -> u64 {
        let zigzag = read(bytes);
        before.wrapping_add((zigzag >> 1) ^ (zigzag & 1).wrapping_neg())
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(a in any::<u64>(), b in any::<u64>()) {
            let mut bytes = Vec::new();
            write(&mut bytes, a).unwrap();
            write_step(&mut bytes, a, b).unwrap();
            let mut rest = bytes.as_slice();
            prop_assert_eq!(read(&mut rest), a);
            prop_assert_eq!(read_step(&mut rest, a), b);
            prop_assert!(rest.is_empty());
        }
    }
}
