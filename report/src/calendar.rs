//! The Gregorian calendar, which Rust's standard library does not have.

/// Returns year, month and day of the `days`-th day after 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date
/// algorithms", `civil_from_days`). It counts from 1 March of year 0, so that a leap day is the last day of its year.
#[must_use]
pub fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_ERA: i64 = 146_097; // 400 years
    let days = days.saturating_add(719_468);
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
    use super::date;

    #[test]
    fn days_have_their_dates() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date(days), expected);
        }
        // Any number has a date.
        for days in [i64::MIN, i64::MAX] {
            let (_, month, day) = date(days);
            assert!((1..=12).contains(&month) && (1..=31).contains(&day));
        }
    }
}
