//! Moments as Python spells them.

/// `ms` since the Unix epoch as `str(datetime)` in UTC: `2026-11-21 15:07:26.471000+00:00`.
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

/// Year, month and day of a day's number since the epoch, in the Gregorian calendar. Counted from 1 March of year 0,
/// so that the day that leap years add is a year's last.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_ERA: i64 = 146_097; // 400 years
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(DAYS_OF_ERA), days.rem_euclid(DAYS_OF_ERA));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + next, month, day)
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
        // Whatever a damaged file says is some text.
        for ms in [i64::MIN, i64::MAX] {
            assert!(python_time(ms).ends_with("+00:00"));
        }
    }
}
