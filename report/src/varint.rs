//! Unsigned LEB128 and the zigzag code of signed numbers: seven bits per byte, lowest first. Used by captures and by the
//! page's data.

/// Passes the 1 to 10 bytes of `n` to `put`.
#[inline]
pub(crate) fn encode(mut n: u64, mut put: impl FnMut(u8)) {
    while n >= 0x80 {
        put(n as u8 | 0x80);
        n >>= 7;
    }
    put(n as u8);
}

/// Returns 0, -1, 1, -2, … as 0, 1, 2, 3, ….
#[inline]
pub(crate) fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

/// Inverts [`zigzag`].
#[inline]
pub(crate) fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn varints_are_those_of_the_formats() {
        for (n, bytes) in [
            (0, vec![0]),
            (127, vec![0x7f]),
            (128, vec![0x80, 1]),
            (
                u64::MAX,
                vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            ),
        ] {
            let mut out = Vec::new();
            encode(n, |byte| out.push(byte));
            assert_eq!(out, bytes);
        }
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }

    proptest! {
        #[test]
        fn zigzag_has_an_inverse(n: i64) {
            prop_assert_eq!(unzigzag(zigzag(n)), n);
        }
    }
}
