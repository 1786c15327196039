//! Environment variables that look like settings and are none: misspelt ones, mostly.

use std::ffi::OsString;

use super::Settings;
use crate::nearest::nearest;

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
            let nearest = nearest(&name, known.iter().copied(), FARTHEST);
            let hint = nearest.map_or_else(String::new, |known| format!(": did you mean {known}?"));
            format!("{name} is not a setting and changes nothing{hint}")
        })
        .collect();
    sentences.sort();
    sentences
}

#[cfg(test)]
mod tests {
    use super::unknown;

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
}
