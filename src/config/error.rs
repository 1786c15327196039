//! The error of a setting.

use std::fmt;

/// Error of a setting whose value is not allowed.
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

    /// Returns the environment variable, or `Builder::…` if the value came from the code.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        self.setting
    }

    /// Returns the value; a secret's is hidden.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns a description of the allowed values.
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
