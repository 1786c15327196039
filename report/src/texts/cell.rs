//! Texts of a given width, and numbers for users.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::formats::spelling;
use crate::model::{Frame, Report};
use crate::units::{grouped, size};
use crate::views::{Unit, brief_name, plain_name, short_path};

/// Returns the number of columns of `text`.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Returns `text` with blanks after it.
pub(super) fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", blanks(columns, text))
}

/// Returns `text` with blanks before it.
pub(super) fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", blanks(columns, text))
}

fn blanks(columns: usize, text: &str) -> String {
    " ".repeat(columns.saturating_sub(width(text)))
}

/// Returns `text` in at most `columns`, with an ellipsis for its middle. More is kept of the end, which matters most in a
/// path and a function's name.
pub(super) fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else {
        return String::new();
    };
    let head = room / 3;
    let mut used = 0;
    let fits = |c: &char, room: usize, used: &mut usize| {
        *used += c.width().unwrap_or(0);
        *used <= room
    };
    let start: String = text
        .chars()
        .take_while(|c| fits(c, head, &mut used))
        .collect();
    used = 0;
    let end = text.chars().rev();
    let end: Vec<char> = end
        .take_while(|c| fits(c, room - head, &mut used))
        .collect();
    let end: String = end.into_iter().rev().collect();
    format!("{start}…{end}")
}

/// Returns a function's name in at most `columns`: as much of it as fits, in whole words if possible.
pub(super) fn shorten_name(name: &str, columns: usize) -> String {
    if width(name) <= columns {
        return name.to_owned();
    }
    let plain = plain_name(name);
    if width(&plain) <= columns {
        return plain.into_owned();
    }
    let brief = brief_name(name);
    match brief.rsplit_once("::") {
        Some((_, last))
            if !last.starts_with('{') && width(&brief) > columns && width(last) <= columns =>
        {
            last.to_owned()
        }
        _ => shorten(&brief, columns),
    }
}

/// Returns a path in at most `columns`: its end, which has the file and the line.
pub(super) fn shorten_path(path: &str, columns: usize) -> String {
    if width(path) <= columns {
        return path.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else {
        return String::new();
    };
    let mut used = 0;
    let end = path.char_indices().rev().take_while(|(_, c)| {
        used += c.width().unwrap_or(0);
        used <= room
    });
    let from = end.last().map_or(path.len(), |(at, _)| at);
    format!("…{}", &path[from..])
}

/// Returns two names and a link between them in at most `columns`. If both are long the last one, which is nearer to the
/// allocation, has the larger part.
pub(super) fn shorten_two(first: &str, link: &str, last: &str, columns: usize) -> String {
    let room = columns.saturating_sub(width(link));
    let for_first = width(first).min((room / 3).max(room.saturating_sub(width(last))));
    let text = format!(
        "{}{link}{}",
        shorten_name(first, for_first),
        shorten_name(last, room - for_first)
    );
    shorten(&text, columns)
}

/// Returns `file:line` of a frame, as far as they are known; nothing without a file.
pub(super) fn place(report: &Report, frame: Frame) -> String {
    let file = spelling::file(report, frame);
    match (short_path(&file), frame.line) {
        ("", _) => String::new(),
        (file, 0) => file.to_owned(),
        (file, line) => format!("{file}:{line}"),
    }
}

/// Returns the share of `part` in `whole`; 0 if `whole` is 0.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}

/// Returns `12.34 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Returns a bar of at most `columns` in steps of an eighth; nothing for 0, and otherwise at least an eighth.
pub(super) fn bar(share: f64, columns: usize) -> String {
    const PARTS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).ceil() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(PARTS[eighths % 8]);
    }
    bar
}

/// Returns an amount of `unit`.
pub(super) fn amount(unit: Unit, n: u64) -> String {
    match unit {
        Unit::Bytes => size(n),
        Unit::Count => grouped(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_text_is_as_wide_as_it_may_be() {
        for (text, columns, short) in [
            ("/usr/lib/a.rs", 13, "/usr/lib/a.rs"),
            ("/usr/lib/a.rs", 10, "/us…b/a.rs"),
            ("日本語日本語", 8, "日…本語"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(shorten(text, columns), short);
            assert!(width(short) <= columns);
        }
    }

    #[test]
    fn both_ends_of_a_run_are_marked() {
        for (columns, text) in [
            (30, "alloc::first → std::last"),
            (22, "first → std::last"),
            (13, "…st → last"),
            (2, "…"),
        ] {
            let short = shorten_two("alloc::first", " → ", "std::last", columns);
            assert!(width(&short) <= columns, "{short}");
            if columns > 2 {
                assert_eq!(short, text);
            }
        }
    }

    #[test]
    fn names_lose_generic_arguments_before_letters_and_paths_lose_their_start() {
        let name = "<hyper::Conn<I,B> as core::Future>::poll";
        for (columns, short) in [
            (40, name),
            (30, "hyper::Conn::poll"),
            (14, "Conn::poll"),
            (9, "poll"),
            (3, "…ll"),
        ] {
            assert_eq!(shorten_name(name, columns), short);
        }
        for (columns, short) in [
            (14, "/srv/shop/a.rs"),
            (13, "…rv/shop/a.rs"),
            (1, "…"),
            (0, ""),
        ] {
            assert_eq!(shorten_path("/srv/shop/a.rs", columns), short);
        }
    }

    #[test]
    fn bars_and_numbers_are_readable() {
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(0.000_001, 4), "▏");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(7.0, 4), "████");
        assert_eq!(percent(share(1, 3)), "33.33 %");
        assert_eq!(percent(share(1, 0)), "0.00 %");
    }
}
