//! Names that survive memray's text outputs.
//!
//! memray ends strings at a NUL and joins frames by `;` and `|` without escaping. Rust's names are full of `;` (`[u8; 4]`),
//! so both are replaced by characters that look the same, and restored when heapray reads its own file: U+037E (GREEK
//! QUESTION MARK) and U+2223 (DIVIDES).

use std::borrow::Cow;

pub use crate::clean::in_one_line;
use crate::clean::replaced;

const SEMICOLON: char = '\u{37e}';
const BAR: char = '\u{2223}';

/// Returns `name` as it is written into a capture as a function, file or thread.
pub(crate) fn to_capture(name: &str) -> Cow<'_, str> {
    if name.contains(|c: char| matches!(c, ';' | '|') || replaced(c).is_some()) {
        name.chars()
            .map(|c| match c {
                ';' => SEMICOLON,
                '|' => BAR,
                c => replaced(c).unwrap_or(c),
            })
            .collect()
    } else {
        name.into()
    }
}

/// Returns the name from the output of [`to_capture`]. Only for captures that heapray wrote.
pub(super) fn from_capture(name: &str) -> Cow<'_, str> {
    if name.contains([SEMICOLON, BAR]) {
        name.chars()
            .map(|c| match c {
                SEMICOLON => ';',
                BAR => '|',
                c => c,
            })
            .collect()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_name_holds_nothing_that_memray_trips_over() {
        let name = "<[u8; 4] as A|B>::f\n\0x";
        let written = to_capture(name);
        assert!(!written.contains([';', '|', '\n', '\0']));
        assert_eq!(from_capture(&written), "<[u8; 4] as A|B>::f  x");
    }
}
