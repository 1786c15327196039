//! The `Range` header (RFC 9110, section 14): one range of bytes, or the whole.

use std::ops::Range;

/// Bytes that a `Range` header asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Everything, because there is no usable header. Several ranges at once may be answered in the same way (section 14.2).
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Only bytes past the end.
    Nothing,
}

/// Reads a `Range` header for an output of `len` bytes.
pub(crate) fn wanted(header: &str, len: u64) -> Wanted {
    let Some((unit, set)) = header.split_once('=') else {
        return Wanted::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return Wanted::Whole;
    }
    let Some((first, last)) = set.trim().split_once('-') else {
        return Wanted::Whole;
    };
    match (number(first), number(last)) {
        (Number::Is(first), Number::Is(last)) if first > last => Wanted::Whole,
        (Number::Is(first), _) if first >= len => match number(last) {
            Number::Bad => Wanted::Whole,
            _ => Wanted::Nothing,
        },
        (Number::Is(first), Number::Is(last)) => {
            Wanted::Part(first..last.saturating_add(1).min(len))
        }
        (Number::Is(first), Number::Empty) => Wanted::Part(first..len),
        (Number::Empty, Number::Is(0)) => Wanted::Nothing,
        (Number::Empty, Number::Is(_)) if len == 0 => Wanted::Nothing,
        (Number::Empty, Number::Is(count)) => Wanted::Part(len.saturating_sub(count)..len),
        _ => Wanted::Whole,
    }
}

enum Number {
    Is(u64),
    Empty,
    Bad,
}

fn number(text: &str) -> Number {
    if text.is_empty() {
        return Number::Empty;
    }
    if !text.bytes().all(|digit| digit.is_ascii_digit()) {
        return Number::Bad;
    }
    // A number with too many digits is past every end.
    Number::Is(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{Wanted, wanted};
    use proptest::prelude::*;

    #[test]
    fn a_single_range_is_served_and_anything_odd_gets_the_whole() {
        for (header, want) in [
            ("bytes=0-0", Wanted::Part(0..1)),
            ("bytes=0-99", Wanted::Part(0..100)),
            ("bytes=0-100", Wanted::Part(0..100)),
            ("Bytes=10-19", Wanted::Part(10..20)),
            ("bytes=90-", Wanted::Part(90..100)),
            ("bytes=-10", Wanted::Part(90..100)),
            ("bytes=-1000", Wanted::Part(0..100)),
            ("bytes=5-99999999999999999999999", Wanted::Part(5..100)),
            ("bytes=100-", Wanted::Nothing),
            ("bytes=100-200", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=2-1", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=1-b", Wanted::Whole),
            ("bytes=200-b", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
            ("bytes", Wanted::Whole),
            ("", Wanted::Whole),
        ] {
            assert_eq!(wanted(header, 100), want, "{header:?}");
        }
        for header in ["bytes=0-", "bytes=-1", "bytes=0-0"] {
            assert_eq!(wanted(header, 0), Wanted::Nothing, "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn a_part_is_never_empty_and_never_past_the_end(header in "bytes=[0-9]{0,20}-[0-9]{0,20}", len: u64) {
            if let Wanted::Part(part) = wanted(&header, len) {
                prop_assert!(part.start < part.end && part.end <= len);
            }
        }
    }
}
