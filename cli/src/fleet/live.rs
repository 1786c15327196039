//! What a replica says of itself: the first events of its live page.

use std::io::{BufRead, BufReader, Read};

use serde_json::Value;

use crate::failure::Failure;

/// Most bytes that are read of the events.
const MOST: u64 = 4 << 20;

/// The first state, as JSON.
#[derive(Debug)]
pub(super) struct State {
    pub(super) status: Value,
    /// Rows of milliseconds, resident bytes, heap bytes, and heapray's own bytes.
    pub(super) curve: Value,
    pub(super) top: Value,
}

/// Reads `events` until all of the first state is there.
pub(super) fn read(name: &str, events: impl Read) -> Result<State, Failure> {
    let failed = |error| Failure::io(format!("{name}: cannot read its state"), error);
    let (mut status, mut curve, mut top) = (None, None, None);
    let mut event = String::new();
    for line in BufReader::new(events.take(MOST)).lines() {
        let line = line.map_err(failed)?;
        if let Some(name) = line.strip_prefix("event: ") {
            name.clone_into(&mut event);
        } else if let Some(data) = line.strip_prefix("data: ") {
            let value = serde_json::from_str(data).map_err(|error| failed(error.into()))?;
            match event.as_str() {
                "status" => status = Some(value),
                "curve" => curve = Some(value),
                "top" => top = Some(value),
                _ => {}
            }
        }
        if status.is_some() && curve.is_some() && top.is_some() {
            break;
        }
    }
    let (Some(status), Some(curve), Some(top)) = (status, curve, top) else {
        let text = format!("{name}: its answer ends early: is that heapray's live page?");
        return Err(Failure::Other(text));
    };
    Ok(State { status, curve, top })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_state_is_read_and_no_more() {
        let events = "retry: 500\nevent: status\ndata: {\"pid\":1}\n\nevent: curve\ndata: {\"points\":[]}\n\n\
                      event: top\ndata: null\n\nevent: status\ndata: {\"pid\":2}\n\nnot even an event";
        let state = read("a", events.as_bytes()).unwrap();
        assert_eq!(state.status["pid"], 1);
        assert!(state.top.is_null());
        for cut in [
            "",
            "event: status\ndata: {}\n\n",
            "event: status\ndata: {\n\n",
        ] {
            assert!(read("a", cut.as_bytes()).is_err(), "{cut}");
        }
    }
}
