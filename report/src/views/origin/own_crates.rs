//! The crates that the service names as its own.

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

/// Returns whether the whole of `text` matches `pattern`. Takes time in proportion to the product of their lengths at most.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
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
