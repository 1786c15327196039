//! What is wrong with a setting.

use std::fmt;

/// A setting has a value that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    setting: &'static str,
    value: String,
    allowed: String,
}

impl ConfigError {
    pub(crate) fn new(
        setting: &'static str,
        value: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ConfigError {
        ConfigError {
            setting,
            value: value.into(),
            allowed: allowed.into(),
        }
    }

    /// The environment variable, or `Builder::…` where the value came from the code.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        self.setting
    }

    /// The value; a secret's is not told.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What would be allowed, in words.
    #[must_use]
    pub fn allowed(&self) -> &str {
        &self.allowed
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConfigError {
            setting,
            value,
            allowed,
        } = self;
        write!(f, "{setting} is {value:?}, but must be {allowed}")
    }
}

impl std::error::Error for ConfigError {}
