//! Environment variables that look like settings and are none: misspelt ones, mostly.

use std::ffi::OsString;

use super::Settings;

/// Start of the names of all settings but the job's name and version.
const START: &str = "MEMRAY_PROFILER";

/// Further variables that are read elsewhere: by `macros`, and by the programs of the tests.
const OTHERS: [&str; 1] = ["MEMRAY_PROFILER_FUNCTION_FILE"];

/// Names that differ in more letters are not the same one misspelt.
const FARTHEST: usize = 4;

/// Returns a sentence for each of `names` that begins like a setting and is none. Values are not shown: one may be a secret.
pub(crate) fn unknown(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let known: Vec<&str> = Settings::VARIABLES.iter().copied().chain(OTHERS).collect();
    let mut sentences: Vec<String> = names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.starts_with(START) && !known.contains(&name.as_str()))
        .map(|name| {
            let nearest = known.iter().map(|known| (distance(&name, known), known));
            let nearest = nearest.min().filter(|(letters, _)| *letters <= FARTHEST);
            let hint =
                nearest.map_or_else(String::new, |(_, known)| format!(": did you mean {known}?"));
            format!("{name} is not a setting and changes nothing{hint}")
        })
        .collect();
    sentences.sort();
    sentences
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
    use super::{distance, unknown};

    fn of(names: &[&str]) -> Vec<String> {
        unknown(names.iter().map(|name| (*name).into()))
    }

    #[test]
    fn a_misspelt_setting_is_named_with_the_nearest_one() {
        assert_eq!(
            of(&["MEMRAY_PROFILER_TOKN", "PATH", "MEMRAY_PROFILER_TOKEN"]),
            [
                "MEMRAY_PROFILER_TOKN is not a setting and changes nothing: did you mean MEMRAY_PROFILER_TOKEN?"
            ]
        );
        assert_eq!(
            of(&["MEMRAY_PROFILER_SOMETHING_ELSE"]),
            ["MEMRAY_PROFILER_SOMETHING_ELSE is not a setting and changes nothing"]
        );
        let known = [
            "MEMRAY_PROFILER",
            "MEMRAY_PROFILER_OWN",
            "MEMRAY_PROFILER_MEMORY_DIR",
            "MEMRAY_PROFILER_FUNCTION_FILE",
        ];
        assert_eq!(of(&known), [""; 0]);
    }

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
}
