//! The secret that callers of the endpoints must know.

use std::fmt;

/// A bearer token. Its text never shows up in `Debug` output, errors or logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A token that can be written into an `Authorization` header as it is (`b64token`, RFC 6750, section 2.1).
    pub(crate) fn parse(text: &str) -> Option<Token> {
        let body = text.trim_end_matches('=');
        let legal = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b);
        (!body.is_empty() && body.bytes().all(legal)).then(|| Token(text.to_owned()))
    }

    /// Whether `other` is this token. Takes the same time wherever the two differ; only the length can be learnt.
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

/// A token as the code gave it, not checked yet. Its text does not show up in `Debug` output either.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// What [`Token::parse`] takes, for error messages.
pub(crate) const ALLOWED: &str =
    "one or more letters, digits or -._~+/ (and = at the end), as in an Authorization header";

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
