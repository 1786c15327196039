//! One plain name for a function, from the names of all compilers, manglings and debug information.
//!
//! ```text
//! legacy     alloc::vec::Vec<T,A>::push                  alloc::vec::Vec::push
//! v0         <alloc::vec::Vec<u8>>::push                 alloc::vec::Vec::push
//! DWARF      push<u8, alloc::alloc::Global>              push
//! legacy     <hyper::Conn<T> as Future>::poll            hyper::Conn::poll
//! legacy     app::api::<impl app::Encode for u8>::put    u8::put
//! legacy     alloc::slice::<impl [T]>::into_vec          slice::into_vec
//! v0         <[u8]>::into_vec                            slice::into_vec
//! legacy     <T as alloc::string::ToString>::to_string   alloc::string::ToString::to_string
//! v0         app::main::{closure#0}                      app::main::{closure}
//! C++        std::vector<int>::push_back(int const&)     std::vector::push_back(int const&)
//! ```
//!
//! Names come out of files that anyone may have written: reading a name never panics and takes time in proportion to its
//! length. An unreadable name stays as it is. A plain name's plain name is itself.

use std::borrow::Cow;

/// Returns `name` without generic arguments, trait casts, crate disambiguators, numbers of closures and hash.
///
/// In `<T as Trait>::f` the type is kept instead of the trait. If the type is a type parameter, which means nothing, the
/// trait is kept. Types without a path have their names in the standard library's documentation: `slice`, `tuple`.
#[must_use]
pub fn plain_name(name: &str) -> Cow<'_, str> {
    if !name.contains(['<', '{', '[']) && without_hash(name).len() == name.len() {
        return name.into();
    }
    read(name).map_or(name.into(), Cow::Owned)
}

/// Returns the [`plain_name`] of `<T as Trait>::f` as if `T` were a type parameter: `Trait::f`. Returns `None` for other
/// kinds of names.
///
/// Legacy names have the parameter if code is generic over the type. v0 names have the type that the code was compiled for.
#[must_use]
pub fn trait_name(name: &str) -> Option<String> {
    let (at, rest) = cast(name)?;
    let inner = &name[1..at];
    read(&format!("<T as {}{rest}", implemented(inner)?))
}

/// Returns whether `name` belongs to code that is generic over the type that it was compiled for: `<T as Trait>::f`.
#[must_use]
pub fn is_of_any_type(name: &str) -> bool {
    let kind = cast(name).and_then(|(at, _)| {
        let inner = &name[1..at];
        match inner.strip_prefix("impl ") {
            Some(inner) => Some(&inner[top_level(inner, " for ")? + " for ".len()..]),
            None => Some(&inner[..top_level(inner, " as ")?]),
        }
    });
    kind.is_some_and(|kind| matches!(head(kind, 0), Some(Head::Parameter(_))))
}

/// Returns the end of the brackets that `name` begins with, and the text from there on.
fn cast(name: &str) -> Option<(usize, &str)> {
    if name.len() > LONGEST_READ || !name.starts_with('<') {
        return None;
    }
    let end = closing(name)?;
    Some((end, &name[end..]))
}

fn implemented(inner: &str) -> Option<&str> {
    match inner.strip_prefix("impl ") {
        Some(inner) => Some(&inner[..top_level(inner, " for ")?]),
        None => Some(&inner[top_level(inner, " as ")? + " as ".len()..]),
    }
}

/// Number of characters of the longest name that is shown. A longer name loses its middle.
pub const LONGEST_SHOWN: usize = 240;

/// Returns `name` with an ellipsis for its middle if it has more than [`LONGEST_SHOWN`] characters.
#[must_use]
pub fn short_name(name: &str) -> Cow<'_, str> {
    shortened(name, LONGEST_SHOWN)
}

