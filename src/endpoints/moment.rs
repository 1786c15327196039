//! Points in time as JSON has them.

use std::time::SystemTime;

use serde::Serializer;

pub(crate) use crate::when::rfc3339;

pub(crate) fn serialize<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&rfc3339(*at))
}

#[allow(clippy::ref_option)] // serde's `serialize_with` hands it so
pub(crate) fn serialize_option<S: Serializer>(
    at: &Option<SystemTime>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serialize(at, to),
        None => to.serialize_none(),
    }
}
