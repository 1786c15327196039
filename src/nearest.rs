//! The name that somebody probably meant.

/// Returns the known name that differs from `name` in the fewest letters, if these are at most `farthest`.
pub(crate) fn nearest<'k>(
    name: &str,
    known: impl Iterator<Item = &'k str>,
    farthest: usize,
) -> Option<&'k str> {
    let nearest = known.map(|known| (distance(name, known), known)).min()?;
    (nearest.0 <= farthest).then_some(nearest.1)
}

/// Returns the number of letters to insert, remove or replace (Levenshtein, 1965).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (above, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (at, b) in other.chars().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn the_distance_counts_letters() {
        for (one, other, letters) in [
            ("", "", 0),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("own", "onw", 2),
        ] {
            assert_eq!(distance(one, other), letters, "{one} {other}");
        }
    }

    #[test]
    fn a_name_that_is_too_far_is_not_meant() {
        let known = || ["start", "stop", "stats"].into_iter();
        assert_eq!(nearest("stat", known(), 2), Some("start"));
        assert_eq!(nearest("stopp", known(), 2), Some("stop"));
        assert_eq!(nearest("flame", known(), 2), None);
    }
}
