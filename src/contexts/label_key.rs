//! The key of a context's label, as a value of fixed size.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::table::{self, tidy};

/// Key of a context's label, such as `route`: up to 128 bytes without control characters. It is copied like a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LabelKey {
    len: u8,
    /// Bytes after `len` are 0.
    bytes: [u8; LabelKey::LONGEST],
}

impl LabelKey {
    /// Most bytes of a key. A context cuts its own keys after as many.
    pub const LONGEST: usize = table::LONGEST;

    /// Returns the key of that name, as contexts have it: cut after 128 bytes, with spaces for control characters. `None` if
    /// it is empty.
    #[must_use]
    pub fn new(name: &str) -> Option<LabelKey> {
        let name = tidy(name);
        if name.is_empty() {
            return None;
        }
        let mut bytes = [0; LabelKey::LONGEST];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        let len = u8::try_from(name.len()).ok()?;
        Some(LabelKey { len, bytes })
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.len)];
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Debug for LabelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LabelKey({:?})", self.name())
    }
}

impl Serialize for LabelKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for LabelKey {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<LabelKey, D::Error> {
        let name = String::deserialize(value)?;
        let refused = "the key of a label, such as route";
        LabelKey::new(&name).ok_or_else(|| D::Error::custom(refused))
    }
}

#[cfg(test)]
mod tests {
    use super::LabelKey;

    #[test]
    fn a_key_has_a_name_that_a_context_can_have() {
        let longest = "ü".repeat(64);
        for name in ["route", "a b=c&d", &longest] {
            assert_eq!(LabelKey::new(name).unwrap().name(), name);
        }
        let too_long = "ü".repeat(65);
        assert_eq!(LabelKey::new(&too_long), LabelKey::new(&longest));
        assert_eq!(LabelKey::new("a\nb"), LabelKey::new("a b"));
        assert_eq!(LabelKey::new(""), None);
        assert_ne!(LabelKey::new("a"), LabelKey::new("ab"));
    }
}
