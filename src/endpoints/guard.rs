//! Checks whether a client may call: token, host name, origin.

use std::net::SocketAddr;
use std::sync::Once;

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri, header};

use super::error::ApiError;
use crate::config::{Config, Hosts, Token};

/// Checks the token of a request, if the configuration has one.
pub(crate) fn check_token(token: Option<&Token>, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(token) = token else {
        return Ok(());
    };
    let given = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, given) = value.as_bytes().split_at_checked("Bearer ".len())?;
        scheme
            .eq_ignore_ascii_case(b"Bearer ")
            .then_some(given.trim_ascii())
    });
    if given.is_some_and(|given| token.is(given)) {
        Ok(())
    } else {
        Err(ApiError::Unauthorized)
    }
}

/// Refuses host names that a stranger could own. A page whose own name resolves to this machine (DNS rebinding) could
/// otherwise call the profiler as if it were the service's own page. There is no check where a token is required, because
/// such a page does not know the token. If no names are configured, the check applies only to the profiler's own listener
/// (`ours`) and to callers on this machine: behind a proxy, or in a pod, a service has names that it does not know.
pub(crate) fn check_host(config: &Config, ours: bool, request: &Parts) -> Result<(), ApiError> {
    if config.token.is_some() {
        return Ok(());
    }
    let none = Hosts::default();
    let hosts = match &config.hosts {
        Some(hosts) => hosts,
        None if ours || is_local(request) => &none,
        None => return Ok(()),
    };
    // A request to a proxy, and a request over HTTP/2, has its host in the address.
    let address = request.uri.authority().map(|authority| authority.as_str());
    let named = request.headers.get_all(header::HOST).iter();
    let named = named.map(|host| host.to_str().unwrap_or_default());
    match named.chain(address).find(|host| !hosts.admit(host)) {
        Some(host) => Err(ApiError::Host(host.chars().take(LONGEST_HOST).collect())),
        // Browsers always send a host.
        None => Ok(()),
    }
}

/// Longest part of a host name that an error message shows.
const LONGEST_HOST: usize = 100;

/// Returns whether the request is known to come from this machine.
fn is_local(request: &Parts) -> bool {
    let extensions = &request.extensions;
    let peer = extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map(|info| info.0);
    let Some(peer) = peer.or_else(|| extensions.get::<SocketAddr>().copied()) else {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            tracing::info!(
                "requests to the profiler carry no client address: set MEMRAY_PROFILER_TOKEN or \
                 MEMRAY_PROFILER_HOSTS, or serve the app with `into_make_service_with_connect_info::<SocketAddr>()`, \
                 and pages of strangers cannot call it by DNS rebinding"
            );
        });
        return false;
    };
    peer.ip().to_canonical().is_loopback()
}

/// Refuses requests with which a page of another site would change anything in its visitor's name, whatever the method.
/// Clients that are not browsers send neither header and are let through.
pub(crate) fn check_origin(method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    if method.is_safe() {
        return Ok(());
    }
    same_origin(headers)
}

/// Lets only the service's own pages through, and clients that are not browsers.
pub(crate) fn same_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    // The browser sets this header itself: a page cannot change the value, and it is correct behind any proxy.
    if let Some(site) = headers.get("sec-fetch-site") {
        let same = matches!(site.as_bytes(), b"same-origin" | b"none");
        return if same {
            Ok(())
        } else {
            Err(ApiError::CrossSite)
        };
    }
    // For browsers from before 2023.
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let origin = origin
        .to_str()
        .ok()
        .and_then(|text| text.parse::<Uri>().ok());
    let from = origin.as_ref().and_then(Uri::authority).map(|a| a.as_str());
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    match (from, host) {
        (Some(from), Some(host)) if from.eq_ignore_ascii_case(host) => Ok(()),
        _ => Err(ApiError::CrossSite),
    }
}

/// Does what [`same_origin`] does, and also lets a visitor through who follows a link from another site: from a chat, or
/// from a dashboard. Refuses a page that would have its visitors' browsers make outputs in the background, as pictures,
/// scripts, frames or prefetches.
pub(crate) fn same_origin_or_link(headers: &HeaderMap) -> Result<(), ApiError> {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|given| given == value);
    let is_link = is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document");
    if is_link && !headers.contains_key("sec-purpose") {
        return Ok(());
    }
    same_origin(headers)
}

#[cfg(test)]
mod tests {
    use super::{check_origin, check_token, same_origin_or_link};
    use crate::config::Token;
    use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |&(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn the_right_token_opens_and_every_other_header_does_not() {
        let token = Token::parse("s3cret");
        for (value, opens) in [
            ("Bearer s3cret", true),
            ("bearer s3cret", true),
            ("Bearer  s3cret ", true),
            ("Bearer s3cre", false),
            ("Bearer s3crets", false),
            ("Bearer", false),
            ("Bearer ", false),
            ("s3cret", false),
            ("Basic s3cret", false),
            ("", false),
        ] {
            let given = check_token(token.as_ref(), &headers(&[("authorization", value)]));
            assert_eq!(given.is_ok(), opens, "{value:?}");
        }
        assert!(check_token(token.as_ref(), &HeaderMap::new()).is_err());
        assert!(check_token(None, &HeaderMap::new()).is_ok());
    }

    #[test]
    fn a_page_of_another_site_may_link_to_an_output_and_not_embed_it() {
        let cross = ("sec-fetch-site", "cross-site");
        let (mode, dest) = ("sec-fetch-mode", "sec-fetch-dest");
        for (pairs, may) in [
            (&[][..], true),
            (&[("sec-fetch-site", "same-origin"), (mode, "cors")], true),
            (&[("sec-fetch-site", "none"), (mode, "navigate")], true),
            (&[cross, (mode, "navigate"), (dest, "document")], true),
            (&[cross, (mode, "navigate"), (dest, "iframe")], false),
            (&[cross, (mode, "no-cors"), (dest, "image")], false),
            (&[cross, (mode, "cors"), (dest, "empty")], false),
            (&[cross], false),
            (
                &[
                    cross,
                    (mode, "navigate"),
                    (dest, "document"),
                    ("sec-purpose", "prefetch;prerender"),
                ],
                false,
            ),
            (&[("origin", "http://evil"), ("host", "a")], false),
        ] {
            let given = same_origin_or_link(&headers(pairs));
            assert_eq!(given.is_ok(), may, "{pairs:?}");
        }
    }

    #[test]
    fn a_page_of_another_site_may_change_nothing() {
        for (pairs, may) in [
            (&[][..], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            // Behind a proxy that rewrites Host, the header that the browser set itself counts.
            (
                &[
                    ("sec-fetch-site", "same-origin"),
                    ("origin", "https://a"),
                    ("host", "b"),
                ],
                true,
            ),
            (&[("origin", "http://a:7000"), ("host", "a:7000")], true),
            (&[("origin", "http://a:7000"), ("host", "a")], false),
            (&[("origin", "http://evil"), ("host", "a")], false),
            (&[("origin", "null"), ("host", "a")], false),
            (&[("origin", "http://a")], false),
        ] {
            let headers = headers(pairs);
            for method in [Method::POST, Method::DELETE, Method::PUT, Method::PATCH] {
                assert_eq!(
                    check_origin(&method, &headers).is_ok(),
                    may,
                    "{method} {pairs:?}"
                );
            }
            assert!(
                check_origin(&Method::GET, &headers).is_ok(),
                "reading changes nothing"
            );
        }
    }
}
