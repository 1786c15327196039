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
    match ask(front, &request.method, path(request), &request.headers) {
        Ok(answer) => passed_on(answer),
        Err(why) => failure(&why),
    }
}

/// Returns the path and the query of a request.
pub(super) fn path(request: &Parts) -> &str {
    let path = request.uri.path_and_query();
    path.map_or("/", |path| path.as_str())
}

/// Returns the service's answer if it is successful, without headers of one connection. Fails with the answer for the client: what
/// the service says of it, or why it says nothing. Blocks.
pub(super) fn successful(
    front: &Front,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<Response<ureq::Body>, Box<axum::response::Response>> {
    match ask(front, method, path, headers) {
        Ok(answer) if answer.status().is_success() => Ok(answer),
        Ok(refused) => Err(Box::new(passed_on(refused))),
        Err(why) => Err(Box::new(failure(&why))),
    }
}

/// Asks the service. Fails with the reason why there is no answer.
fn ask(
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
    let mut answer =
        answer.map_err(|error| format!("{}: {}", front.remote.base(), problem(error)))?;
    for name in NOT_PASSED_ON {
        answer.headers_mut().remove(name);
    }
    Ok(answer)
}

/// Returns the service's answer as one for the client.
fn passed_on(answer: Response<ureq::Body>) -> axum::response::Response {
    let (parts, body) = answer.into_parts();
    let body = match body.content_length() {
        Some(0) => Body::empty(),
        _ => read_from(body.into_reader()),
    };
    Response::from_parts(parts, body)
}
