//! Call sites that are known: `heapray-known.toml`.
//!
//! ```toml
//! [[known]]
//! function = "shop::prices::*"
//! file = "src/prices.rs"
//! reason = "the price cache: bounded at 2 GB"
//! ```
//!
//! Memory is known if a frame of its call stack matches a rule. It is summed apart, and neither ranked as a leak nor part of
//! any advice. In patterns `*` stands for any text. A function's pattern must match its whole name, as shown in reports or with
//! type parameters; a file's pattern must match the whole path, or its end after a `/`.

use std::io::{self, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::memray::in_one_line;

/// Name of the file that is read where no other is named.
pub const FILE_NAME: &str = "heapray-known.toml";

/// The most rules of a file.
pub const MOST_RULES: usize = 256;

/// The most bytes of a file.
const MOST_BYTES: u64 = 1 << 20;

/// The most bytes of each text of a rule.
pub const MOST_TEXT: usize = 1024;

/// Rule that makes call sites known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Pattern of the function's name; empty for any.
    #[serde(default)]
    pub function: String,
    /// Pattern of the file's path; empty for any.
    #[serde(default)]
    pub file: String,
    /// Why it does not leak, for people. May be empty.
    #[serde(default)]
    pub reason: String,
}

impl Known {
    /// Returns the pattern, for people: `shop::prices::* in src/prices.rs`.
    #[must_use]
    pub fn pattern(&self) -> String {
        match (&*self.function, &*self.file) {
            (function, "") => function.to_owned(),
            ("", file) => file.to_owned(),
            (function, file) => format!("{function} in {file}"),
        }
    }

    /// Returns the reason, or else the pattern.
    #[must_use]
    pub fn title(&self) -> String {
        match self.reason.trim() {
            "" => self.pattern(),
            reason => reason.to_owned(),
        }
    }
}

/// The keys of a rule.
const KEYS: [&str; 3] = ["function", "file", "reason"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    known: Vec<Known>,
}

/// Reads the rules of a file's `text`.
///
/// # Errors
/// If the text is not TOML, or has other keys or values, a rule without a pattern, or more or longer rules than are allowed.
/// The error says what, and in which line or rule.
pub fn parse(text: &str) -> Result<Vec<Known>, String> {
    check_lines(text)?;
    let file: File = basic_toml::from_str(text).map_err(|error| error.to_string())?;
    let rules = file.known;
    if rules.len() > MOST_RULES {
        return Err(format!("it has more than {MOST_RULES} rules"));
    }
    for (number, rule) in (1..).zip(&rules) {
        if rule.function.is_empty() && rule.file.is_empty() {
            return Err(format!("rule {number} has neither `function` nor `file`"));
        }
        let texts = [&rule.function, &rule.file, &rule.reason];
        if texts.iter().any(|text| text.len() > MOST_TEXT) {
            return Err(format!(
                "a text of rule {number} is longer than {MOST_TEXT} bytes"
            ));
        }
    }
    Ok(rules)
}

/// Refuses what is not a list of rules, line by line. What is left has no nested values: the parser would descend into them
/// without a limit.
fn check_lines(text: &str) -> Result<(), String> {
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let header = line.strip_prefix("[[known]]").map(str::trim_start);
        let is_header = header.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'));
        if line.is_empty() || line.starts_with('#') || is_header {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(format!(
                "line {number} is neither [[known]] nor a key with a text"
            ));
        };
        let (key, value) = (key.trim_end(), value.trim_start());
        if !KEYS.contains(&key) {
            let key: String = in_one_line(key).chars().take(40).collect();
            return Err(format!(
                "line {number} has the key `{key}`, but the keys of a rule are {}",
                KEYS.join(", ")
            ));
        }
        let is_long = value.starts_with("\"\"\"") || value.starts_with("'''");
        if !value.starts_with(['"', '\'']) || is_long {
            return Err(format!(
                "line {number}: the {key} must be a text in quotation marks, in one line"
            ));
        }
    }
    Ok(())
}

/// Reads the rules of the file that is `named`, or of [`FILE_NAME`] in the working directory if there is one.
///
/// # Errors
/// If the file cannot be read or [`parse`]d. The error names it.
pub fn read(named: Option<&Path>) -> Result<Vec<Known>, String> {
    let path = named.unwrap_or(Path::new(FILE_NAME));
    let text = match text_of(path) {
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
            return Ok(Vec::new());
        }
        text => text
            .map_err(|error| error.to_string())
            .and_then(|text| parse(&text)),
    };
    text.map_err(|error| format!("{}: {error}", path.display()))
}

fn text_of(path: &Path) -> io::Result<String> {
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    file.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{Known, MOST_RULES, parse};

    #[test]
    fn rules_have_a_function_or_a_file_and_may_have_a_reason() {
        let text = "# of the shop\n[[known]]\nfunction = \"shop::prices::*\"\nreason = \"bounded\"\n\n\
                    [[known]]\nfile = \"src/prices.rs\"\n";
        let rules = parse(text).unwrap();
        assert_eq!(rules[0].title(), "bounded");
        assert_eq!(rules[0].pattern(), "shop::prices::*");
        assert_eq!(rules[1].title(), "src/prices.rs");
        assert_eq!(parse(""), Ok(Vec::<Known>::new()));
    }

    #[test]
    fn no_text_makes_the_parser_descend() {
        let deep = "[".repeat(500_000);
        let dotted = format!("[{}b]", "a.".repeat(200_000));
        for text in [
            format!("[[known]]\nfile = {deep}"),
            format!("[[known]]\nfile = \"a\", b = {deep}"),
            format!("[[known]]\nfile = \"a\" {deep}"),
            deep.replace('[', "[\n"),
            deep,
            format!("[[known]]\nfile.{} = \"a\"", "a.".repeat(200_000)),
            dotted,
        ] {
            assert!(parse(&text).is_err());
        }
    }

    #[test]
    fn comments_and_both_kinds_of_quotation_marks_are_toml() {
        let text = "  # a\r\n [[known]]  # one\r\n\tfile = 'a\\b' # its file\n\n[[known]]\nfunction=\"\\u0061\"";
        let rules = parse(text).unwrap();
        assert_eq!((&*rules[0].file, &*rules[1].function), ("a\\b", "a"));
    }

    #[test]
    fn an_error_says_where_it_is() {
        let many = "[[known]]\nfile = \"a\"\n".repeat(MOST_RULES + 1);
        let long = format!("[[known]]\nfile = \"{}\"", "a".repeat(2000));
        for (text, error) in [
            (
                "[[known]]\nfuntion = \"a\"",
                "line 2 has the key `funtion`, but the keys of a rule are function, file, reason",
            ),
            ("[[know]]\nfile = \"a\"", "line 1 is neither [[known]] nor"),
            ("[[known]]\nfile = a", "line 2: the file must be a text"),
            (
                "[[known]]\nfile = \"\"\"a\nb\"\"\"",
                "line 2: the file must be",
            ),
            ("[[known]]\nfile = \"a", "line 2"),
            ("[[known]]\nfile = \"a\"\nfile = \"b\"", "duplicate"),
            ("file = \"a\"", "unknown field `file`"),
            ("[[known]]\nreason = \"why\"", "rule 1 has neither"),
            (&many, "more than 256 rules"),
            (&long, "longer than 1024 bytes"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.contains(error), "{found}");
        }
    }
}
