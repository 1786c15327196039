//! Requests that are passed on as they are, and their answers.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, Response, header};

use super::body::read_from;
use super::{Front, failure};
use crate::http::problem;

/// Headers of a request that the service gets. A browser's others, such as where a page is from, are of this server.
const ASKED: [HeaderName; 7] = [
    header::ACCEPT,
    header::RANGE,
    header::IF_RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
];

/// Headers of an answer that are of one connection, and cookies, which are of the service's own address.
const NOT_PASSED_ON: [HeaderName; 5] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::SET_COOKIE,
    header::ALT_SVC,
];

/// Returns the service's answer to a request. Blocks.
pub(super) fn answer(front: &Front, request: &Parts) -> axum::response::Response {
    let path = request
        .uri
        .path_and_query()
        .map_or("/", |path| path.as_str());
    match ask(front, &request.method, path, &request.headers) {
        Ok(answer) => passed_on(answer),
        Err(why) => failure(&why),
    }
}

/// Asks the service. Fails with the reason why there is no answer.
pub(super) fn ask(
    front: &Front,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<Response<ureq::Body>, String> {
    let mut asked = HeaderMap::new();
    for name in ASKED {
        if let Some(value) = headers.get(&name) {
            asked.insert(name, value.clone());
        }
    }
    let answer = front.remote.pass_on(method.clone(), path, &asked);
    answer.map_err(|error| format!("{}: {}", front.remote.base(), problem(error)))
}

/// Returns the service's answer as one for the client.
pub(super) fn passed_on(answer: Response<ureq::Body>) -> axum::response::Response {
    let (mut parts, body) = answer.into_parts();
    for name in NOT_PASSED_ON {
        parts.headers.remove(name);
    }
    let body = match body.content_length() {
        Some(0) => Body::empty(),
        _ => read_from(body.into_reader()),
    };
    Response::from_parts(parts, body)
}
