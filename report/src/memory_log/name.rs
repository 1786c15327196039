//! Names that mprof's grammar allows.

use std::borrow::Cow;

/// Returns `name` in the form that a `FUNC` line allows: each blank, newline or other control character is an underscore,
/// and so is an empty name. mprof cuts the label in its pictures at the last dot; Rust's `::` stays.
#[must_use]
pub fn function_name(name: &str) -> Cow<'_, str> {
    let bad = |c: char| c.is_whitespace() || c.is_control();
    if name.is_empty() {
        "_".into()
    } else if name.contains(bad) {
        name.replace(bad, "_").into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::function_name;

    #[test]
    fn a_name_has_no_blank_and_is_never_empty() {
        for (name, written) in [
            ("app::load", "app::load"),
            ("<T as A>::f", "<T_as_A>::f"),
            ("a\nMEM 1 2\u{a0}b", "a_MEM_1_2_b"),
            ("", "_"),
            ("ü", "ü"),
        ] {
            assert_eq!(function_name(name), written);
        }
    }
}
