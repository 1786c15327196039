//! Profiles in the form that each kind of server takes.

mod labels;
mod otlp;
mod otlp_messages;
mod parca;
mod pprof;
mod pyroscope;

use super::client::Request;
use super::profile::PushedProfile;
use crate::config::push::Protocol;

/// Returns the request that pushes `profile`.
///
/// # Errors
///
/// The profile is damaged.
pub(super) fn request(protocol: Protocol, profile: &PushedProfile) -> Result<Request, String> {
    match protocol {
        Protocol::Pyroscope => Ok(pyroscope::request(profile)),
        Protocol::Parca => Ok(parca::request(profile)),
        Protocol::Otlp => otlp::request(profile),
    }
}

/// Returns why the server has refused a profile although its answer was a success; `None` if it has taken it.
pub(super) fn refusal(protocol: Protocol, answer: &[u8]) -> Option<String> {
    match protocol {
        Protocol::Otlp => otlp::refusal(answer),
        _ => None,
    }
}
