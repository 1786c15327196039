//! Reads from v0-mangled Rust names whether a method is a default method of the trait, or generic over the type. The
//! demangled name does not show that: it contains the type that the code was instantiated for.
//!
//! ```text
//! _RNvXs_4app4MailNtB_3Run3run      <app::Mail as app::Run>::run    X: in an impl, which is in the crate app
//! _RNvYNtB_4MailNtB_3Run3run        <app::Mail as app::Run>::run    Y: in the trait itself
//! ```
//!
//! The grammar is that of RFC 2603. Symbols come from files: an unexpected symbol counts as code for one type.

/// Crates of the standard library. They depend on each other, but not on the program's crates.
const LIBRARY: [&str; 3] = ["alloc", "core", "std"];

/// Returns whether `symbol`, which is `full` when demangled, is `<T as Trait>::f` for any `T`. The legacy name of such code
/// has the type parameter, or only the trait.
///
/// Not every `impl<T> Trait for T` differs from an `impl` for one type. Two kinds do: if the type is a closure or a
/// function, because an `impl` can't name such a type, and if the `impl` is in the standard library and the type is not.
pub(super) fn is_of_any_type(symbol: &str, full: &str) -> bool {
    let mut symbol = Symbol::of(symbol);
    match symbol.root() {
        Some('Y') => true,
        Some('X') => {
            let Some(at_crate) = symbol.impl_crate() else {
                return false;
            };
            symbol.is_function_or_closure()
                || (LIBRARY.contains(&at_crate) && !is_library_type(full))
        }
        _ => false,
    }
}

/// Returns whether the type in `<T as Trait>::f` is, or may be, a type of the library.
fn is_library_type(full: &str) -> bool {
    let kind = full.strip_prefix('<').unwrap_or(full);
    let kind = kind.trim_start_matches("&").trim_start_matches("mut ");
    let end = kind.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let (head, rest) = kind.split_at(end.unwrap_or(kind.len()));
    !rest.starts_with("::") || LIBRARY.contains(&head)
}

/// A mangled name without its prefix, and the read position.
struct Symbol<'s> {
    text: &'s str,
    at: usize,
}

impl<'s> Symbol<'s> {
    fn of(symbol: &'s str) -> Symbol<'s> {
        let text = ["_R", "__R"].iter().find_map(|&p| symbol.strip_prefix(p));
        Symbol {
            text: text.unwrap_or_default(),
            at: 0,
        }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self, c: char) -> bool {
        let is_next = self.peek() == Some(c);
        self.at += usize::from(is_next);
        is_next
    }

    /// Returns the kind of the path that contains the outermost function. Skips generic arguments and the function's own
    /// name.
    fn root(&mut self) -> Option<char> {
        loop {
            match self.next()? {
                'I' => {}
                'N' => {
                    self.next()?;
                }
                kind => return Some(kind),
            }
        }
    }

    /// Reads the path that contains an `impl`, and returns its crate.
    fn impl_crate(&mut self) -> Option<&'s str> {
        self.disambiguator()?;
        let mut names = 0;
        loop {
            match self.next()? {
                'N' => {
                    self.next()?;
                    names += 1;
                }
                'C' => break,
                _ => return None,
            }
        }
        let at_crate = self.identifier()?;
        for _ in 0..names {
            self.identifier()?;
        }
        Some(at_crate)
    }

    /// Returns whether the type that follows is that of a function or a closure.
    fn is_function_or_closure(&mut self) -> bool {
        for _ in 0..8 {
            match self.next() {
                // A reference to such a type can't be named either. `R` may have a lifetime.
                Some('R' | 'Q') => {
                    if self.skip('L') && self.number().is_none() {
                        return false;
                    }
                }
                Some('I') => {}
                Some('N') => return matches!(self.next(), Some('v' | 'C')),
                Some('B') => match self.number() {
                    // Only backwards, so that the loop ends.
                    Some(to) if to < self.at => self.at = to,
                    _ => return false,
                },
                _ => return false,
            }
        }
        false
    }

    /// Skips an optional disambiguator: `s` and a number.
    fn disambiguator(&mut self) -> Option<()> {
        if self.skip('s') {
            self.number()?;
        }
        Some(())
    }

    fn identifier(&mut self) -> Option<&'s str> {
        self.disambiguator()?;
        self.skip('u'); // Punycode
        let digits = self.text.get(self.at..)?;
        let end = digits.find(|c: char| !c.is_ascii_digit())?;
        let length: usize = digits[..end].parse().ok()?;
        self.at += end;
        self.skip('_');
        let name = self.text.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(name)
    }

    /// Reads a number of base 62: `_` is 0, `0_` is 1.
    fn number(&mut self) -> Option<usize> {
        let mut number = 0usize;
        let mut is_zero = true;
        loop {
            let digit = match self.next()? {
                '_' if is_zero => return Some(0),
                '_' => return number.checked_add(1),
                c @ '0'..='9' => c as usize - '0' as usize,
                c @ 'a'..='z' => c as usize - 'a' as usize + 10,
                c @ 'A'..='Z' => c as usize - 'A' as usize + 36,
                _ => return None,
            };
            is_zero = false;
            number = number.checked_mul(62)?.checked_add(digit)?;
        }
    }
}
