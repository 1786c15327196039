//! Text in HTML and XML.

use std::fmt;

use crate::clean::replaced;

/// Text for an element or an attribute of HTML or XML: nothing in it is markup, and it is in one line. Characters that XML
/// does not have, or that change how the surrounding text is shown, are replaced as in
/// [`in_one_line`](crate::memray::in_one_line).
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(replaced(c).unwrap_or(c))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_is_markup() {
        let hostile = "<script>'\"&\u{1}\n\u{202e}\u{ffff}";
        assert_eq!(
            Escaped(hostile).to_string(),
            "&lt;script&gt;&#39;&quot;&amp;  \u{fffd}\u{fffd}"
        );
    }
}
