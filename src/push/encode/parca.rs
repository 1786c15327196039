//! `ProfileStoreService/WriteRaw` of Parca and Polar Signals, by its path for JSON
//! (<https://github.com/parca-dev/parca/blob/main/proto/parca/profilestore/v1alpha1/profilestore.proto>).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::labels::labels;
use crate::push::client::Request;
use crate::push::profile::PushedProfile;

pub(super) fn request(profile: &PushedProfile) -> Request {
    let labels: Vec<_> = labels(&profile.head, "job")
        .into_iter()
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    let body = json!({
        "series": [{
            "labels": { "labels": labels },
            "samples": [{ "rawProfile": STANDARD.encode(&profile.pprof) }],
        }],
    });
    Request {
        path: "/api/profiles/writeraw",
        content_type: "application/json",
        gzipped: false,
        body: body.to_string().into_bytes(),
    }
}
