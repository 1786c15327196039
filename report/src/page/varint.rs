//! Numbers of varying length for the page's `decode.js`, one by one and in columns.

use std::io::{self, Write};

use crate::varint::{encode, zigzag};

/// Writes `value` in 1 to 10 bytes.
pub(super) fn write(out: &mut impl Write, value: u64) -> io::Result<()> {
    let mut bytes = [0u8; 10];
    let mut length = 0;
    encode(value, |byte| {
        bytes[length] = byte;
        length += 1;
    });
    out.write_all(&bytes[..length])
}

/// Writes the step from `before` to `now`. Small steps of either sign take few bytes.
pub(super) fn write_step(out: &mut impl Write, before: u64, now: u64) -> io::Result<()> {
    write(out, zigzag(now.wrapping_sub(before).cast_signed()))
}

/// Writes one number of each row.
pub(super) fn column<T>(
    out: &mut impl Write,
    rows: &[T],
    mut value: impl FnMut(&T) -> u64,
) -> io::Result<()> {
    rows.iter().try_for_each(|row| write(out, value(row)))
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
