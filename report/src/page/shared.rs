//! What other pages take from this one: how modules become one script, and the modules that know no report.

use super::assets;

/// Numbers as people read them: `page/js/format.js`.
pub const FORMAT: &str = include_str!("../../page/js/format.js");

/// Elements from plain data, canvases, colours of the theme: `page/js/dom.js`.
pub const DOM: &str = include_str!("../../page/js/dom.js");

/// Function names and paths made short: `page/js/names.js`.
pub const NAMES: &str = include_str!("../../page/js/names.js");

/// ES modules as one script: each after those that it imports, and no name in two of them.
pub fn joined<'t>(modules: impl IntoIterator<Item = &'t str>) -> String {
    let lines = modules.into_iter().flat_map(assets::joinable);
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// `'sha256-…'` as a content security policy names an inline script or style.
#[must_use]
pub fn policy_hash(text: &str) -> String {
    assets::policy_hash(text)
}
