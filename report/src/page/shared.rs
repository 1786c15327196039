//! Parts of this page for other pages: joining modules to one script, and the modules that do not depend on a report.

use super::assets;

/// Numbers for users: `page/js/format.js`.
pub const FORMAT: &str = include_str!("../../page/js/format.js");

/// Elements from plain data, canvases, colours of the theme: `page/js/dom.js`.
pub const DOM: &str = include_str!("../../page/js/dom.js");

/// Shortening of function names and paths: `page/js/names.js`.
pub const NAMES: &str = include_str!("../../page/js/names.js");

/// Joins ES modules to one script. Each must come after those that it imports, and no name may be in two of them.
pub fn joined<'t>(modules: impl IntoIterator<Item = &'t str>) -> String {
    let lines = modules.into_iter().flat_map(assets::joinable);
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns `'sha256-…'`, the name of an inline script or style in a content security policy.
#[must_use]
pub fn policy_hash(text: &str) -> String {
    assets::policy_hash(text)
}
