//! Reads a query string into a struct that derives `Deserialize`. The same struct derives `IntoParams` for the OpenAPI
//! document, so that each parameter is declared once.
//!
//! Unknown parameters are ignored. A bool takes words such as `true` or `yes`; its name alone means yes, as on a command
//! line. A parameter that is given twice is refused.

use std::fmt::{self, Display};

use serde::Deserialize;
use serde::de::value::{StrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::error::ApiError;
use crate::config::truth;
use crate::config::values::one_of;

/// Reads the parameters of `T` in `query`.
///
/// # Errors
///
/// A value is not allowed, or a parameter is missing or given twice.
pub(super) fn read<'q, T: Deserialize<'q>>(query: Option<&'q str>) -> Result<T, ApiError> {
    let pairs = Pairs {
        rest: query,
        current: ("", ""),
    };
    T::deserialize(pairs).map_err(|refused| ApiError::BadRequest(refused.to_string()))
}

/// Reads a whole number of at most nine digits, which no sign precedes. `allowed` says which numbers are.
///
/// # Errors
///
/// The value is not such a number, or more than `most`.
pub(super) fn whole<'de, D: Deserializer<'de>>(
    value: D,
    most: u32,
    allowed: impl Display,
) -> Result<u32, D::Error> {
    let text = String::deserialize(value)?;
    // `parse` takes a sign too.
    let is_number = text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok();
    let number = number.filter(|number| is_number && *number <= most);
    number.ok_or_else(|| D::Error::custom(allowed))
}

/// Reason why a query is refused.
#[derive(Debug)]
enum Refused {
    /// The allowed values. The name and the value are added later.
    Value(String),
    Query(String),
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Refused::Value(text) | Refused::Query(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for Refused {}

impl serde::de::Error for Refused {
    fn custom<T: Display>(allowed: T) -> Refused {
        Refused::Value(allowed.to_string())
    }

    fn unknown_variant(_: &str, allowed: &'static [&'static str]) -> Refused {
        Refused::Value(one_of(allowed))
    }

    fn duplicate_field(name: &'static str) -> Refused {
        Refused::Query(format!("{name} is given twice"))
    }

    fn missing_field(name: &'static str) -> Refused {
        Refused::Query(format!("{name} is missing"))
    }
}

/// Names and values of a query. A name without a value has an empty value.
struct Pairs<'q> {
    rest: Option<&'q str>,
    current: (&'q str, &'q str),
}

impl<'de> Deserializer<'de> for Pairs<'de> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Pairs<'de> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Refused> {
        let Some(rest) = self.rest else {
            return Ok(None);
        };
        let (pair, rest) = match rest.split_once('&') {
            Some((pair, rest)) => (pair, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        self.current = pair.split_once('=').unwrap_or((pair, ""));
        let name: StrDeserializer<'_, Refused> = self.current.0.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        let (name, value) = self.current;
        seed.deserialize(Value(value))
            .map_err(|refused| match refused {
                Refused::Value(allowed) => {
                    Refused::Query(format!("{name} is {value:?}, but must be {allowed}"))
                }
                refused @ Refused::Query(_) => refused,
            })
    }
}

/// Value as it stands in the query, still encoded.
struct Value<'q>(&'q str);

impl Value<'_> {
    fn decoded(&self) -> Result<String, Refused> {
        let refused = |BadValue| Refused::custom("UTF-8, percent-encoded");
        decode(self.0).map_err(refused)
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_string(self.decoded()?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let text = self.decoded()?;
        let says = if text.is_empty() {
            Some(true)
        } else {
            truth::parse(&text)
        };
        visitor.visit_bool(says.ok_or_else(|| Refused::custom(truth::ALLOWED))?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        StringDeserializer::new(self.decoded()?).deserialize_enum(name, words, visitor)
    }

    /// Skips the value of an unknown parameter.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct map struct identifier
    }
}

/// A value that cannot be decoded.
struct BadValue;

/// Decodes a form value: `+` is a space, `%` begins two hexadecimal digits.
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
    use super::{ApiError, read};
    use serde::Deserialize;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Query {
        name: Option<String>,
        flag: bool,
        word: Option<Word>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Word {
        One,
        TwoThree,
        Four,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Needed {
        name: String,
    }

    fn refused<'q, T: Deserialize<'q>>(query: &'q str) -> String {
        match read::<T>(Some(query)).err() {
            Some(ApiError::BadRequest(text)) => text,
            other => panic!("{query:?}: {other:?}"),
        }
    }

    #[test]
    fn a_value_is_decoded() {
        for (query, expected) in [
            (None, None),
            (Some(""), None),
            (Some("other=1"), None),
            (Some("other=%zz&other"), None),
            (Some("name"), Some("")),
            (Some("name=a+b%20c%2Bd"), Some("a b c+d")),
            (Some("x=1&name=%C3%BC&Name=2"), Some("ü")),
        ] {
            let read: Query = read(query).unwrap();
            assert_eq!(read.name.as_deref(), expected, "{query:?}");
        }
        for bad in ["name=%", "name=%4", "name=%zz", "name=%ff"] {
            let text = refused::<Query>(bad);
            assert!(
                text.ends_with("but must be UTF-8, percent-encoded"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_flag_needs_no_value_and_a_word_is_one_of_its_enum() {
        for (query, flag) in [
            ("flag", true),
            ("flag=", true),
            ("flag=Y", true),
            ("flag=off", false),
        ] {
            assert_eq!(read::<Query>(Some(query)).unwrap().flag, flag, "{query}");
        }
        let word = |query| read::<Query>(Some(query)).unwrap().word;
        assert_eq!(word("word=two-three"), Some(Word::TwoThree));
        assert_eq!(word("word=%6fne"), Some(Word::One));
        assert_eq!(word("flag"), None);
    }

    #[test]
    fn what_is_refused_is_named_with_what_is_allowed() {
        for (query, expected) in [
            (
                "word=two",
                "word is \"two\", but must be one, two-three or four",
            ),
            ("word", "word is \"\", but must be one, two-three or four"),
            (
                "flag=2",
                "flag is \"2\", but must be true, t, yes, y, on or 1, or false, f, no, n, off, 0 or empty",
            ),
            ("flag&x&flag", "flag is given twice"),
            ("name=a&name=a", "name is given twice"),
        ] {
            assert_eq!(refused::<Query>(query), expected);
        }
        assert_eq!(refused::<Needed>("x"), "name is missing");
        assert_eq!(read::<Needed>(Some("name=%31")).unwrap().name, "1");
    }
}
