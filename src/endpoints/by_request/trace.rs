//! Finds out which trace a request belongs to.

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};

use crate::capture::trace::TraceContext;

/// Says which trace a request belongs to.
#[derive(Clone, Default)]
pub(super) struct TraceSource(Option<Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>>);

impl TraceSource {
    /// Returns one that asks the service's own code.
    pub(super) fn new(
        ask: impl Fn() -> Option<TraceContext> + Send + Sync + 'static,
    ) -> TraceSource {
        TraceSource(Some(Arc::new(ask)))
    }

    /// Returns what the service says about the request that the calling thread handles.
    pub(super) fn ask(&self) -> Option<TraceContext> {
        self.0.as_ref().and_then(|ask| ask())
    }
}

impl fmt::Debug for TraceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TraceSource")
            .field(&self.0.is_some())
            .finish()
    }
}

/// Returns what the header `traceparent` says: `00-<trace>-<span>-<flags>`, all in lower-case hexadecimal digits.
///
/// <https://www.w3.org/TR/trace-context/#traceparent-header>
pub(super) fn parent(headers: &HeaderMap) -> Option<TraceContext> {
    const NAME: HeaderName = HeaderName::from_static("traceparent");
    let text = headers.get(NAME)?.to_str().ok()?;
    let mut parts = text.splitn(5, '-');
    let version: [u8; 1] = bytes(parts.next()?)?;
    let trace_id = bytes(parts.next()?)?;
    let span_id = bytes(parts.next()?)?;
    let _flags: [u8; 1] = bytes(parts.next()?)?;
    // Later versions may have more parts.
    let is_known = match version {
        [0] => parts.next().is_none(),
        [version] => version != 0xff,
    };
    is_known
        .then(|| TraceContext::from_bytes(trace_id, span_id))
        .flatten()
}

/// Returns the bytes that `text` says in `2 × N` digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mut bytes = [0; N];
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn told(text: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", HeaderValue::from_static(text));
        parent(&headers).map(|trace| format!("{trace:?}"))
    }

    #[test]
    fn the_header_of_a_request_tells_its_trace() {
        let known = Some("0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331".to_owned());
        for text in [
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes-later",
        ] {
            assert_eq!(told(text), known, "{text}");
        }
        for text in [
            "",
            "00",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
        assert_eq!(parent(&HeaderMap::new()), None);
    }
}
