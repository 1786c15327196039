//! Kinds of values of a setting: parsed from the environment's text, checked if the code gives them, and described in words.
//!
//! Kinds that belong to one type stand beside it: `Prefixes`, `HostNames`, `Tokens`, `Thresholds`, `Slopes`,
//! `CratePatterns`, `SourceUrls`, `Commits`.

use std::ffi::OsString;
use std::fmt::Display;
use std::ops::{RangeFrom, RangeInclusive};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::{size, truth};

/// Kind of values that a setting may have. For a value that is not allowed, the methods return its text for the error.
pub(crate) trait Values {
    /// Type that the code gives.
    type Given;
    /// Type of the checked value.
    type Value;

    /// Returns a description of the allowed values, for errors.
    fn allowed(&self) -> String;

    /// Returns a description of the allowed values, for the table, where a column's width counts.
    fn bounds(&self) -> String {
        self.allowed()
    }

    /// Parses a text.
    fn parse(&self, text: &str) -> Option<Self::Value>;

    /// Reads the variable's content.
    fn read(&self, raw: OsString) -> Result<Self::Value, String> {
        let text = raw.into_string();
        let text = text.map_err(|raw| raw.to_string_lossy().into_owned())?;
        self.parse(&text).ok_or(text)
    }

    /// Checks the value that the code gives.
    fn accept(&self, given: Self::Given) -> Result<Self::Value, String>;
}

/// Returns the entries of a list that is separated by commas.
pub(super) fn entries(text: &str) -> impl Iterator<Item = &str> {
    let entries = text.split(',').map(str::trim);
    entries.filter(|entry| !entry.is_empty())
}

/// Yes or no.
pub(crate) struct Truth;

impl Values for Truth {
    type Given = bool;
    type Value = bool;

    fn allowed(&self) -> String {
        truth::ALLOWED.into()
    }

    fn bounds(&self) -> String {
        "true or false".into()
    }

    fn parse(&self, text: &str) -> Option<bool> {
        truth::parse(text)
    }

    fn accept(&self, given: bool) -> Result<bool, String> {
        Ok(given)
    }
}

/// Bytes, from the range's start on.
pub(crate) struct Sizes(pub(crate) RangeFrom<u64>);

impl Values for Sizes {
    type Given = u64;
    type Value = u64;

    fn allowed(&self) -> String {
        match self.0.start {
            0 => size::ALLOWED.into(),
            least => format!(
                "a number of bytes from {} on, such as 256 MiB",
                size::shown(least)
            ),
        }
    }

    fn bounds(&self) -> String {
        match self.0.start {
            0 => "bytes".into(),
            least => format!("bytes, from {} on", size::shown(least)),
        }
    }

    fn parse(&self, text: &str) -> Option<u64> {
        size::parse(text).filter(|bytes| self.0.contains(bytes))
    }

    fn accept(&self, given: u64) -> Result<u64, String> {
        let is_allowed = self.0.contains(&given);
        is_allowed.then_some(given).ok_or_else(|| given.to_string())
    }
}

/// Whole numbers of a range.
pub(crate) struct WholeNumbers<T>(pub(crate) RangeInclusive<T>);

impl<T: Copy + Display + FromStr + PartialOrd> Values for WholeNumbers<T> {
    type Given = T;
    type Value = T;

    fn allowed(&self) -> String {
        format!("a whole number {}", self.bounds())
    }

    fn bounds(&self) -> String {
        format!("from {} to {}", self.0.start(), self.0.end())
    }

    fn parse(&self, text: &str) -> Option<T> {
        let number = text.trim().parse().ok();
        number.filter(|number| self.0.contains(number))
    }

    fn accept(&self, given: T) -> Result<T, String> {
        let is_allowed = self.0.contains(&given);
        is_allowed.then_some(given).ok_or_else(|| given.to_string())
    }
}

/// Values of another kind, or an empty text for none.
pub(crate) struct OrEmpty<V>(pub(crate) V);

impl<V: Values> Values for OrEmpty<V> {
    type Given = V::Given;
    type Value = Option<V::Value>;

    fn allowed(&self) -> String {
        format!("{}, or empty", self.0.allowed())
    }

    fn bounds(&self) -> String {
        format!("{}, or empty", self.0.bounds())
    }

    fn parse(&self, text: &str) -> Option<Option<V::Value>> {
        match text.trim() {
            "" => Some(None),
            text => self.0.parse(text).map(Some),
        }
    }

