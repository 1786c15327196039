//! `name=value` arguments.

use std::collections::BTreeMap;

use crate::measure::Result;

/// Arguments of a measured process after its workload.
#[derive(Debug, Clone, Default)]
pub struct Options(BTreeMap<String, String>);

impl Options {
    /// Reads `name=value` arguments.
    ///
    /// # Errors
    ///
    /// An argument without `=`.
    pub fn parse(arguments: &[String]) -> Result<Options> {
        let mut options = BTreeMap::new();
        for argument in arguments {
            let (name, value) = argument
                .split_once('=')
                .ok_or_else(|| format!("{argument} is not name=value"))?;
            options.insert(name.to_owned(), value.to_owned());
        }
        Ok(Options(options))
    }

    /// Returns the text of an argument.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the number of an argument, or `default`.
    ///
    /// # Errors
    ///
    /// The argument is not a number.
    pub fn number(&self, name: &str, default: u64) -> Result<u64> {
        match self.text(name) {
            Some(text) => Ok(text.parse().map_err(|_| format!("{name}={text}"))?),
            None => Ok(default),
        }
    }
}
