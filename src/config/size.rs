//! Sizes in bytes, as users write them.

/// Parses bytes: a number, alone or with `K M G T` (`KiB MiB GiB TiB`, 1024 each) or `kB MB GB TB` (1000 each), in any case.
/// Before one of these the number may have a fraction.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.'));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "ki" | "kib" => 1 << 10,
        "m" | "mi" | "mib" => 1 << 20,
        "g" | "gi" | "gib" => 1 << 30,
        "t" | "ti" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    let Some((whole, fraction)) = number.split_once('.') else {
        return number.parse::<u64>().ok()?.checked_mul(factor);
    };
    // Nine digits are exact to a byte of a gigabyte, and the product stays below 2^128.
    if factor == 1 || fraction.len() > 9 {
        return None;
    }
    let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(factor);
    let part = u64::try_from(part / 10_u128.pow(fraction.len() as u32)).ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(factor)?.checked_add(part)
}

/// Returns `bytes` in the largest unit that it is a multiple of.
pub(crate) fn shown(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = |(shift, _): &&(u32, &str)| bytes > 0 && bytes.is_multiple_of(1 << shift);
    match units.iter().find(whole) {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None if bytes == 1 => "1 byte".to_owned(),
        None => format!("{bytes} bytes"),
    }
}

/// Description of the sizes that [`parse`] accepts, for error messages.
pub(crate) const ALLOWED: &str = "a number of bytes below 2^64, optionally followed by KiB, MiB, GiB or TiB, such as 512 MiB or 1.5g";

#[cfg(test)]
mod tests {
    use super::{parse, shown};

    #[test]
    fn a_number_and_a_unit_make_bytes() {
        for (text, bytes) in [
            ("0", 0),
            ("1", 1),
            ("512 MiB", 512 << 20),
            ("512MiB", 512 << 20),
            ("512M", 512 << 20),
            ("3 GiB", 3 << 30),
            ("2T", 2 << 40),
            ("5 MB", 5_000_000),
            ("7kB", 7_000),
            (" 9 B ", 9),
            ("1.5 MiB", 3 << 19),
            ("0.25g", 1 << 28),
            ("512mb", 512_000_000),
            ("64 mib", 64 << 20),
            ("2Gi", 2 << 30),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text:?}");
        }
    }

    #[test]
    fn a_size_is_shown_in_its_largest_whole_unit() {
        let sizes = [0, 1, 1 << 10, 1025, 64 << 20, 3 << 30, 1 << 40];
        let expected = [
            "0 bytes",
            "1 byte",
            "1 KiB",
            "1025 bytes",
            "64 MiB",
            "3 GiB",
            "1 TiB",
        ];
        assert_eq!(sizes.map(shown), expected);
    }

    #[test]
    fn text_that_is_not_a_size_or_too_large_is_refused() {
        for text in [
            "",
            "MiB",
            "-1",
            "1.5.2 MiB",
            ".5 MiB",
            "1. MiB",
            "1_000",
            "1.5",
            "0.5 B",
            "1.0000000001k",
            "17179869184.5g",
            "12x",
            "1 mibs",
            "99999999999T",
            "0x10",
            "１",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
