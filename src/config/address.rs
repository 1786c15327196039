//! Addresses of servers in settings. Settings are logged and shown, so none may have a password in it.

/// Returns the text without the user and the password that it may have.
pub(super) fn without_user(text: &str) -> String {
    let (start, rest) = text.split_at(text.find("://").map_or(0, |at| at + 3));
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{start}(hidden)@{host}"),
        None => text.to_owned(),
    }
}

/// Returns the address without a slash at its end; `None` if `url` is not one.
pub(super) fn address(url: &str) -> Option<String> {
    let url = url.trim().trim_end_matches('/');
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    let plain = |c: char| c.is_ascii_graphic() && !"@?#\"<>\\^`{|}".contains(c);
    let good = matches!(scheme, "http" | "https") && !host.is_empty() && rest.chars().all(plain);
    good.then(|| url.to_owned())
}
