//! Labels cut to the width of their boxes. The width of text is estimated from the average character, not measured.

use unicode_width::UnicodeWidthChar;

use crate::views::segments;

/// Returns as much of a function's name as fits into `columns`. Leading segments are cut first, then the end, since the last
/// segments distinguish functions. Returns nothing if the rest would mean nothing.
pub(super) fn fitted_name(name: &str, columns: usize) -> String {
    if width(name) <= columns {
        return name.to_owned();
    }
    let parts = segments(name);
    let mut short = String::new();
    for from in 1..parts.len() {
        // `{closure}` alone means nothing: the function that contains it is added.
        if from + 1 == parts.len() && from > 1 && parts[from].starts_with('{') {
            break;
        }
        short = parts[from..].join("::");
        if width(&short) <= columns {
            return short;
        }
    }
    fitted(if short.is_empty() { name } else { &short }, columns)
}

/// Returns as much of `text` as fits into `columns`, with an ellipsis for the rest, or nothing if that would mean nothing.
pub(super) fn fitted(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    if columns < 4 {
        return String::new();
    }
    let mut fitted = String::new();
    let mut taken = 1;
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > columns {
            break;
        }
        fitted.push(c);
    }
    fitted.push('…');
    fitted
}

/// Returns the last two parts of a path, which distinguish files.
pub(super) fn short_place(place: &str) -> &str {
    let mut slashes = place.rmatch_indices('/').map(|(at, _)| at);
    slashes.nth(1).map_or(place, |at| &place[at + 1..])
}

/// Returns the columns of a terminal. Wide characters take two.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_and_says_so() {
        for (columns, text) in [(9, "app::load"), (5, "app:…"), (3, ""), (0, "")] {
            assert_eq!(fitted("app::load", columns), text);
        }
        assert_eq!(fitted("名前名前", 6), "名前…");
    }

    #[test]
    fn of_a_name_the_last_segments_stay() {
        for (columns, text) in [
            (40, "shop::cart::Cart::add"),
            (20, "cart::Cart::add"),
            (14, "Cart::add"),
            (4, "add"),
            (2, ""),
        ] {
            assert_eq!(fitted_name("shop::cart::Cart::add", columns), text);
        }
        assert_eq!(fitted_name("shop::cart::add::{closure}", 11), "add::{clos…");
        assert_eq!(fitted_name("a_long_function", 7), "a_long…");
    }

    #[test]
    fn a_place_is_short_but_tells_files_apart() {
        assert_eq!(short_place("/a/b/src/main.rs:3"), "src/main.rs:3");
        assert_eq!(short_place("main.rs:3"), "main.rs:3");
        assert_eq!(short_place("ü/é/à"), "é/à");
    }
}
