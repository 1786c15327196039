//! Sizes in bytes, as users write them.

/// Parses bytes: a whole number, alone or with `K M G T` (`KiB MiB GiB TiB`, 1024 each) or `kB MB GB TB` (1000 each).
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let factor: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Returns `bytes` in the largest unit that it is a multiple of.
pub(crate) fn shown(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = |(shift, _): &&(u32, &str)| bytes > 0 && bytes.is_multiple_of(1 << shift);
    match units.iter().find(whole) {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}

/// Description of the sizes that [`parse`] accepts, for error messages.
pub(crate) const ALLOWED: &str =
    "a number of bytes below 2^64, optionally followed by KiB, MiB, GiB or TiB, such as 512 MiB";

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
        ] {
            assert_eq!(parse(text), Some(bytes), "{text:?}");
        }
    }

    #[test]
    fn a_size_is_shown_in_its_largest_whole_unit() {
        let sizes = [0, 1, 1 << 10, 1025, 64 << 20, 3 << 30, 1 << 40];
        let expected = [
            "0 bytes",
            "1 bytes",
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
            "1.5 MiB",
            "12x",
            "1 mib",
            "99999999999T",
            "0x10",
            "１",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
