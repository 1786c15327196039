//! What services and profile stores require of those who ask them: a token, and headers.

use crate::http::Headers;

/// `--token` and `--header`.
#[derive(Debug, clap::Args)]
pub(crate) struct AccessArgs {
    /// The token that the service requires.
    #[arg(long, env = "MEMRAY_PROFILER_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Send this with each request, as `NAME: VALUE`; may be repeated.
    #[arg(long, short = 'H', value_name = "HEADER", value_parser = header)]
    header: Vec<(String, String)>,
}

impl AccessArgs {
    /// Returns the headers of every request.
    pub(crate) fn headers(&self) -> Headers {
        headers(self.token.as_deref(), &self.header)
    }
}

/// `--token` and `--header` for a profile store. It must not get the token of a service.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreAccessArgs {
    /// The token that the store requires.
    #[arg(long, env = "MEMRAY_PROFILER_PUSH_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Send this with each request, as `NAME: VALUE`; may be repeated.
    #[arg(long, short = 'H', value_name = "HEADER", value_parser = header)]
    header: Vec<(String, String)>,
}

impl StoreAccessArgs {
    /// Returns the headers of every request.
    pub(crate) fn headers(&self) -> Headers {
        headers(self.token.as_deref(), &self.header)
    }
}

fn headers(token: Option<&str>, others: &Headers) -> Headers {
    let token = token.filter(|token| !token.is_empty());
    let bearer = token.map(|token| ("Authorization".into(), format!("Bearer {token}")));
    others.iter().cloned().chain(bearer).collect()
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is NAME: VALUE")?;
    let (name, value) = (name.trim(), value.trim());
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(token) {
        return Err(format!("{name:?} is not the name of a header"));
    }
    if !value.chars().all(|c| (' '..='~').contains(&c)) {
        return Err("a header's value is of printable ASCII characters".into());
    }
    Ok((name.into(), value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_cannot_smuggle_another() {
        assert_eq!(header("X-Auth: a:b"), Ok(("X-Auth".into(), "a:b".into())));
        for text in ["X", ": a", "X Y: a", "X: a\r\nY: b", "X: é"] {
            assert!(header(text).is_err(), "{text:?}");
        }
    }
}
