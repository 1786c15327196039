//! The trace that a request belongs to.

use core::fmt;

/// Trace and span of a request, as in the header `traceparent` (<https://www.w3.org/TR/trace-context/>).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    trace_id: [u8; 16],
    span_id: [u8; 8],
}

impl TraceContext {
    /// Makes one of the bytes of both numbers, the first of them first, as the `to_bytes` of OpenTelemetry's `TraceId` and `SpanId`
    /// returns them. Returns `None` if one of them has only zeros, which stands for none.
    #[must_use]
    pub fn from_bytes(trace_id: [u8; 16], span_id: [u8; 8]) -> Option<TraceContext> {
        let is_known = trace_id != [0; 16] && span_id != [0; 8];
        is_known.then_some(TraceContext { trace_id, span_id })
    }

    /// Returns the trace's number, as 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> impl fmt::Display + '_ {
        Hex(&self.trace_id)
    }

    /// Returns the span's number, as 16 hexadecimal digits.
    #[must_use]
    pub fn span_id(&self) -> impl fmt::Display + '_ {
        Hex(&self.span_id)
    }

    /// Returns both as words, the trace's first.
    pub(super) fn words(&self) -> [u64; 3] {
        let mut words = [0; 3];
        let (bytes, _) = self.trace_id.as_chunks::<8>();
        for (word, bytes) in words.iter_mut().zip(bytes.iter().chain([&self.span_id])) {
            *word = u64::from_be_bytes(*bytes);
        }
        words
    }

    /// Does the opposite of [`words`](TraceContext::words).
    pub(crate) fn from_words([first, last, span]: [u64; 3]) -> Option<TraceContext> {
        let trace = u128::from(first) << 64 | u128::from(last);
        TraceContext::from_bytes(trace.to_be_bytes(), span.to_be_bytes())
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.trace_id(), self.span_id())
    }
}

struct Hex<'b>(&'b [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_written_as_digits_and_kept_as_words() {
        let trace_id = *b"\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c";
        let span_id = *b"\xb7\xad\x6b\x71\x69\x20\x33\x31";
        let trace = TraceContext::from_bytes(trace_id, span_id).unwrap();
        let text = trace.trace_id().to_string();
        assert_eq!(text, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(trace.span_id().to_string(), "b7ad6b7169203331");
        assert_eq!(TraceContext::from_words(trace.words()), Some(trace));
        assert_eq!(TraceContext::from_bytes([0; 16], span_id), None);
        assert_eq!(TraceContext::from_bytes(trace_id, [0; 8]), None);
    }
}
