//! Function names made short enough to read, the same way as the page does it (`report/page/js/names.js`):
//! `report/tests/names.json` is the table of cases that both are held to.

use std::borrow::Cow;

/// `name` without generic arguments, trait casts and hash: `<hyper::Conn<T> as Future>::poll` gives
/// `hyper::Conn::poll`. A name that cannot be read so (hostile, or of another language) stays as it is.
#[must_use]
pub fn plain_name(name: &str) -> Cow<'_, str> {
    read(name).map_or(name.into(), Cow::Owned)
}

fn read(name: &str) -> Option<String> {
    simplify(without_hash(name), 0).filter(|plain| !plain.is_empty())
}

/// The last two segments of the [`plain_name`], and closures in them: `SessionCache::remember`.
#[must_use]
pub fn brief_name(name: &str) -> String {
    let Some(plain) = read(name) else {
        return name.to_owned();
    };
    let parts: Vec<&str> = plain.split("::").collect();
    let mut named = 0;
    let mut first = parts.len();
    while first > 0 && named < 2 {
        first -= 1;
        named += usize::from(!parts[first].starts_with('{'));
    }
    parts[first..].join("::")
}

/// The [`plain_name`] without closures and the like: `shop::cart::add::{{closure}}`, which is what the compiler calls the
/// body of `async fn add` as well as a closure in `add`, gives `shop::cart::add`.
#[must_use]
pub fn logical_name(name: &str) -> String {
    let Some(plain) = read(name) else {
        return name.to_owned();
    };
    let kept: Vec<&str> = plain
        .split("::")
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

/// Whether a function only passes on what was asked: it polls, calls or catches what others wrote, as libraries and
/// the compiler do between one `async fn` and the next. Never asked about the service's own code.
#[must_use]
pub fn is_plumbing(name: &str) -> bool {
    let logical = logical_name(name);
    let last = logical.rsplit("::").next().unwrap_or(&logical);
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

/// Legacy names end in `::h` and 16 digits.
fn without_hash(name: &str) -> &str {
    match name
        .len()
        .checked_sub(19)
        .and_then(|at| name.split_at_checked(at))
    {
        Some((head, tail))
            if tail.starts_with("::h")
                && tail[3..]
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) =>
        {
            head
        }
        _ => name,
    }
}

/// Deeper than any name is nested: a hostile one could be nested without end.
const DEEPEST: u32 = 64;

/// `None` where it is no name this can read.
fn simplify(name: &str, depth: u32) -> Option<String> {
    if depth > DEEPEST || name.contains(['"', '\'', ';']) || name.contains("</") {
        return None;
    }
    let mut rest = name;
    let mut plain = String::new();
    if rest.starts_with('<') {
        let end = closing(rest, 0)?;
        let inner = &rest[1..end];
        let kind = match top_level(inner, " as ") {
            Some(cast) => &inner[..cast],
            None => inner,
        };
        plain = simplify(without_pointers(kind), depth + 1)?;
        if plain.is_empty() {
            return None;
        }
        rest = &rest[end + 1..];
        if rest.is_empty() && depth == 0 {
            return None; // Python's `<module>`
        }
    }
    let head = plain.len();
    let mut at = 0;
    while at < rest.len() {
        if rest.as_bytes()[at] == b'<' {
            let end = closing(rest, at)?;
            if plain[head..].ends_with("::") {
                plain.truncate(plain.len() - 2);
            }
            at = end + 1;
        } else {
            let next = rest[at..].find('<').map_or(rest.len(), |more| at + more);
            plain.push_str(&rest[at..next]);
            at = next;
        }
    }
    Some(plain.replace("{{", "{").replace("}}", "}"))
}

/// A type without `&mut` and the like in front.
fn without_pointers(mut kind: &str) -> &str {
    loop {
        let shorter = ["&", "*", "(", "mut ", "const ", "dyn ", "impl "]
            .iter()
            .find_map(|word| kind.strip_prefix(word));
        match shorter {
            Some(rest) => kind = rest,
            None => return kind,
        }
    }
}

/// Where the `>` stands that closes the `<` at `open`.
fn closing(text: &str, open: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0;
    for at in open..bytes.len() {
        match bytes[at] {
            b'<' => depth += 1,
            b'>' if at == 0 || bytes[at - 1] != b'-' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Where `word` stands outside of angle brackets.
fn top_level(text: &str, word: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0;
    for at in 0..bytes.len() {
        if depth == 0 && bytes[at..].starts_with(word.as_bytes()) {
            return Some(at);
        }
        match bytes[at] {
            b'<' => depth += 1,
            b'>' if at == 0 || bytes[at - 1] != b'-' => depth -= 1,
            _ => {}
        }
    }
    None
}