/// Returns `name` in at most `most` characters, including an ellipsis. More is kept of the end, which has the function.
pub(crate) fn shortened(name: &str, most: usize) -> Cow<'_, str> {
    if name.len() <= most || name.char_indices().nth(most).is_none() {
        return name.into();
    }
    let head = most / 3;
    let tail = most - head - 1;
    let start = name.char_indices().nth(head).map_or(0, |(at, _)| at);
    let end = name.char_indices().nth_back(tail - 1);
    let end = end.map_or(name.len(), |(at, _)| at);
    format!("{}…{}", &name[..start], &name[end..]).into()
}

/// Bytes of the longest name that is read.
const LONGEST_READ: usize = 64 << 10;

/// Number of times that a name is read again until nothing changes. Real names need one or two.
const ROUNDS: usize = 8;

/// Returns `None` if the name cannot be read.
pub(super) fn read(name: &str) -> Option<String> {
    if name.len() > LONGEST_READ {
        return None;
    }
    let mut plain = read_once(name)?;
    for _ in 0..ROUNDS {
        match read_once(&plain) {
            Some(again) if again != plain => plain = again,
            _ => return Some(plain),
        }
    }
    None
}

fn read_once(name: &str) -> Option<String> {
    if name.contains("</") {
        return None;
    }
    path(without_hash(name), 0).filter(|plain| !plain.is_empty())
}

/// Removes the hash of a legacy name, `::h` and 16 digits.
fn without_hash(mut name: &str) -> &str {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    while let Some(at) = name.len().checked_sub(19)
        && let Some((head, tail)) = name.split_at_checked(at)
        && tail.starts_with("::h")
        && tail[3..].bytes().all(is_digit)
    {
        name = head;
    }
    name
}

/// Largest depth of nesting. No real name is deeper, but a hostile one could be.
const DEEPEST: u32 = 64;

fn path(text: &str, depth: u32) -> Option<String> {
    if depth > DEEPEST {
        return None;
    }
    let mut plain = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match first {
            '<' => {
                let end = closing(rest)?;
                let inner = &rest[1..end];
                if plain.is_empty() {
                    if depth == 0 && end + 1 == rest.len() {
                        return None; // Python's `<module>`
                    }
                    plain = qualified(inner, depth + 1)?;
                } else if plain.ends_with('.') {
                    return None; // Python's `f.<locals>.g`
                } else if let Some(implemented) = inner.strip_prefix("impl ")
                    && plain.ends_with("::")
                {
                    plain = implementation(implemented, depth + 1)?;
                } else {
                    drop_before_arguments(&mut plain);
                }
                end + 1
            }
            '{' => match compilers_own(rest) {
                Some((word, length)) => {
                    put_compilers_own(&mut plain, word);
                    length
                }
                None => put(&mut plain, first),
            },
            '[' => match disambiguator(rest) {
                Some(length) if plain.ends_with(is_in_name) => length,
                _ => put(&mut plain, first),
            },
            'o' if !plain.ends_with(is_in_name) => match operator(rest) {
                Some(length) => {
                    plain.push_str(&rest[..length]);
                    length
                }
                None => put(&mut plain, first),
            },
            '"' | '\'' | ';' => return None,
            _ => put(&mut plain, first),
        };
    }
    Some(plain)
}

fn put(plain: &mut String, c: char) -> usize {
    plain.push(c);
    c.len_utf8()
}

