//! Addresses of source files in a browser.

/// What stands for the file in a template, relative to the directory in which the program was compiled.
const FILE: &str = "{file}";
/// What stands for the line.
const LINE: &str = "{line}";

/// Returns whether `text` is a template of addresses such as `https://github.com/acme/shop/blob/main/{file}#L{line}`: an
/// address of the web with `{file}` in it, and no other word in braces than `{line}`.
#[must_use]
pub fn is_template(text: &str) -> bool {
    let is_web = ["https://", "http://"].iter().any(|scheme| {
        text.strip_prefix(scheme)
            .is_some_and(|rest| !rest.is_empty())
    });
    let is_plain =
        |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '<' | '>' | '\\' | '`');
    let rest = text.replace(FILE, "").replace(LINE, "");
    is_web && text.contains(FILE) && rest.chars().all(is_plain) && !rest.contains(['{', '}'])
}

#[cfg(test)]
mod tests {
    use super::is_template;

    #[test]
    fn a_template_is_an_address_of_the_web_with_a_place_for_the_file() {
        for good in [
            "https://github.com/acme/shop/blob/v1.2/{file}#L{line}",
            "http://sources.internal:8080/{file}?line={line}&rev=ab12",
            "https://example.com/{file}",
        ] {
            assert!(is_template(good), "{good}");
        }
        for bad in [
            "",
            "javascript:alert(1)//{file}",
            "https://",
            "https://example.com/",
            "https://example.com/{commit}/{file}",
            "https://example.com/{file",
            "https://example.com/{file} {line}",
            "https://example.com/\"{file}",
        ] {
            assert!(!is_template(bad), "{bad}");
        }
    }
}
