//! What a replica says of itself: the first events of its live page.
//!
//! Only what is shown is kept of them. Whatever a replica sends takes little more memory than the text that is read.

use std::io::{BufRead, BufReader, Read};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::failure::Failure;
use crate::remote::readable;

/// Most bytes that are read of the events.
const MOST: u64 = 4 << 20;

/// The first state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) status: Status,
    pub(super) curve: Curve,
    pub(super) top: Option<Top>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) state: String,
    pub(super) live: Blocks,
    pub(super) sampling: Option<IgnoredAny>,
    /// Of the session that ended last.
    pub(super) report: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) job_name: String,
    #[serde(default)]
    pub(super) job_version: String,
    #[serde(default)]
    pub(super) program: String,
    #[serde(default)]
    pub(super) host: String,
    #[serde(default)]
    pub(super) pid: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Curve {
    /// Rows of milliseconds, resident bytes, heap bytes, and perhaps more.
    pub(super) points: Vec<Vec<u64>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Top {
    pub(super) lines: Vec<TopLine>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TopLine {
    pub(super) function: String,
    #[serde(default)]
    pub(super) file: String,
    pub(super) line: Option<u64>,
    pub(super) live: Blocks,
}

#[derive(Debug, Deserialize)]
pub(super) struct Blocks {
    pub(super) bytes: u64,
}

/// Reads `events` until all of the first state is there.
pub(super) fn read(events: impl Read) -> Result<State, Failure> {
    let failed = |error| Failure::io("cannot read its state", error);
    let (mut status, mut curve, mut top) = (None, None, None);
    let mut event = String::new();
    for line in BufReader::new(events.take(MOST)).lines() {
        let line = line.map_err(|error| failed(readable(error)))?;
        if let Some(name) = line.strip_prefix("event: ") {
            name.clone_into(&mut event);
        } else if let Some(data) = line.strip_prefix("data: ") {
            match event.as_str() {
                "status" => status = Some(value(data)?),
                "curve" => curve = Some(value(data)?),
                "top" => top = Some(value(data)?),
                _ => {}
            }
        }
        if status.is_some() && curve.is_some() && top.is_some() {
            break;
        }
    }
    let (Some(status), Some(curve), Some(top)) = (status, curve, top) else {
        let problem = if event.is_empty() {
            "what answers there is not heapray: is the address right?"
        } else {
            "its answer ends early"
        };
        return Err(Failure::Other(problem.into()));
    };
    Ok(State { status, curve, top })
}

fn value<T: DeserializeOwned>(data: &str) -> Result<T, Failure> {
    serde_json::from_str(data)
        .map_err(|error| Failure::Other(format!("its state is not that of heapray: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "{\"pid\":1,\"state\":\"stopped\",\"live\":{\"bytes\":0}}";

    fn error(answer: &[u8]) -> String {
        read(answer).unwrap_err().to_string()
    }

    #[test]
    fn the_first_state_is_read_and_no_more() {
        let events = format!(
            "retry: 500\nevent: status\ndata: {STATUS}\n\nevent: curve\ndata: {{\"points\":[[0,1,2,3,4]],\"marks\":[{{}}]}}\n\n\
             event: top\ndata: null\n\nevent: status\ndata: {{\"pid\":2}}\n\nnot even an event"
        );
        let state = read(events.as_bytes()).unwrap();
        assert_eq!((state.status.pid, state.curve.points.len()), (1, 1));
        assert!(state.top.is_none());
    }

    #[test]
    fn other_answers_are_errors_that_say_so() {
        for (answer, problem) in [
            ("", "is not heapray"),
            ("<!DOCTYPE html>\n<title>Log in</title>\n", "is not heapray"),
            (
                "event: status\ndata: {}\n\n",
                "not that of heapray: missing field `state`",
            ),
            ("event: status\ndata: {\n\n", "not that of heapray: EOF"),
            ("event: curve\ndata: {\"points\":[[-1]]}\n", "invalid value"),
            (&format!("event: status\ndata: {STATUS}\n\n"), "ends early"),
        ] {
            assert!(error(answer.as_bytes()).contains(problem), "{answer}");
        }
        assert!(error(b"event: status\ndata: \xff\xfe\n").contains("UTF-8"));
        let nested = format!("event: top\ndata: {}\n", "[".repeat(100_000));
        assert!(error(nested.as_bytes()).contains("not that of heapray"));
        // It never ends.
        let endless = b"data: ".chain(std::io::repeat(b'x'));
        let error = read(endless).unwrap_err();
        assert!(error.to_string().contains("is not heapray"), "{error}");
    }
}
