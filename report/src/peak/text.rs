//! Text in markup.

use crate::clean::replaced;

/// `text` for an element or an attribute of HTML or XML. What XML has no character for is replaced.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if replaced(c).is_some() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// As much of `text` as `chars` characters show, with an ellipsis for the rest; nothing where that would say nothing.
pub(super) fn fitted(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    if chars < 3 {
        return String::new();
    }
    let mut fitted: String = text.chars().take(chars - 1).collect();
    fitted.push('…');
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_is_markup() {
        let hostile = "<script>'\"&\u{1}\n\u{202e}\u{ffff}";
        assert_eq!(
            escaped(hostile),
            "&lt;script&gt;&#39;&quot;&amp;\u{fffd}\u{fffd}\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn what_does_not_fit_is_cut_and_says_so() {
        assert_eq!(fitted("app::load", 9), "app::load");
        assert_eq!(fitted("app::load", 5), "app:…");
        assert_eq!(fitted("app::load", 2), "");
    }
}
