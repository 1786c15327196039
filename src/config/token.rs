//! The secret that clients of the endpoints must send.

use std::ffi::OsString;
use std::fmt;

use super::values::Values;

/// Bearer token. Its text never shows up in `Debug` output, errors or logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Parses a token that can be written into an `Authorization` header as it is (`b64token`, RFC 6750, section 2.1).
    pub(crate) fn parse(text: &str) -> Option<Token> {
        let body = text.trim_end_matches('=');
        let legal = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b);
        (!body.is_empty() && body.bytes().all(legal)).then(|| Token(text.to_owned()))
    }

    /// Returns its text, to be sent.
    #[cfg(feature = "push")]
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Returns whether `other` is this token. The time does not depend on where the two differ; only the length can leak.
    #[cfg(feature = "http")]
    pub(crate) fn is(&self, other: &[u8]) -> bool {
        use subtle::ConstantTimeEq;
        self.0.as_bytes().ct_eq(other).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// Kind of setting: a token. Errors never contain a token's value.
pub(crate) struct Tokens;

impl Values for Tokens {
    type Given = String;
    type Value = Token;

    fn allowed(&self) -> String {
        "one or more letters, digits or -._~+/ (and = at the end), as in an Authorization header"
            .into()
    }

    fn bounds(&self) -> String {
        "letters, digits, `-._~+/`, and `=` at the end".into()
    }

    fn parse(&self, text: &str) -> Option<Token> {
        Token::parse(text)
    }

    fn read(&self, raw: OsString) -> Result<Token, String> {
        let text = raw.into_string().map_err(|_| HIDDEN)?;
        self.accept(text)
    }

    fn accept(&self, given: String) -> Result<Token, String> {
        // An empty token is a secret that was not mounted. Without an error, the endpoints would be open against their
        // owner's intention.
        let shown = if given.is_empty() { "" } else { HIDDEN };
        self.parse(&given).ok_or_else(|| shown.into())
    }
}

const HIDDEN: &str = "(hidden)";

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn a_token_is_what_fits_into_a_header() {
        for good in ["a", "s3cret", "abc-._~+/==", "Zm9v="] {
            assert!(Token::parse(good).is_some(), "{good:?}");
        }
        for bad in ["", " ", "a b", "=", "ä", "a\n", "a=b", "\"a\""] {
            assert!(Token::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn debug_output_keeps_the_secret() {
        let token = Token::parse("s3cret").unwrap();
        assert_eq!(format!("{token:?}"), "Token(hidden)");
    }

    #[cfg(feature = "http")]
    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token::parse("s3cret").unwrap();
        assert!(token.is(b"s3cret"));
        for other in [&b""[..], b"s3cre", b"s3cret ", b"s3creT", b"x3cret"] {
            assert!(!token.is(other), "{other:?}");
        }
    }
}
