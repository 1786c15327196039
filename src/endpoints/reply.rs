//! JSON answers.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;

/// Returns an answer with this `status` and `body` as JSON.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let text = serde_json::to_vec(body).expect("our own plain types can be written as JSON");
    json_text(status, text)
}

/// Returns an answer with this `status` and JSON that is already written.
pub(crate) fn json_text(status: StatusCode, text: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
