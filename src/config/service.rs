//! What a service is called in stores, by variables that users of Pyroscope and of OpenTelemetry know.

/// Whose variables name a service.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Names {
    OpenTelemetry,
    Pyroscope,
}

/// Returns what the service is called in stores: by the variables in this order, or else by the name of its job, which is
/// empty if there is none. `None` if nobody has named it.
pub(crate) fn service(
    order: [Names; 2],
    job: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let of_resource = || {
        let listed = pairs(&variable("OTEL_RESOURCE_ATTRIBUTES")?);
        let mut named = listed.iter().filter(|(name, _)| name == "service.name");
        named.next_back().map(|(_, value)| decoded(value))
    };
    let said = order.into_iter().find_map(|names| match names {
        Names::OpenTelemetry => variable("OTEL_SERVICE_NAME").or_else(of_resource),
        Names::Pyroscope => variable("PYROSCOPE_APPLICATION_NAME"),
    });
    said.or_else(|| Some(job.to_owned()))
        .filter(|name| !name.is_empty())
}

/// Returns the pairs of `a=b,c=d`.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// Returns a value with its `%41` as `A` (OpenTelemetry writes values as W3C Baggage does).
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| first == b'%');
        let code = code.and_then(|code| u8::from_str_radix(str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
