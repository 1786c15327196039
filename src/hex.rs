//! Bytes as hexadecimal digits.

/// Returns `bytes` in hexadecimal digits.
pub(crate) fn digits(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
    text
}

/// Returns the bytes of `text` in hexadecimal digits; `None` if it is anything else.
pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::{bytes, digits};

    #[test]
    fn digits_are_the_bytes_that_they_were_made_of() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes(&digits(&all)), Some(all));
        assert_eq!(digits(&[0, 0xa5, 0xff]), "00a5ff");
        for text in ["0", "0g", "+1", "é", "00 1"] {
            assert_eq!(bytes(text), None, "{text}");
        }
        assert_eq!(bytes(""), Some(Vec::new()));
    }
}
