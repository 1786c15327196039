//! The crates that the service names as its own.

use super::values::{Values, entries};

/// Kind of setting: names of crates, and patterns with `*` for any text.
pub(crate) struct CratePatterns;

impl Values for CratePatterns {
    type Given = Vec<String>;
    type Value = Vec<String>;

    fn allowed(&self) -> String {
        "names of crates, separated by commas, such as shop or shop_*; * stands for any text".into()
    }

    fn bounds(&self) -> String {
        "names of crates, separated by commas".into()
    }

    fn parse(&self, text: &str) -> Option<Vec<String>> {
        let in_a_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '*');
        entries(text)
            .map(|pattern| pattern.chars().all(in_a_name).then(|| pattern.to_owned()))
            .collect()
    }

    fn accept(&self, given: Vec<String>) -> Result<Vec<String>, String> {
        let text = given.join(",");
        self.parse(&text).ok_or(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{CratePatterns, Values as _};

    #[test]
    fn names_and_patterns_are_separated_by_commas() {
        let parsed = CratePatterns.parse(" shop, my-shop_* ,,").unwrap();
        assert_eq!(parsed, ["shop", "my-shop_*"]);
        assert_eq!(CratePatterns.parse(""), Some(Vec::new()));
        for wrong in ["shop::cart", "shop core", "/home/me"] {
            assert_eq!(CratePatterns.parse(wrong), None, "{wrong}");
            let refused = CratePatterns.accept(vec![wrong.to_owned()]);
            assert_eq!(refused, Err(wrong.to_owned()));
        }
    }
}
