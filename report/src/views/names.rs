//! Shortens function names in the same way as the page (`report/page/js/names.js`): `report/tests/names.json` is the table
//! of cases for both.

use super::plain_name::read;

/// Returns the last two segments of the [`plain_name`](super::plain_name()), and closures in them: `SessionCache::remember`.
#[must_use]
pub fn brief_name(name: &str) -> String {
    let Some(plain) = read(name) else {
        return name.to_owned();
    };
    let parts = segments(&plain);
    let mut named = 0;
    let mut first = parts.len();
    while first > 0 && named < 2 {
        first -= 1;
        named += usize::from(!parts[first].starts_with('{'));
    }
    parts[first..].join("::")
}

/// Returns the [`plain_name`](super::plain_name()) without closures and the like. `shop::cart::add::{{closure}}`, the
/// compiler's name for the body of `async fn add` and for a closure in `add`, becomes `shop::cart::add`.
#[must_use]
pub fn logical_name(name: &str) -> String {
    let Some(plain) = read(name) else {
        return name.to_owned();
    };
    let kept: Vec<&str> = segments(&plain)
        .into_iter()
        .map(|part| match part.find('{') {
            // `{closure}`, and `call_once{vtable.shim}`.
            Some(at) if part.ends_with('}') => &part[..at],
            _ => part,
        })
        .filter(|part| !part.is_empty())
        .collect();
    if kept.is_empty() {
        plain
    } else {
        kept.join("::")
    }
}

/// Returns the parts of a plain name between `::`. Text in parentheses, such as parameters in C++, is not split.
pub(crate) fn segments(plain: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut depth) = (0, 0usize);
    let bytes = plain.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && bytes.get(at + 1) == Some(&b':') => {
                parts.push(&plain[from..at]);
                at += 1;
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(&plain[from..]);
    parts
}

/// Returns whether a function only passes a call on: it polls, calls or catches the code of others, as libraries and the
/// compiler do between one `async fn` and the next. Never called for the service's own code.
#[must_use]
pub fn is_plumbing(name: &str) -> bool {
    let logical = logical_name(name);
    let last = segments(&logical).pop().unwrap_or_default();
    last == "poll"
        || last.starts_with("poll_")
        || matches!(
            last,
            "call"
                | "call_mut"
                | "call_once"
                | "call_once_force"
                | "with"
                | "with_mut"
                | "try_with"
                | "catch_unwind"
                | "do_call"
                | "do_catch"
                | "try_call"
                | "__rust_try"
                | "__rust_begin_short_backtrace"
                | "__rust_end_short_backtrace"
                | "in_scope"
                | "budget"
                | "with_budget"
                | "enter_runtime"
                | "block_on"
        )
        || logical == "std::panicking::try"
        || logical == "core::future::from_generator"
}
