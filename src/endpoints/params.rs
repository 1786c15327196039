//! Values in a query.

/// Names and values in `query`, as they stand in it. A name without a value has an empty one.
pub(super) fn pairs(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.unwrap_or("").split('&');
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// The value of `name` in `query`, decoded; the first if there are several.
///
/// # Errors
///
/// It is no UTF-8, or a `%` in it begins nothing.
pub(super) fn value(query: Option<&str>, name: &str) -> Result<Option<String>, BadValue> {
    let found = pairs(query).find(|(n, _)| *n == name);
    found.map(|(_, value)| decode(value)).transpose()
}

/// A value that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadValue;

/// As forms are encoded: `+` is a space, `%` begins two hexadecimal digits.
fn decode(text: &str) -> Result<String, BadValue> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit(), digit());
                let both = high.zip(low).ok_or(BadValue)?;
                u8::try_from(both.0 * 16 + both.1).map_err(|_| BadValue)?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| BadValue)
}

#[cfg(test)]
mod tests {
    use super::{BadValue, value};

    #[test]
    fn a_value_is_decoded() {
        for (query, expected) in [
            (None, Ok(None)),
            (Some(""), Ok(None)),
            (Some("other=1"), Ok(None)),
            (Some("name"), Ok(Some(""))),
            (Some("name=a+b%20c%2Bd"), Ok(Some("a b c+d"))),
            (Some("x=1&name=%C3%BC&name=2"), Ok(Some("ü"))),
            (Some("name=%"), Err(BadValue)),
            (Some("name=%4"), Err(BadValue)),
            (Some("name=%zz"), Err(BadValue)),
            (Some("name=%ff"), Err(BadValue)),
        ] {
            let expected = expected.map(|value| value.map(str::to_owned));
            assert_eq!(value(query, "name"), expected, "{query:?}");
        }
    }
}
