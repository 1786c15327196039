//! Sizes and durations for users.

use crate::model::Conditions;

/// Returns `bytes` as memray prints them: powers of 1000, three decimals.
#[must_use]
pub fn size(bytes: u64) -> String {
    let mut number = bytes as f64;
    for unit in ["", "k", "M", "G", "T", "P"] {
        if number < 1000.0 {
            return format!("{number:5.3}{unit}B");
        }
        number /= 1000.0;
    }
    format!("{number:5.3}EB")
}

/// Returns `bytes` for headings: powers of 1000, three digits, as the page writes them.
#[must_use]
pub fn rounded_size(bytes: u64) -> String {
    let mut number = bytes as f64;
    let mut units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"].into_iter();
    let mut unit = units.next();
    // 999.5 would be rounded to 1000 of its unit.
    while number >= 999.5
        && let Some(larger) = units.next()
    {
        number /= 1000.0;
        unit = Some(larger);
    }
    let digits = match number {
        _ if unit == Some("B") => 0,
        9.995..99.95 => 1,
        99.95.. => 0,
        _ => 2,
    };
    format!("{number:.digits$} {}", unit.unwrap_or_default())
}

/// Returns a number with its digits in groups of three: `18,400`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number with its noun in the right form: `1 block`, `18,400 blocks`.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {noun}{s}", grouped(number))
}

/// Returns a time span in its two largest units.
#[must_use]
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (ms, minutes, hours, days) {
        (..1000, ..) => format!("{ms} ms"),
        (_, 0, ..) => format!("{:.1} s", ms as f64 / 1000.0),
        (_, _, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (_, _, _, 0) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// Returns when the first event was lost, to follow "events were lost": ` from 1.5 s on`, or nothing if that is not known.
#[must_use]
pub fn lost_since(conditions: &Conditions) -> String {
    let since = conditions.lost_since_ms;
    since.map_or(String::new(), |ms| format!(" from {} on", duration(ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_memrays() {
        for (bytes, text) in [
            (0, "0.000B"),
            (999, "999.000B"),
            (1000, "1.000kB"),
            (24_000_168, "24.000MB"),
            (999_999_999, "1000.000MB"),
            (u64::MAX, "18.447EB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn headings_have_three_digits_and_numbers_groups() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (9_996, "10.0 kB"),
            (99_960, "100 kB"),
            (999_600, "1.00 MB"),
            (24_000_168, "24.0 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(rounded_size(bytes), text);
        }
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (18_400, "18,400"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn durations_have_two_units() {
        for (ms, text) in [
            (0, "0 ms"),
            (1234, "1.2 s"),
            (61_000, "1 min 1 s"),
            (7_260_000, "2 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }
}
