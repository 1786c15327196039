//! Cleans texts from outside: names of functions, files and threads, command lines, notes.
//!
//! They reach terminals, logs, HTML, XML and line-based formats. So every text is cleaned when a report gets it: names by
//! [`Strings::intern`](crate::model::Strings::intern), the others by the reader of captures and by the code that makes a
//! report of the process. Every writer may rely on that, and only has to escape the characters that its own format gives a
//! meaning.

use std::borrow::Cow;

/// Returns `text` in one line and without characters that do something instead of showing something. Control characters
/// (such as newline, ESC and those after 0x7f) and line separators become blanks. Characters that change the direction of
/// the surrounding text, and noncharacters, which XML forbids, become U+FFFD.
#[must_use]
pub fn in_one_line(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        || !text.chars().any(|c| replaced(c).is_some())
    {
        return text.into();
    }
    let cleaned = text.chars().map(|c| replaced(c).unwrap_or(c));
    cleaned.collect::<String>().into()
}

/// Returns the replacement of `c`, if it cannot stay.
pub(crate) fn replaced(c: char) -> Option<char> {
    match c {
        c if c.is_control() => Some(' '),
        '\u{2028}' | '\u{2029}' => Some(' '),
        // Unicode's Bidi_Control, all twelve.
        '\u{61c}' | '\u{200e}' | '\u{200f}' => Some('\u{fffd}'),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some('\u{fffd}'),
        // Noncharacters.
        '\u{fdd0}'..='\u{fdef}' => Some('\u{fffd}'),
        c if u32::from(c) & 0xfffe == 0xfffe => Some('\u{fffd}'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_is_left_and_nothing_that_shows_is_lost() {
        for (text, cleaned) in [
            ("plain <[u8; 4]>", "plain <[u8; 4]>"),
            ("żółć 漢字 👩\u{200d}🔧 é", "żółć 漢字 👩\u{200d}🔧 é"),
            ("a\nb\r\tc;d", "a b  c;d"),
            ("\u{1b}[31mred\u{1b}[0m", " [31mred [0m"),
            ("\u{9b}2J\u{7f}", " 2J "),
            ("user\u{202e}txt.exe\u{2069}", "user\u{fffd}txt.exe\u{fffd}"),
            ("\u{61c}\u{200e}\u{200f}", "\u{fffd}\u{fffd}\u{fffd}"),
            ("a\u{2028}b\u{2029}c", "a b c"),
            (
                "\u{fffe}\u{ffff}\u{1fffe}\u{fdd0}",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
        ] {
            assert_eq!(in_one_line(text), cleaned);
            assert_eq!(in_one_line(cleaned), cleaned);
        }
    }
}
