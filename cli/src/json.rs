//! JSON values that several commands print with `--json`.

use heapray_report::model::Tally;
use serde_json::{Value, json};

/// Returns blocks and bytes.
pub(crate) fn tally(tally: Tally) -> Value {
    json!({ "count": tally.count, "bytes": tally.bytes })
}
