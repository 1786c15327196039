//! Errors as one line for users, in logs and answers.
//!
//! The `Display` of an error says what happened to what, and leaves out what its `source()` returns.

use std::error::Error;
use std::fmt;

/// Formats an error and all its sources: `what happened: why: why that`.
pub fn error_chain<'e>(error: &'e (dyn Error + 'static)) -> impl fmt::Display + 'e {
    Chain(error)
}

struct Chain<'e>(&'e (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::error_chain;
    use crate::memray::ReadError;
    use std::io;

    #[test]
    fn every_source_is_in_the_line_once() {
        let error = ReadError::Io(io::Error::other("the disk is gone"));
        assert_eq!(error.to_string(), "cannot read the capture");
        let line = error_chain(&error).to_string();
        assert_eq!(line, "cannot read the capture: the disk is gone");
        assert_eq!(
            error_chain(&ReadError::NoEvents).to_string(),
            ReadError::NoEvents.to_string()
        );
    }
}
