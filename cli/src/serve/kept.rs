//! Descriptions of kept reports. Each names two lines, which are made anew of the report itself if they lack names.

use std::collections::HashMap;
use std::sync::Mutex;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::response::Response;
use heapray::elsewhere;
use serde_json::Value;

use super::outputs::NamedReport;
use super::relay::{path, successful};
use super::{Front, failure, unpoisoned};
use crate::remote::ENDPOINTS;

/// Largest report that is fetched for its two lines, in bytes.
const LARGEST: u64 = 64 << 20;
/// Largest list of kept reports that is read, in bytes.
const LONGEST_LIST: u64 = 16 << 20;
/// Reports whose lines are kept.
const MOST: usize = 1000;

/// Names of the lines of a description.
const LINES: [&str; 2] = ["largest", "leak"];

/// The lines of kept reports that were looked at; `None` of those that could not be read.
#[derive(Debug, Default)]
pub(super) struct KeptLines(Mutex<HashMap<String, Option<[Value; 2]>>>);

/// Answers with descriptions. Blocks.
pub(super) fn answer(front: &Front, request: &Parts) -> Response {
    let answer = match successful(front, &request.method, path(request), &request.headers) {
        Ok(answer) => answer,
        Err(refused) => return *refused,
    };
    let (mut parts, mut body) = answer.into_parts();
    let mut text = match body.with_config().limit(LONGEST_LIST).read_to_vec() {
        Ok(text) => text,
        Err(error) => return failure(&error.to_string()),
    };
    if let Ok(mut value) = serde_json::from_slice(&text) {
        while let Some(id) = next(front, &value) {
            look_at(front, &id);
        }
        complete(front, &mut value);
        text = value.to_string().into_bytes();
    }
    parts
        .headers
        .insert(header::CONTENT_LENGTH, text.len().into());
    Response::from_parts(parts, Body::from(text))
}

/// Returns the descriptions in `value`: a list of them, or one.
fn descriptions(value: &Value) -> &[Value] {
    match value {
        Value::Array(list) => list,
        one => std::slice::from_ref(one),
    }
}

/// Returns a report whose lines lack names and were not looked at.
pub(super) fn next(front: &Front, value: &Value) -> Option<String> {
    let known = unpoisoned(&front.kept.0);
    let lacks_names = |report: &&Value| {
        let bytes = report["report_bytes"].as_u64();
        let lacks_line = LINES.iter().any(|name| report[name]["line"] == 0);
        lacks_line && bytes.is_some_and(|bytes| bytes <= LARGEST)
    };
    let mut reports = descriptions(value).iter().filter(lacks_names);
    let id = reports.find_map(|report| {
        let id = report["id"].as_str()?;
        (!known.contains_key(id)).then_some(id)
    });
    id.map(str::to_owned)
}

/// Finds out the lines of a kept report. Blocks.
pub(super) fn look_at(front: &Front, id: &str) {
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let path = format!("{ENDPOINTS}/reports/{id}/report");
    let answer = is_number.then(|| successful(front, &Method::GET, &path, &HeaderMap::new()));
    let answer = answer.and_then(Result::ok);
    let report = answer.and_then(|answer| NamedReport::read(front, answer.into_body()).ok());
    let lines = report.map(|report| elsewhere::lines(&report.capture.report));
    let mut known = unpoisoned(&front.kept.0);
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(id.to_owned(), lines);
}

/// Puts lines with names into descriptions, where they are known.
pub(super) fn complete(front: &Front, value: &mut Value) {
    let known = unpoisoned(&front.kept.0);
    let list = match value {
        Value::Array(list) => &mut list[..],
        one => std::slice::from_mut(one),
    };
    for report in list {
        let id = report["id"].as_str().and_then(|id| known.get(id));
        if let Some(Some(lines)) = id {
            for (name, line) in LINES.iter().zip(lines) {
                report[*name] = line.clone();
            }
        }
    }
}
