//! How `--json` spells what several commands tell.

use heapray_report::model::Tally;
use serde_json::{Value, json};

/// Blocks and bytes.
pub(crate) fn tally(tally: Tally) -> Value {
    json!({ "count": tally.count, "bytes": tally.bytes })
}