    fn read(&self, raw: OsString) -> Result<Option<V::Value>, String> {
        // The other kind decides what of a bad value is shown.
        match raw.to_str().map(str::trim) {
            Some("") => Ok(None),
            _ => self.0.read(raw).map(Some),
        }
    }

    fn accept(&self, given: V::Given) -> Result<Option<V::Value>, String> {
        self.0.accept(given).map(Some)
    }
}

/// Seconds with a fraction.
pub(crate) struct Seconds(pub(crate) RangeInclusive<Duration>);

impl Values for Seconds {
    type Given = Duration;
    type Value = Duration;

    fn allowed(&self) -> String {
        format!("{}, such as 0.1", self.bounds())
    }

    fn bounds(&self) -> String {
        let [from, to] = [self.0.start(), self.0.end()].map(Duration::as_secs_f64);
        format!("seconds from {from} to {to}")
    }

    fn parse(&self, text: &str) -> Option<Duration> {
        let seconds = text.trim().parse().ok()?;
        let time = Duration::try_from_secs_f64(seconds).ok();
        time.filter(|time| self.0.contains(time))
    }

    fn accept(&self, given: Duration) -> Result<Duration, String> {
        let is_allowed = self.0.contains(&given);
        is_allowed
            .then_some(given)
            .ok_or_else(|| format!("{given:?}"))
    }
}

/// Whole times such as `10m`, up to a year, so that no sum of them overflows.
pub(crate) struct Times;

impl Times {
    pub(super) const LONGEST: Duration = Duration::from_secs(366 * 86_400);
}

impl Values for Times {
    type Given = Duration;
    type Value = Duration;

    fn allowed(&self) -> String {
        "a whole number of seconds, or a whole number followed by s, m, h or d, such as 10m, up to 366d".into()
    }

    fn bounds(&self) -> String {
        "up to `366d`".into()
    }

    fn parse(&self, text: &str) -> Option<Duration> {
        let text = text.trim();
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let number: u64 = text[..digits].parse().ok()?;
        let seconds = match text[digits..].trim() {
            "" | "s" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return None,
        };
        let time = number.checked_mul(seconds).map(Duration::from_secs);
        time.filter(|time| *time <= Times::LONGEST)
    }

    fn accept(&self, given: Duration) -> Result<Duration, String> {
        let is_allowed = given <= Times::LONGEST;
        is_allowed
            .then_some(given)
            .ok_or_else(|| format!("{given:?}"))
    }
}

/// Returns `a, b or c`.
pub(crate) fn one_of(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("{} or {last}", others.join(", "))
        }
        _ => words.concat(),
    }
}

/// One of several words, in any case.
pub(crate) struct Words<T: 'static>(pub(crate) &'static [(&'static str, T)]);

impl<T: Copy> Values for Words<T> {
    type Given = T;
    type Value = T;

    fn allowed(&self) -> String {
        let words: Vec<&str> = self.0.iter().map(|(word, _)| *word).collect();
        one_of(&words)
    }

    fn parse(&self, text: &str) -> Option<T> {
        let is = |(word, _): &&(&str, T)| word.eq_ignore_ascii_case(text.trim());
        self.0.iter().find(is).map(|(_, value)| *value)
    }

    fn accept(&self, given: T) -> Result<T, String> {
        Ok(given)
    }
}

/// The path of something, such as a directory; it need not be Unicode.
pub(crate) struct PathOf(pub(crate) &'static str);

impl Values for PathOf {
    type Given = PathBuf;
    type Value = PathBuf;

    fn allowed(&self) -> String {
        format!("the path of a {}", self.0)
    }

    fn bounds(&self) -> String {
        "a path".into()
    }

    fn parse(&self, text: &str) -> Option<PathBuf> {
        self.accept(text.into()).ok()
    }

    fn read(&self, raw: OsString) -> Result<PathBuf, String> {
        self.accept(raw.into())
    }

    fn accept(&self, given: PathBuf) -> Result<PathBuf, String> {
        if given.as_os_str().is_empty() {
            return Err(String::new());
        }
        Ok(given)
    }
}

/// Text that fits into a title.
pub(crate) struct Line {
    /// Value that an empty text stands for.
    pub(crate) if_empty: &'static str,
}

impl Values for Line {
    type Given = String;
    type Value = String;

    fn allowed(&self) -> String {
        "text without control characters".into()
    }

    fn parse(&self, text: &str) -> Option<String> {
        match text {
            "" => Some(self.if_empty.into()),
            _ if text.chars().any(char::is_control) => None,
            _ => Some(text.into()),
        }
    }

    fn accept(&self, given: String) -> Result<String, String> {
        self.parse(&given).ok_or(given)
    }
}
