//! The crates that the service names as its own.

use crate::views::pattern::matches;

/// Names of crates, and patterns with `*` for any text: `shop`, `shop_*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnCrates(Vec<String>);

impl OwnCrates {
    /// Makes the list. As in Rust code, `-` is written as `_`.
    #[must_use]
    pub fn new(patterns: &[String]) -> OwnCrates {
        let normal = |pattern: &String| pattern.replace('-', "_");
        OwnCrates(patterns.iter().map(normal).collect())
    }

    /// Returns whether the crate is in the list.
    #[must_use]
    pub fn contains(&self, crate_name: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, crate_name))
    }
}

#[cfg(test)]
mod tests {
    use super::OwnCrates;

    #[test]
    fn names_and_patterns_match_whole_names() {
        let own = OwnCrates::new(&["shop".into(), "my-shop-*".into(), "a*b*c".into()]);
        for name in ["shop", "my_shop_core", "my_shop_", "abc", "axbxc", "abbcc"] {
            assert!(own.contains(name), "{name}");
        }
        for name in ["shop_core", "myshop", "my_shop", "xshop", "ac", "abcd", ""] {
            assert!(!own.contains(name), "{name}");
        }
        assert!(OwnCrates::new(&["*".into()]).contains("any"));
        assert!(!OwnCrates::default().contains("any"));
    }
}
