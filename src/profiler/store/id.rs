//! The number of a kept report.

use std::fmt;

/// Which of the kept reports: the millisecond in which its session began, or in which it was written while the session went
/// on, counted from 1970.
///
/// A number and nothing else, so that the text of a request never becomes part of a path. It need not be secret: a client
/// that may read a kept report may list them all.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct ReportId(pub(super) u64);

impl ReportId {
    /// Reads what [`Display`](fmt::Display) writes: digits, without a zero before them. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<ReportId> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let plain = digits && (text == "0" || !text.starts_with('0'));
        plain.then(|| text.parse().ok().map(ReportId)).flatten()
    }
}

impl fmt::Display for ReportId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::ReportId;

    #[test]
    fn a_number_is_a_digit_or_more_and_nothing_else() {
        for text in ["0", "7", "1795252380250", "18446744073709551615"] {
            assert_eq!(ReportId::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "-1",
            "+1",
            "01",
            "1.bin",
            "../1",
            "1/",
            "%31",
            " 1",
            "1e3",
            "१",
            "18446744073709551616",
            "0x1",
        ] {
            assert_eq!(ReportId::parse(text), None, "{text:?}");
        }
    }
}
