//! The text of a function, read while the function is compiled, so that a table can be printed where there are no sources.

use proc_macro2::Span;
use syn::ItemFn;
use syn::spanned::Spanned as _;

/// Lines of a function, from the attribute on.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) first_line: usize,
    pub(super) last_line: usize,
    pub(super) text: String,
}

impl Source {
    pub(super) fn of(function: &ItemFn) -> Source {
        let attribute = Span::call_site();
        let body = function.block.brace_token.span;
        let last_line = body.close().start().line;
        // In code that a macro made, the attribute may be anywhere.
        let first_line = match attribute.start().line {
            line if line <= last_line => line,
            _ => function.sig.fn_token.span().start().line.min(last_line),
        };
        let file = attribute.local_file();
        let text = file.and_then(|file| std::fs::read_to_string(file).ok());
        let text = match text {
            Some(text) => lines_of(&text, first_line, last_line),
            None => {
                let open = body.open().start().line;
                let text = body.join().source_text().unwrap_or_default();
                let signature = one_line(function);
                without_a_file(&text, &signature, first_line, open)
            }
        };
        Source {
            first_line,
            last_line,
            text,
        }
    }
}

/// Returns the lines `first` to `last` of `text`, counted from 1.
fn lines_of(text: &str, first: usize, last: usize) -> String {
    let count = (last + 1).saturating_sub(first);
    let lines = text.lines().skip(first.saturating_sub(1)).take(count);
    joined(lines)
}

/// Returns the lines if the compiler has the text of the body alone: lines before it are empty, except for the one where it
/// begins.
fn without_a_file(body: &str, signature: &str, first: usize, open: usize) -> String {
    let before = std::iter::repeat_n("", open.saturating_sub(first));
    let head = format!("{signature} {}", body.lines().next().unwrap_or_default());
    joined(before.chain([head.as_str()]).chain(body.lines().skip(1)))
}

fn one_line(function: &ItemFn) -> String {
    let (visibility, signature) = (&function.vis, &function.sig);
    quote::quote!(#visibility #signature).to_string()
}

fn joined<'t>(lines: impl Iterator<Item = &'t str>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_function_are_cut_from_its_file() {
        let text = "// a\n#[profile]\r\nfn f() {\n\n    // b\n}\nfn g() {}";
        assert_eq!(lines_of(text, 2, 6), "#[profile]\nfn f() {\n\n    // b\n}");
        assert_eq!(lines_of(text, 7, 7), "fn g() {}");
        assert_eq!(lines_of(text, 9, 12), "");
    }

    #[test]
    fn without_a_file_the_body_stands_on_its_own_lines() {
        let text = without_a_file("{\n    1\n}", "fn f () -> u32", 4, 6);
        assert_eq!(text, "\n\nfn f () -> u32 {\n    1\n}");
    }
}