/// Removes the text before generic arguments that are removed: the `::` of `f::<T>`, the blank of `operator< <T>`.
fn drop_before_arguments(plain: &mut String) {
    let kept = match plain.strip_suffix("::") {
        Some(path) => path.len(),
        None if plain.ends_with("operator< ") || plain.ends_with("operator<< ") => plain.len() - 1,
        None => plain.len(),
    };
    plain.truncate(kept);
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the plain form of `T as Trait`, `impl Trait for T`, or a type alone.
fn qualified(inner: &str, depth: u32) -> Option<String> {
    if let Some(implemented) = inner.strip_prefix("impl ") {
        return implementation(implemented, depth);
    }
    match top_level(inner, " as ") {
        Some(at) => subject(&inner[..at], Some(&inner[at + " as ".len()..]), depth),
        None => subject(inner, None, depth),
    }
}

/// Returns the plain form of `Trait for T`, or a type alone.
fn implementation(implemented: &str, depth: u32) -> Option<String> {
    match top_level(implemented, " for ") {
        Some(at) => {
            let kind = &implemented[at + " for ".len()..];
            subject(kind, Some(&implemented[..at]), depth)
        }
        None => subject(implemented, None, depth),
    }
}

/// Returns the name for a function's type.
fn subject(kind: &str, of_trait: Option<&str>, depth: u32) -> Option<String> {
    let named = match (head(kind, depth)?, of_trait) {
        (Head::Parameter(_), Some(of_trait)) => path(before_binding(of_trait), depth + 1)?,
        (Head::Parameter(name), None) => name.to_owned(),
        (Head::Path(path), _) => path,
        (Head::Builtin(name), _) => name.to_owned(),
    };
    (!named.is_empty()).then_some(named)
}

/// Kind of a type, without references.
enum Head<'t> {
    Path(String),
    /// `T`: legacy names have the parameters of generic code.
    Parameter(&'t str),
    Builtin(&'t str),
}

const PRIMITIVES: [&str; 19] = [
    "bool", "char", "f128", "f16", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "str",
    "u128", "u16", "u32", "u64", "u8", "usize",
];

fn head(kind: &str, depth: u32) -> Option<Head<'_>> {
    if depth > DEEPEST {
        return None;
    }
    let mut kind = kind.trim();
    loop {
        let shorter = ["&", "mut ", "dyn ", "impl "]
            .iter()
            .find_map(|word| kind.strip_prefix(word));
        kind = match shorter {
            Some(rest) => rest.trim_start(),
            None if kind.starts_with('\'') => match kind.split_once(' ') {
                Some((_, rest)) => rest.trim_start(),
                None => return None,
            },
            None => match kind.strip_prefix("for<") {
                Some(_) => kind[closing_from(kind, "for".len())? + 1..].trim_start(),
                None => break,
            },
        };
    }
    if kind.starts_with("*const ") || kind.starts_with("*mut ") {
        return Some(Head::Builtin("pointer"));
    }
    if ["fn(", "unsafe fn(", "extern \"", "unsafe extern \""]
        .iter()
        .any(|start| kind.starts_with(start))
    {
        return Some(Head::Builtin("fn"));
    }
    if let Some(inner) = kind.strip_prefix('[') {
        let inner = inner.strip_suffix(']')?;
        let is_array = top_level(inner, "; ").is_some();
        return Some(Head::Builtin(if is_array { "array" } else { "slice" }));
    }
    if let Some(inner) = kind.strip_prefix('(') {
        // `(dyn A + B)` is only in brackets.
        let inner = inner.strip_suffix(')')?;
        if inner.is_empty() || top_level(inner, ",").is_some() {
            return Some(Head::Builtin("tuple"));
        }
        return head(inner, depth + 1);
    }
    let kind = before_binding(kind);
    if kind == "!" {
        return Some(Head::Builtin("never"));
    }
    if let Some(primitive) = PRIMITIVES.iter().find(|name| **name == kind) {
        return Some(Head::Builtin(primitive));
    }
    if !kind.is_empty() && kind.chars().all(is_in_name) {
        return Some(Head::Parameter(kind));
    }
    path(kind, depth + 1).map(Head::Path)
}

/// Returns a trait without additions: `dyn A + B`, and `dyn Fn<(u8,)>+Output = u8` of legacy names.
fn before_binding(kind: &str) -> &str {
    top_level(kind, "+").map_or(kind, |at| kind[..at].trim_end())
}

/// Returns the word in `{closure#0}`, `{{closure}}` and the like at the start of `text`, and the length of the whole.
fn compilers_own(text: &str) -> Option<(&str, usize)> {
    let braces = text.bytes().take(3).take_while(|&b| b == b'{').count();
    let inner = &text[braces..];
    let is_in_word = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | '.' | ':');
    let word = &inner[..inner.find(|c| !is_in_word(c)).unwrap_or(inner.len())];
    let mut rest = &inner[word.len()..];
    if let Some(numbered) = rest.strip_prefix('#') {
        rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    let closing = &"}}"[..braces.min(2)];
    let is_whole = braces <= 2 && !word.is_empty() && rest.starts_with(closing);
    let length = text.len() - rest.len() + closing.len();
    is_whole.then_some((word, length))
}

/// Appends closures of all manglings, and bodies of `async fn`, as `{closure}`, and shims as `f{vtable.shim}`.
fn put_compilers_own(plain: &mut String, word: &str) {
    let word = word.strip_suffix("_env").unwrap_or(word);
    let shim = match word.strip_prefix("shim:") {
        Some(shim) => Some(shim),
        None => word.strip_suffix(".shim"),
    };
    if let Some(shim) = shim {
        plain.truncate(plain.strip_suffix("::").unwrap_or(plain).len());
        plain.push_str(&format!("{{{shim}.shim}}"));
        return;
    }
    let is_closure = word == "closure"
        || ["coroutine", "generator"].contains(&word)
        || ["async_", "gen_"].iter().any(|kind| word.starts_with(kind));
    let word = if is_closure { "closure" } else { word };
    plain.push_str(&format!("{{{word}}}"));
}

/// Returns the length of `[0123456789abcdef]` before `::`, which distinguishes two crates of the same name.
fn disambiguator(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let digits = inner.bytes().take(17);
    let digits = digits.take_while(u8::is_ascii_hexdigit).count();
    let is_number = (1..=16).contains(&digits) && inner[digits..].starts_with("]::");
    is_number.then_some(digits + "[]".len())
}

/// Returns the length of `operator<` and the other operators of C++ with angle brackets.
fn operator(text: &str) -> Option<usize> {
    let symbol = text.strip_prefix("operator")?;
    [
        "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">",
    ]
    .iter()
    .find(|known| symbol.starts_with(**known))
    .map(|known| "operator".len() + known.len())
}

/// Returns the position of the `>` that closes the `<` at the start of `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut scan = Scan::new(text);
    while let Some((at, c)) = scan.next() {
        match c {
            '<' => depth += 1,
            '>' => {
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

fn closing_from(text: &str, open: usize) -> Option<usize> {
    Some(open + closing(&text[open..])?)
}

/// Returns the position of `word` outside of all brackets.
fn top_level(text: &str, word: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut scan = Scan::new(text);
    while let Some((at, c)) = scan.next() {
        if depth == 0 && text[at..].starts_with(word) {
            return Some(at);
        }
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// Characters of a name without those that only look like brackets: arrows, operators, and constants in quotes.
struct Scan<'t> {
    text: &'t str,
    at: usize,
    before: char,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Scan<'t> {
        Scan {
            text,
            at: 0,
            before: ' ',
        }
    }

    fn next(&mut self) -> Option<(usize, char)> {
        loop {
            let rest = &self.text[self.at..];
            let c = rest.chars().next()?;
            let skipped = match c {
                '-' | '=' if rest[1..].starts_with('>') => Some(2),
                'o' if !is_in_name(self.before) => operator(rest),
                '\'' | '"' => literal(rest),
                _ => None,
            };
            self.before = c;
            match skipped {
                Some(length) => self.at += length,
                None => {
                    let at = self.at;
                    self.at += c.len_utf8();
                    return Some((at, c));
                }
            }
        }
    }
}

/// Returns the length of the literal at the start of `text`, or `None` for a lifetime, or for a literal that does not end.
fn literal(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    // `'\u{10ffff}'` is the longest literal with one character.
    let most = if quote == '"' { 4096 } else { 12 };
    let mut escaped = false;
    for (nth, (at, c)) in text.char_indices().enumerate().skip(1) {
        match c {
            _ if at >= most => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + 1),
            // Without an escape, a character literal has one character between two quotes; `'a` is a lifetime.
            _ if quote == '\'' && nth > 1 && !text[1..].starts_with('\\') => return None,
            _ => {}
        }
    }
    None
}
