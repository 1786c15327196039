//! Times as text, as in Python.

use crate::calendar::date;

/// Returns `ms` since the Unix epoch as `str(datetime)` in UTC: `2026-11-21 15:07:26.471000+00:00`.
pub(super) fn python_time(ms: i64) -> String {
    let (seconds, ms) = (ms.div_euclid(1000), ms.rem_euclid(1000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = match ms {
        0 => String::new(),
        ms => format!(".{ms:03}000"),
    };
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}+00:00")
}

#[cfg(test)]
mod tests {
    use super::python_time;

    /// Expected values are Python's.
    #[test]
    fn times_are_pythons() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00+00:00"),
            (951_782_400_001, "2000-02-29 00:00:00.001000+00:00"),
            (951_868_799_999, "2000-02-29 23:59:59.999000+00:00"),
            (1_795_273_646_471, "2026-11-21 15:07:26.471000+00:00"),
            (4_107_542_400_000, "2100-03-01 00:00:00+00:00"),
            (-1, "1969-12-31 23:59:59.999000+00:00"),
        ] {
            assert_eq!(python_time(ms), text);
        }
        // Any number in a damaged file has a text.
        for ms in [i64::MIN, i64::MAX] {
            assert!(python_time(ms).ends_with("+00:00"));
        }
    }
}
