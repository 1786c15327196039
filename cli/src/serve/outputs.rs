//! Outputs, made of the service's report with the names that it lacks.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};

use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use heapray::elsewhere::AskedOutput;
use heapray::symbolize::NamedLater;
use heapray_report::memray::{self, Capture, Format, SameNames};

use super::body::read_from;
use super::relay::successful;
use super::{Front, failure};
use crate::remote::{copy, readable};

/// Headers of the service's report that are true for what is made of it.
const OF_REPORT: [&str; 2] = ["x-heapray-snapshot", "x-heapray-taken"];

/// A report of the service, with names.
pub(super) struct NamedReport {
    file: File,
    pub(super) capture: Capture,
    named: NamedLater,
}

/// Answers with an output. Blocks.
pub(super) fn answer(front: &Front, asked: &AskedOutput) -> Response {
    let answer = match successful(front, &Method::GET, asked.report(), &HeaderMap::new()) {
        Ok(answer) => answer,
        Err(refused) => return *refused,
    };
    let mut headers = asked.headers();
    for name in OF_REPORT {
        if let Some(value) = answer.headers().get(name) {
            headers.insert(name, value.clone());
        }
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    let made = NamedReport::read(front, answer.into_body()).and_then(|report| {
        let written = write(front, asked, &report);
        written.map_err(|error| error.to_string())
    });
    let (file, length) = match made {
        Ok(made) => made,
        Err(why) => return failure(&format!("{}{}: {why}", front.remote.base(), asked.report())),
    };
    let mut response = Response::new(read_from(file));
    headers.insert(header::CONTENT_LENGTH, length.into());
    *response.headers_mut() = headers;
    response
}

impl NamedReport {
    /// Reads a report, and adds names. Fails with what is wrong with it.
    pub(super) fn read(front: &Front, body: ureq::Body) -> Result<NamedReport, String> {
        let mut file = tempfile::tempfile().map_err(|error| error.to_string())?;
        let copied = copy(body.into_reader(), &mut file, front.largest);
        copied.map_err(|error| readable(error).to_string())?;
        let mut capture = read(&file, |file| {
            let limit = front.context.memory_limit();
            memray::read_file_as(file, limit, SameNames::Apart).map_err(io::Error::other)
        })
        .map_err(|error| error.to_string())?;
        let mut named = front.name(&capture.report);
        capture.report = std::mem::take(&mut named.report);
        Ok(NamedReport {
            file,
            capture,
            named,
        })
    }
}

fn read<T>(file: &File, read: impl FnOnce(BufReader<File>) -> io::Result<T>) -> io::Result<T> {
    let mut file = file.try_clone()?;
    file.rewind()?;
    read(BufReader::new(file))
}

/// Writes an output into a file without a name. Returns it with its length.
fn write(front: &Front, asked: &AskedOutput, report: &NamedReport) -> io::Result<(File, u64)> {
    let mut out = BufWriter::new(tempfile::tempfile()?);
    let NamedReport {
        file,
        capture,
        named,
    } = report;
    let has_events = asked.has_events() && capture.format == Format::AllAllocations;
    let events = has_events.then(|| {
        read(file, |file| {
            let limit = front.context.memory_limit();
            memray::events_of_file_as(file, limit, SameNames::Apart).map_err(io::Error::other)
        })
    });
    let events = events.transpose()?.map(|events| {
        events.map(|event| {
            event
                .map(|event| named.event(event))
                .map_err(io::Error::other)
        })
    });
    asked.write(&capture.report, events, front.built, &mut out)?;
    out.flush()?;
    let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let length = file.stream_position()?;
    file.rewind()?;
    Ok((file, length))
}
