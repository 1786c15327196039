//! How much a service looks up of its code's names.

use serde::{Deserialize, Serialize};

/// How much a service looks up of the names of its code, for reports and the live page. What is missing can be looked up later,
/// from the program's debug information: `heapray symbolize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SymbolMode {
    /// Nothing: code is shown as `module+0xoffset`, and costs no memory to look up.
    Off,
    /// Functions, by the tables of symbols. Files, lines and inlined calls are missing.
    Functions,
    /// Functions, files, lines and inlined calls, as far as the program has debug information.
    #[default]
    Lines,
}
